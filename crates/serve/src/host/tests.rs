//! A host over folders that change: what is bound, what is refused, what is kept.

use std::path::Path;

use turnwire_agent::RetryOptions;
use turnwire_event::port::TurnInput;
use turnwire_event::{ContentBlock, EpisodeId, SessionId, TenantId, TurnId, Ulid};
use turnwire_model::{CallTimeouts, ModelResponseLimits};
use turnwire_pack::ToolKind;
use turnwire_session::{SystemClock, SystemIdGenerator};

use super::*;

mod behind;
mod provider;

fn resources() -> HostResources {
    let call_limits = FairLimits {
        total: 8,
        per_owner: 8,
        waiting: 8,
        waiting_per_owner: 8,
    };
    HostResources {
        mcp_call_limits: call_limits,
        service_call_limits: call_limits,
        clock: Arc::new(SystemClock),
        id_generator: Arc::new(SystemIdGenerator),
        dialer: Arc::new(Dialer::new(turnwire_dial::DialerOptions::default()).expect("a dialer")),
        // No tool here runs a program.
        runner: Arc::new(ProgramRunner::new(
            "/nonexistent".into(),
            Vec::new(),
            std::time::Duration::ZERO,
        )),
        bounds: ProviderLimits {
            timeouts: CallTimeouts::default(),
            limits: ModelResponseLimits::default(),
            retries: RetryOptions::default(),
            allow: Vec::new(),
            deck: None,
            pace: 1.0,
            script_pace_percent: 0,
        },
        upstream_limits: UpstreamLimits {
            connect: std::time::Duration::from_secs(5),
            idle: std::time::Duration::from_secs(60),
            event_bytes_max: 1 << 20,
            stream_bytes_max: 1 << 26,
            text_bytes_max: 1 << 22,
        },
    }
}

fn write(files: &PackFiles, dir: &Path) {
    for (path, text) in files.iter() {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

fn input() -> TurnInput {
    TurnInput {
        dm_type: String::new(),
        agent: None,
        resumed: None,
        cost_usd: 0.0,
        kind: turnwire_event::code::TurnKind::Chat,
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(2)),
        owner: Owner {
            tenant: TenantId::default(),
            principal: "user-42".parse().expect("a principal"),
        },
        locale: "en".into(),
        content: vec![ContentBlock::text("hi")],
        metadata: turnwire_event::JsonObject::default(),
        location: None,
        episode_id: EpisodeId(Ulid(3)),
        trace: None,
        propagation: Default::default(),
        turn_timeout: std::time::Duration::from_secs(600),
    }
}

async fn open(dir: &Path) -> Result<Arc<PackHost>, PackLoadError> {
    let variables = ServerVariables::default();
    PackHost::open(
        PackSource::Folder(dir.to_owned()),
        variables,
        None,
        resources(),
    )
    .await
}

// S2-001
#[tokio::test]
async fn change_applies_to_new_turns_broken_one_to_none() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&PackFiles::skeleton("small"), folder.path());
    let host = open(folder.path())
        .await
        .unwrap_or_else(|why| panic!("{why}"));
    let before = host.bind(&input()).versions;
    assert!(
        !host.reload().await.expect("readable"),
        "nothing has changed"
    );

    let file = folder.path().join("orchestrator.yaml");
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("{text}\nteleport: yes\n")).expect("a file");
    let Err(PackLoadError::Wrong(findings)) = host.reload().await else {
        panic!("a broken pack was applied");
    };
    assert!(
        findings
            .iter()
            .any(|f| f.file == "orchestrator.yaml" && f.line > 1)
    );
    assert_eq!(host.bind(&input()).versions, before);

    let prompt = std::fs::read_dir(folder.path().join("prompts")).expect("prompts");
    let prompt = prompt.flatten().next().expect("a prompt").path();
    std::fs::write(&file, &text).expect("a file");
    std::fs::write(prompt, "Be kind.\n").expect("a file");
    assert!(host.reload().await.expect("a good pack"));
    let after = host.bind(&input()).versions;
    assert_ne!(after.prompt, before.prompt);
    assert_eq!(after.agent_definition, before.agent_definition);
}

