//! Packs as a whole: missing and strange files, many mistakes at once, soft limits.

use super::*;

#[test]
fn missing_file_is_reported_with_its_content() {
    assert_eq!(
        reported(&[Drop("pack.yaml")]),
        [
            "pack.yaml:1:1: error: the file is missing; write: `name: my_pack` and `version: \"1.0.0\"`"
        ]
    );
    assert_eq!(
        reported(&[Drop("orchestrator.yaml")]),
        [
            "orchestrator.yaml:1:1: error: the file is missing; write: `kind: orchestrator` with id, version, description and prompt_blocks"
        ]
    );
    assert_eq!(
        reported(&[Drop("prompts/format.md")]),
        [
            "orchestrator.yaml:6:26: error: unknown prompt block `format`; write: one of `persona`, `shop`, or its text in prompts/format.md"
        ]
    );
    assert_eq!(
        reported(&[Drop("schemas/offer_list.json")]),
        [
            "connectors.yaml:8:21: error: there is no file `schemas/offer_list.json` in the pack; write: the path of a file in `schemas/`, ending in `.json`"
        ]
    );
}

#[test]
fn empty_folder_reports_the_required_files() {
    let report = check(&PackFiles::default(), &vars);
    let files: Vec<&str> = report
        .findings
        .iter()
        .map(|one| one.file.as_str())
        .collect();
    assert_eq!(files, ["orchestrator.yaml", "pack.yaml"]);
}

#[test]
fn bad_prompts_and_unread_files_are_reported() {
    table(&[
        (
            Write("prompts/format.md", "\n \n"),
            &[
                "prompts/format.md:1:1: error: the prompt is empty; write: what the agent is to be told",
            ],
        ),
        (
            Write("verticals/shop/agents.yaml", ""),
            &[
                "verticals/shop/agents.yaml:1:1: warning: nothing reads this file, did you mean `verticals/shop/agent.yaml`?",
            ],
        ),
        (
            Write("verticals/toys/agent.yml", ""),
            &[
                "verticals/toys/agent.yml:1:1: warning: nothing reads this file, did you mean `verticals/toys/agent.yaml`?",
            ],
        ),
        (
            Write("connector.yaml", ""),
            &[
                "connector.yaml:1:1: warning: nothing reads this file, did you mean `connectors.yaml`?",
            ],
        ),
        (
            Write("notes.txt", "a"),
            &[
                "notes.txt:1:1: warning: nothing reads this file; write: it outside of the pack, or the name of a file that a pack can have",
            ],
        ),
        (Write("evals/routing.yaml", "- any"), &[]),
        (Write("README.md", "hello"), &[]),
        (
            Write("routing.yaml", "a: b"),
            &[
                "routing.yaml:1:1: error: unknown field `a`; write: one of `version`, `rules`, `default`",
                "routing.yaml:1:1: warning: no rule and no default: nothing is routed; write: `default: {use: …}`, or no routing.yaml",
            ],
        ),
        (
            Write("locales/es.yaml", "a: \u{fffd}"),
            &["locales/es.yaml:1:1: error: the file is not UTF-8 text; write: it again as UTF-8"],
        ),
    ]);
}

