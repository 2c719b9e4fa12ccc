//! Mistakes in `routing.yaml`.

use super::*;
use crate::pack::routing::{ModelChoice, RoutingCondition, RoutingRule};
use turnwire_event::code::TurnKind;

const FILE: &str = "routing.yaml";

#[test]
fn routing_rule_without_a_model_is_refused() {
    table(&[
        (
            Swap(FILE, "    use: local:small\n", ""),
            &[
                "routing.yaml:3:5: error: `use` is missing; write: `use: …` (the model: `provider:model`, or a name of `models` in pack.yaml)",
            ],
        ),
        (
            Swap(FILE, "use: default,", ""),
            &[
                "routing.yaml:9:10: error: `use` is missing; write: `use: …` (the model: `provider:model`, or a name of `models` in pack.yaml)",
            ],
        ),
        (
            Swap(FILE, "use: big", "use: bigg"),
            &["routing.yaml:8:10: error: unknown model `bigg`, did you mean `big`?"],
        ),
        (
            Swap(FILE, "use: big", "use: claude"),
            &["routing.yaml:8:10: error: unknown model `claude`; write: one of `big`, `default`"],
        ),
        (
            Swap(FILE, "    use: big", "    model: big"),
            &[
                "routing.yaml:7:5: error: `use` is missing; write: `use: …` (the model: `provider:model`, or a name of `models` in pack.yaml)",
                "routing.yaml:8:5: error: unknown field `model`; write: one of `name`, `when`, `use`, `fallback`",
            ],
        ),
        (
            Swap(
                FILE,
                "default: {use: default",
                "default: {when: {}, use: default",
            ),
            &["routing.yaml:9:11: error: unknown field `when`; write: one of `use`, `fallback`"],
        ),
        (
            Swap(FILE, "name: german_shop", "name: German Shop"),
            &[
                "routing.yaml:3:11: error: `German Shop` is not a valid name; write: `german_shop` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap(
                FILE,
                "  - when: {agent: [o",
                "  - name: german_shop\n    when: {agent: [o",
            ),
            &[
                "routing.yaml:7:11: error: the rule `german_shop` is there twice; write: another name",
            ],
        ),
        (
            Swap(FILE, "\"2026-11-16T10:00:00Z\"", "\"of today\""),
            &[
                "routing.yaml:1:10: error: `of today` is not a valid version; write: the version of these rules, in quotes: 1 to 64 characters without a space, such as `\"2026-11-16T10:00:00Z\"`. The default is a digest of the file",
            ],
        ),
        (
            Write(FILE, "version: \"1\"\n"),
            &[
                "routing.yaml:1:1: warning: no rule and no default: nothing is routed; write: `default: {use: …}`, or no routing.yaml",
            ],
        ),
        (
            Write(FILE, "rules: {use: big}\n"),
            &[
                "routing.yaml:1:8: error: this should be a list; write: `[a, b]`, or a line `- a` for each",
            ],
        ),
    ]);
}