#[test]
fn script_findings_come_with_pack_findings() {
    let mut pairs: Vec<(String, String)> = PackFiles::skeleton("small")
        .iter()
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect();
    pairs.push((
        "scripts/zz.yaml".into(),
        "- steps:\n  - {texd: hi}\n".into(),
    ));
    let files = PackFiles::from_pairs(pairs);
    let report = judge(&files, &ServerVariables::default());
    assert!(report.pack.is_none());
    let told: Vec<String> = report.findings.iter().map(PackFinding::to_string).collect();
    assert_eq!(report.findings.len(), 1, "{told:?}");
    assert!(told[0].starts_with("scripts/zz.yaml:2:"), "{told:?}");
}

/// What is told of the skeleton with `from` in one file made `to`.
fn told_of(file: &str, from: &str, to: &str) -> (Vec<String>, Option<Pack>) {
    let skeleton = PackFiles::skeleton("small");
    let pairs = skeleton.iter().map(|(path, text)| {
        let changed = if path == file {
            assert!(text.contains(from), "{file} has no {from}");
            text.replace(from, to)
        } else {
            text.to_owned()
        };
        (path.to_owned(), changed)
    });
    let pairs = pairs.filter(|(_, text)| !text.is_empty());
    let pairs: Vec<(String, String)> = pairs.collect();
    let report = judge(&PackFiles::from_pairs(pairs), &ServerVariables::default());
    let told = report.findings.iter().map(PackFinding::to_string).collect();
    (told, report.pack)
}

// S2-001
#[tokio::test]
async fn scripted_model_without_script_is_reported() {
    let all = PackFiles::skeleton("small")
        .get("scripts/small.yaml")
        .map(str::to_owned);
    let (told, pack) = told_of("scripts/small.yaml", &all.expect("a script"), "");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("the pack has none; write: one as `scripts/small.yaml`"),
        "{told:?}"
    );
    assert!(pack.is_none());

    let folder = tempfile::tempdir().expect("a folder");
    write(&PackFiles::skeleton("small"), folder.path());
    std::fs::remove_file(folder.path().join("scripts/small.yaml")).expect("removed");
    assert!(open(folder.path()).await.is_err());
    let script = Some(ModelScript::builtin());
    let dir = PackSource::Folder(folder.path().to_owned());
    assert!(
        PackHost::open(dir, ServerVariables::default(), script, resources())
            .await
            .is_ok()
    );
}

#[test]
fn unknown_names_in_scripts_get_suggestions() {
    let script = "scripts/small.yaml";
    for (from, to, end) in [
        (
            "name: clock",
            "name: clcok",
            "unknown tool `clcok` of `helper`, did you mean `clock`?",
        ),
        (
            "{agent: helper}",
            "{agent: helpr}",
            "unknown agent `helpr`, did you mean `helper`?",
        ),
        (
            "result.ask_helper",
            "result.ask_helpr",
            "unknown tool `ask_helpr` of `orchestrator`, did you mean `ask_helper`?",
        ),
        (
            "name: ask_helper",
            "name: clock",
            "unknown tool `clock` of `orchestrator`; write: one of `ask_helper`",
        ),
    ] {
        let (told, pack) = told_of(script, from, to);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with(script) && told[0].ends_with(end),
            "{told:?}"
        );
        assert!(pack.is_some(), "a warning");
    }
}

#[test]
fn built_in_pack_has_no_finding() {
    let variables = ServerVariables::default().or("DEMO_CCS", "http://127.0.0.1:9");
    let report = judge(&PackFiles::market(), &variables);
    let told: Vec<String> = report.findings.iter().map(PackFinding::to_string).collect();
    assert_eq!(told, Vec::<String>::new());
    assert!(report.pack.is_some());
}

/// The pack of `packs/workshop`, with texts of its files changed: file, from, to.
fn workshop(changes: &[(&str, &str, &str)]) -> (Vec<String>, Option<Pack>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/workshop");
    let files = PackFiles::read(&folder).expect("the folder of the pack");
    let changed = files.iter().map(|(path, text)| {
        let mine = changes.iter().filter(|(file, ..)| *file == path);
        let text = mine.fold(text.to_owned(), |text, (_, from, to)| {
            assert!(text.contains(from), "{path} has no {from}");
            text.replace(from, to)
        });
        (path.to_owned(), text)
    });
    let changed: Vec<(String, String)> = changed.collect();
    let report = judge(&PackFiles::from_pairs(changed), &ServerVariables::default());
    let told = report.findings.iter().map(PackFinding::to_string).collect();
    (told, report.pack)
}