#[test]
fn too_many_or_too_large_files_are_refused() {
    let long = "x".repeat((1 << 20) + 1);
    assert_eq!(
        reported(&[Write("prompts/format.md", &long)]),
        [
            "prompts/format.md:1:1: error: the file has more than 1048576 bytes; write: a shorter file"
        ]
    );
    let mut many = files(&[])
        .iter()
        .map(|(p, t)| (p.to_owned(), t.to_owned()))
        .collect::<Vec<_>>();
    many.extend((0..1_000).map(|n| (format!("evals/{n}.yaml"), String::new())));
    let report = check(&PackFiles::from_pairs(many), &vars);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(
        report.findings[0].to_string(),
        "pack.yaml:1:1: error: the folder has more than 1000 files; write: a folder with nothing but the pack in it"
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let reported = reported(&[
        Swap("pack.yaml", "cap: 3", "cap: 30"),
        Swap("pack.yaml", "name: corner", "name: Corner"),
        Swap("orchestrator.yaml", "[persona, format]", "[persna, fromat]"),
        Swap("verticals/shop/agent.yaml", "on_cancel: discard\n", ""),
        Swap("verticals/shop/agent.yaml", "model: big", "model: bigg"),
        Swap("tools.yaml", "shape: list", "shape: lists"),
        Swap("locales/de.yaml", "Blick zurück...", "''"),
    ]);
    let positions: Vec<&str> = reported
        .iter()
        .filter_map(|line| line.split(": ").next())
        .collect();
    assert_eq!(
        positions,
        [
            "locales/de.yaml:2:22",
            "orchestrator.yaml:6:17",
            "orchestrator.yaml:6:25",
            "pack.yaml:1:7",
            "pack.yaml:5:16",
            "tools.yaml:11:12",
            "verticals/shop/agent.yaml:1:1",
            "verticals/shop/agent.yaml:7:8",
        ]
    );
}

#[test]
fn every_misspelt_field_is_reported() {
    assert_eq!(
        reported(&[
            Swap("verticals/shop/agent.yaml", "emits:", "emit:"),
            Swap("verticals/shop/agent.yaml", "on_cancel:", "oncancel:"),
            Swap("verticals/shop/agent.yaml", "timeout_ms:", "colour:"),
        ]),
        [
            "verticals/shop/agent.yaml:10:1: error: unknown field `emit`, did you mean `emits`?",
            "verticals/shop/agent.yaml:11:1: error: unknown field `oncancel`, did you mean `on_cancel`?",
            "verticals/shop/agent.yaml:12:1: error: unknown field `colour`; write: one of `id`, `version`, `kind`, `description`, `model`, `prompt_blocks`, `tools`, `history`, `relay`, `vertical`, `aliases`, `emits`, `on_cancel`, `timeout_ms`, `default_status`",
        ]
    );
}

#[test]
fn broken_file_hides_no_mistake_of_other_files() {
    for (path, text) in GOOD {
        if !path.ends_with(".yaml") || path.starts_with("scripts/") {
            continue;
        }
        let broken = format!("{text}\"");
        let reported = reported(&[Write(path, &broken), Write("prompts/persona.md", "")]);
        assert_eq!(reported.len(), 2, "{path}: {reported:#?}");
        assert!(
            reported.iter().any(|line| line.starts_with(path)),
            "{reported:#?}"
        );
        assert!(
            reported
                .iter()
                .any(|line| line.starts_with("prompts/persona.md")),
            "{reported:#?}"
        );
    }
}

// S2-007
#[test]
fn more_than_ten_sub_agents_are_a_warning() {
    let mut listed = String::from("sub_agents: [shop, {id: points, flag: ai_assistant_some}");
    let mut changes = Vec::new();
    let agents: Vec<(String, String)> = (0..9)
        .map(|n| {
            let text = format!(
                "id: a{n}\nversion: \"1\"\nkind: sub_agent\ndescription: d\nprompt_blocks: [shop]\non_cancel: discard\n"
            );
            (format!("verticals/a{n}/agent.yaml"), text)
        })
        .collect();
    for (n, (path, text)) in agents.iter().enumerate() {
        listed += &format!(", a{n}");
        changes.push(Write(path, text));
    }
    listed.push(']');
    let from = "sub_agents: [shop, {id: points, flag: ai_assistant_some}]";
    changes.push(Swap("orchestrator.yaml", from, &listed));
    assert_eq!(
        reported(&changes),
        [
            "orchestrator.yaml:7:91: warning: 11 sub-agents; above 10 the model chooses among them less well; write: fewer sub-agents, each with more to do"
        ]
    );
}

// S1-077
#[test]
fn more_than_fifty_status_ids_are_a_warning() {
    let mut fragment = String::new();
    for n in 0..49 {
        fragment += &format!(
            "- {{id: s{n}, description: d, default_render_key: status.looking_back, default_policy: forward, emitter_subagents: [points], lifecycle: active}}\n"
        );
    }
    let changes = [Write("verticals/points/status_events.yaml", &fragment)];
    assert_eq!(
        reported(&changes),
        [
            "platform/status_events.yaml:1:1: warning: 52 status ids; about 50 is plenty; write: fewer, more general ids"
        ]
    );
}

// S2-088
#[test]
fn slow_tool_without_a_status_is_a_warning() {
    assert_eq!(
        reported(&[
            Swap("tools.yaml", "    status: searching_offers\n", ""),
            Swap(
                "verticals/points/agent.yaml",
                "[clock]",
                "[clock, search_offers]"
            ),
            Swap("verticals/points/agent.yaml", "emits: [looking_back]\n", ""),
        ]),
        [
            "verticals/points/agent.yaml:6:16: warning: `search_offers` may take long, and `points` emits no status while it does; write: a status id in `emits`, and as `status` of the tool"
        ]
    );
}

// S2-010
#[test]
fn vertical_is_added_by_files_only() {
    let agent = "id: receipts\nversion: \"1\"\nkind: sub_agent\ndescription: Knows receipts.\nprompt_blocks: [shop]\nemits: [matching]\non_cancel: discard\n";
    let fragment = "- {id: matching, description: d, default_render_key: status.matching, default_policy: batch, emitter_subagents: [receipts], lifecycle: active}\n";
    let changes = [
        Write("verticals/receipts/agent.yaml", agent),
        Write("verticals/receipts/status_events.yaml", fragment),
        Swap("orchestrator.yaml", "[shop, {id", "[shop, receipts, {id"),
        Swap(
            "locales/en.yaml",
            "status.looking",
            "status.matching: {message: Matching..., phrase: matching}\nstatus.looking",
        ),
        Swap(
            "locales/de.yaml",
            "status.looking",
            "status.matching: {message: Abgleich..., phrase: Abgleich}\nstatus.looking",
        ),
    ];
    let report = check(&files(&changes), &vars);
    assert_eq!(report.findings, []);
    let pack = report.pack.expect("no findings");
    let ids: Vec<&str> = pack.agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["shop", "receipts", "points"]);
    let entry = pack.registry.get("matching").expect("the new id");
    assert_eq!(entry.fragment, "verticals/receipts/status_events.yaml");
}

#[test]
fn check_never_panics() {
    let odd = [
        "",
        "\u{0}",
        "{",
        "- - -",
        "a: *b",
        "&a [*a]",
        "? :",
        "!!set {a}",
        "é: [é",
        "---\n---",
        "a: !include b",
    ];
    for (path, _) in GOOD {
        for text in odd {
            check(&files(&[Write(path, text)]), &|_| None);
        }
    }
}

#[test]
fn file_with_wrong_extension_is_reported_once() {
    let text = |path: &str| {
        let file = GOOD.iter().find(|(names, _)| *names == path);
        file.expect("a file of the good pack").1
    };
    for path in [
        "pack.yaml",
        "tools.yaml",
        "connectors.yaml",
        "orchestrator.yaml",
    ] {
        let other = path.replace(".yaml", ".yml");
        assert_eq!(
            reported(&[Drop(path), Write(&other, text(path))]),
            [format!(
                "{other}:1:1: error: nothing reads this file, did you mean `{path}`?"
            )]
        );
    }
    assert_eq!(
        reported(&[Drop("tools.yaml"), Write("Tools.yaml", text("tools.yaml"))]),
        ["Tools.yaml:1:1: error: nothing reads this file, did you mean `tools.yaml`?"]
    );
}