#[test]
fn unknown_names_in_conditions_are_reported() {
    table(&[
        (
            Swap(FILE, "agent: shop", "agent: shopp"),
            &["routing.yaml:4:67: error: unknown agent `shopp`, did you mean `shop`?"],
        ),
        (
            Swap(FILE, "agent: shop", "agent: [shop, teleport]"),
            &[
                "routing.yaml:4:74: error: unknown agent `teleport`; write: one of `orchestrator`, `points`, `shop`",
            ],
        ),
        (
            Swap(FILE, "kind: chat", "kind: chatt"),
            &["routing.yaml:4:91: error: unknown kind `chatt`, did you mean `chat`?"],
        ),
        (
            Swap(FILE, "kind: chat", "kind: call"),
            &[
                "routing.yaml:4:91: error: unknown kind `call`; write: one of `chat`, `mission`, `worker`, `scheduled`",
            ],
        ),
        (
            Swap(FILE, "locale: de", "locale: german"),
            &[
                "routing.yaml:4:81: error: `german` is not a language tag; write: for example `de`, which holds for `de-AT` too",
            ],
        ),
        (
            Swap(FILE, "[0192F1AA-0000-7000-8000-000000000001]", "acme"),
            &[
                "routing.yaml:4:20: error: `acme` is not a tenant; write: a UUID, such as `0192f1aa-0000-7000-8000-000000000001`",
            ],
        ),
        (
            Swap(FILE, "[0192F1AA-0000-7000-8000-000000000001]", "7"),
            &[
                "routing.yaml:4:20: error: `7` is not a tenant; write: a UUID, such as `0192f1aa-0000-7000-8000-000000000001`",
            ],
        ),
        (
            Swap(FILE, "[0192F1AA-0000-7000-8000-000000000001]", "[]"),
            &[
                "routing.yaml:4:20: error: `tenant` is empty: the rule would never hold; write: at least one, or no `tenant`",
            ],
        ),
        (
            Swap(FILE, "[orchestrator, points]", "[points, points]"),
            &["routing.yaml:7:28: error: `points` stands twice in `agent`; write: it once"],
        ),
        (
            Swap(FILE, "agent: shop", "vertical: shop"),
            &[
                "routing.yaml:4:60: error: unknown field `vertical`; write: one of `tenant`, `agent`, `locale`, `kind`, `cost_above_usd`",
            ],
        ),
        (
            Swap(FILE, "cost_above_usd: 0.5", "cost_above_usd: -0.5"),
            &[
                "routing.yaml:4:113: error: `cost_above_usd` is -0.5; write: a number from 0 to 1000000",
            ],
        ),
        (
            Swap(FILE, "cost_above_usd: 0.5", "cost_above_usd: .nan"),
            &["routing.yaml:4:113: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap(FILE, "cost_above_usd: 0.5", "cost_above_usd: much"),
            &["routing.yaml:4:113: error: this should be a number; write: for example 0.25"],
        ),
        // A language, not a truth.
        (Swap(FILE, "locale: de", "locale: no"), &[]),
    ]);
}

#[test]
fn unreachable_routing_rule_is_a_warning() {
    let small = |first: &str, second: &str| {
        format!("rules:\n  - {{{first}use: big}}\n  - {{{second}use: default}}\n")
    };
    let always = "routing.yaml:3:5: warning: this rule is never used: rule `1` before it always holds; write: a `when` for rule `1`, or it as the last";
    let covered = "routing.yaml:3:5: warning: this rule is never used: rule `1` before it holds whenever this does; write: it before rule `1`, or nothing";
    let cases: &[(&str, &str, &[&str])] = &[
        ("", "when: {agent: shop}, ", &[always]),
        ("when: {}, ", "", &[always]),
        ("when: {agent: shop}, ", "", &[]),
        ("when: {agent: shop}, ", "when: {agent: shop}, ", &[covered]),
        (
            "when: {agent: [shop, points]}, ",
            "when: {agent: points, kind: chat}, ",
            &[covered],
        ),
        (
            "when: {locale: de}, ",
            "when: {locale: de-AT}, ",
            &[covered],
        ),
        ("when: {locale: de-AT}, ", "when: {locale: de}, ", &[]),
        (
            "when: {cost_above_usd: 1}, ",
            "when: {cost_above_usd: 2}, ",
            &[covered],
        ),
        (
            "when: {cost_above_usd: 2}, ",
            "when: {cost_above_usd: 1}, ",
            &[],
        ),
        (
            "when: {kind: chat}, ",
            "when: {kind: [chat, worker]}, ",
            &[],
        ),
    ];
    for (first, second, expected) in cases {
        let reported = reported(&[Write(FILE, &small(first, second))]);
        assert_eq!(reported, *expected, "{first} {second}");
    }
    let changes = [Write(
        FILE,
        "rules: [{use: big}]\ndefault: {use: default}\n",
    )];
    let default = "routing.yaml:2:10: warning: the default is never used: rule `1` before it always holds; write: a `when` for rule `1`, or it as the last";
    assert_eq!(reported(&changes), [default]);
}

#[test]
fn repeated_or_too_many_fallbacks_are_reported() {
    table(&[
        (
            Swap(FILE, "[big, \"anthropic:claude\"]", "[local:small, big]"),
            &[
                "routing.yaml:6:16: warning: the fallback `local:small` is what failed already; write: another model",
            ],
        ),
        (
            Swap(FILE, "[big, \"anthropic:claude\"]", "[big, scripted:big]"),
            &[
                "routing.yaml:6:21: warning: the fallback `scripted:big` is there twice; write: it once",
            ],
        ),
        (
            Swap(
                FILE,
                "[big, \"anthropic:claude\"]",
                "[a, b, c, d, e, f, g, h, i]",
            ),
            &[
                "routing.yaml:6:16: error: unknown model `a`; write: one of `big`, `default`",
                "routing.yaml:6:19: error: unknown model `b`; write: one of `big`, `default`",
                "routing.yaml:6:22: error: unknown model `c`; write: one of `big`, `default`",
                "routing.yaml:6:25: error: unknown model `d`; write: one of `big`, `default`",
                "routing.yaml:6:28: error: unknown model `e`; write: one of `big`, `default`",
                "routing.yaml:6:31: error: unknown model `f`; write: one of `big`, `default`",
                "routing.yaml:6:34: error: unknown model `g`; write: one of `big`, `default`",
                "routing.yaml:6:37: error: unknown model `h`; write: one of `big`, `default`",
                "routing.yaml:6:40: error: more than 8 fallbacks; write: fewer",
                "routing.yaml:6:40: error: unknown model `i`; write: one of `big`, `default`",
            ],
        ),
    ]);
}

#[test]
fn more_than_200_routing_rules_are_refused() {
    let rules = |count: usize| {
        let rules = (0..count).map(|n| {
            format!(
                "  - {{when: {{cost_above_usd: {}}}, use: big}}\n",
                count - n
            )
        });
        format!("rules:\n{}", rules.collect::<String>())
    };
    assert_eq!(reported(&[Write(FILE, &rules(200))]), [""; 0]);
    assert_eq!(
        reported(&[Write(FILE, &rules(201))]),
        ["routing.yaml:202:5: error: `rules` has more than 200 entries; write: fewer"]
    );
}

//
#[test]
fn good_routing_file_is_fully_read() {
    let pack = check(&files(&[]), &vars).pack.expect("good");
    let routing = pack.routing.expect("rules");
    assert_eq!(routing.version, "2026-11-16T10:00:00Z");
    let first = RoutingRule {
        name: "german_shop".to_owned(),
        when: RoutingCondition {
            tenants: vec!["0192f1aa-0000-7000-8000-000000000001".to_owned()],
            agents: vec!["shop".to_owned()],
            locales: vec!["de".to_owned()],
            kinds: vec![TurnKind::Chat],
            cost_above_usd: Some(0.5),
        },
        choice: ModelChoice {
            model: "local:small".to_owned(),
            fallbacks: vec!["scripted:big".to_owned(), "anthropic:claude".to_owned()],
        },
    };
    assert_eq!(routing.rules[0], first);
    assert_eq!(routing.rules[1].name, "2");
    assert_eq!(routing.rules[1].when.agents, ["orchestrator", "points"]);
    let default = routing.default.expect("a default");
    assert_eq!(
        (default.model.as_str(), default.fallbacks),
        ("scripted:corner", vec!["local:small".to_owned()])
    );
    let used: Vec<&str> = pack.uses.iter().map(|used| used.model.as_str()).collect();
    let expected = [
        "scripted:corner",
        "scripted:corner",
        "scripted:big",
        "local:small",
        "scripted:big",
        "anthropic:claude",
        "scripted:big",
        "scripted:corner",
        "local:small",
    ];
    assert_eq!(used, expected);
}

//
#[test]
fn routing_version_defaults_to_a_digest() {
    let version = |rest: &str| {
        let text = format!("default: {{use: big}}\n{rest}");
        let report = check(&files(&[Write(FILE, &text)]), &vars);
        report
            .pack
            .and_then(|pack| pack.routing)
            .expect("rules")
            .version
    };
    assert_eq!(version("").len(), 12);
    assert_eq!(version(""), version(""));
    assert_ne!(
        version(""),
        version("rules: [{use: default, when: {agent: shop}}]\n")
    );
    let pack = |changes: &[Change<'_>]| check(&files(changes), &vars).pack.expect("good");
    assert_eq!(pack(&[Drop(FILE)]).routing, None);
    // Which model serves a turn is no part of what an agent is.
    let (with, without) = (pack(&[]), pack(&[Drop(FILE)]));
    let versions = |pack: &Pack| pack.versions(&pack.cohort("user-42"));
    assert_eq!(versions(&with), versions(&without));
    assert_ne!(with.digest, without.digest);
}

#[test]
fn condition_accepts_the_orchestrators_own_id() {
    let changes = [
        Swap("orchestrator.yaml", "id: orchestrator", "id: boss"),
        Write(FILE, "rules: [{when: {agent: boss}, use: big}]\n"),
    ];
    let pack = check(&files(&changes), &vars).pack.expect("good");
    let routing = pack.routing.expect("rules");
    assert_eq!(routing.rules[0].when.agents, ["orchestrator"]);
}