#[test]
fn workshop_pack_has_no_finding_and_one_of_each_tool() {
    let (told, pack) = workshop(&[]);
    assert_eq!(told, Vec::<String>::new());
    let pack = pack.expect("a good pack");
    assert_eq!(pack.workers.len(), 1);
    let is = |kind: fn(&ToolKind) -> bool| pack.tools.iter().any(|tool| kind(&tool.kind));
    assert!(is(|kind| matches!(kind, ToolKind::Process(_))));
    assert!(is(|kind| matches!(kind, ToolKind::Delegate { .. })));
    assert!(pack.tools.iter().any(|tool| tool.approval));
}

#[test]
fn missing_program_is_reported_with_all_other_mistakes() {
    let program = ("tools.yaml", "command: [wc,", "command: [no-such-program,");
    let (told, pack) = workshop(&[program]);
    let missing = "tools.yaml:14:11: error: the tool `count_words` runs `no-such-program`, and \
                   there is no such program; write: a program in PATH, or the path of a file that \
                   can be run, or install it";
    assert_eq!(told, [missing]);
    assert!(pack.is_none(), "a server could not start it");
    let field = ("tools.yaml", "function: clock", "function: clok");
    let key = (
        "pack.yaml",
        "\"scripted:workshop\"",
        "\"anthropic:some-model\"",
    );
    let (told, _) = workshop(&[program, field, key]);
    let has = |part: &str| told.iter().any(|line| line.contains(part));
    assert!(has(missing), "{told:#?}");
    assert!(has("unknown function `clok`"), "{told:#?}");
    assert!(has("ANTHROPIC_API_KEY"), "{told:#?}");
}

#[tokio::test]
async fn unstartable_tool_server_is_reported_where_named() {
    let dir = tempfile::tempdir().expect("a folder");
    write(&PackFiles::market(), dir.path());
    let file = dir.path().join("tools.yaml");
    let mut text = std::fs::read_to_string(&file).expect("tools");
    text.push_str("\nmcp_servers:\n  files: {command: [no-such-program]}\n");
    std::fs::write(&file, &text).expect("tools");
    let Err(PackLoadError::Wrong(told)) = open(dir.path()).await.map(|_| ()) else {
        panic!("it was opened");
    };
    let [told] = told.as_slice() else {
        panic!("{told:?}");
    };
    let line = text.lines().count() as u64;
    assert_eq!(
        (&*told.file, told.line, told.column),
        ("tools.yaml", line, 3)
    );
    assert!(told.message.contains("the MCP server `files`"), "{told}");
}

#[test]
fn scripts_may_name_workers_and_mcp_tools() {
    let script = "scripts/10-researcher.yaml";
    let worker = ("user: '^Task of the researcher:'", "agent: researcher");
    let server = (
        "tools.yaml",
        "\ntools:\n",
        "\nmcp_servers: {files: {command: [cat]}}\ntools:\n",
    );
    let listed = (
        "workers/researcher/agent.yaml",
        "tools: [clock,",
        "tools: [\"mcp:files\", clock,",
    );
    let changes = [
        (script, worker.0, worker.1),
        (script, "name: clock", "name: files_read_file"),
        server,
        listed,
    ];
    let (told, _) = workshop(&changes);
    assert_eq!(told, Vec::<String>::new());
    let changes = [
        (script, worker.0, "agent: resercher"),
        (script, "name: clock", "name: notes_read_file"),
        server,
        listed,
    ];
    let (told, pack) = workshop(&changes);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].ends_with("unknown agent `resercher`, did you mean `researcher`?"),
        "{told:?}"
    );
    assert!(
        told[1].contains("unknown tool `notes_read_file`"),
        "{told:?}"
    );
    assert!(pack.is_some(), "warnings");
}
