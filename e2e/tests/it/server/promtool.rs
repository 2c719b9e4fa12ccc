//! `/metrics` and the alert rules, as Prometheus' own `promtool` reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;
use turnwire_e2e::chat::whole;
use turnwire_e2e::data_service::ServiceReply;
use turnwire_e2e::engine::{EngineFixture, asks, working};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::metric;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::environment;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;

/// Runs promtool with `input`; the result is its exit code and everything it printed.
fn promtool(arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let mut program = Command::new(environment::prometheus().join("promtool"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    let mut stdin = program.stdin.take().expect("its input");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let done = program.wait_with_output().expect("its end");
    let text = [done.stdout, done.stderr].concat();
    (
        done.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// The text of `/metrics` after turns of several kinds.
async fn metrics_of_a_busy_server() -> String {
    let script = ModelScript::new()
        .on("^broken", [ScriptStep::error("internal")])
        .on(
            "^tools",
            [
                ScriptStep::thinking("hm", "c2VhbA=="),
                ScriptStep::tool(tool::CLOCK, json!({})),
                ScriptStep::text("It is late."),
            ],
        )
        .on("", [ScriptStep::text("plain")]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    for message in ["plain", "tools", "broken"] {
        let question = ChatSubmit::new(message).session(fixture.session);
        whole(&fixture.api, message, &question).await;
    }
    fixture.api.get("/metrics").await.expect("metrics").body
}

/// The text of `/metrics` after turns of a pack whose data service answers and refuses.
async fn metrics_of_a_busy_pack() -> String {
    let engine = EngineFixture::new(working(asks(&["shop"], "Here they are."))).await;
    engine.ask("offers").await;
    let refusal = json!({"error": "principal_mismatch"}).to_string();
    let refused = ServiceReply::http("403 Forbidden", &[], &refusal);
    engine.ccs.set("offer_search", refused);
    engine.ask("offers of somebody else").await;
    engine.api.get("/metrics").await.expect("metrics").body
}

// D-16, S3-109
#[tokio::test]
async fn promtool_has_no_complaint_about_the_metrics() {
    let (plain, pack) = tokio::join!(metrics_of_a_busy_server(), metrics_of_a_busy_pack());
    for text in [plain, pack] {
        check_metrics(text).await;
    }
}

/// Asserts that promtool accepts `text` and that all series of a metric have the same labels.
async fn check_metrics(text: String) {
    let checked = tokio::task::spawn_blocking({
        let text = text.clone();
        move || promtool(&["check", "metrics"], &text)
    });
    assert_eq!(checked.await.expect("promtool"), (Some(0), String::new()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series: Vec<_> = lines.filter_map(|line| line.rsplit_once(' ')).collect();
    let mut label_names: BTreeMap<&str, BTreeSet<Vec<&str>>> = BTreeMap::new();
    for (name, _) in &series {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        assert!(name.starts_with("turnwire_"), "{name}");
        let labels = labels
            .split("\",")
            .filter_map(|label| label.split_once('='));
        let names = labels
            .map(|(label, _)| label)
            .filter(|label| *label != "le");
        label_names.entry(name).or_default().insert(names.collect());
    }
    for (name, sets) in label_names {
        assert_eq!(
            sets.len(),
            1,
            "{name} has series with other labels: {sets:?}"
        );
    }
    let mcp = series
        .iter()
        .find(|(name, _)| name.starts_with("turnwire_mcp_"));
    assert_eq!(mcp, None, "there is no MCP server");
}

// S2-052
#[test]
fn alert_rules_are_valid_and_name_metrics_that_exist() {
    let path = environment::root().join("ops/prometheus/turnwire.rules.yml");
    let rules = std::fs::read_to_string(&path).expect("the rules");
    let path = path.to_str().expect("a path");
    let (code, text) = promtool(&["check", "rules", path], "");
    assert_eq!(code, Some(0), "{text}");
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = rules
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let words = words.flat_map(|line| line.split(|letter| !is_name(letter)));
    let named: BTreeSet<_> = words.filter(|word| word.starts_with("turnwire_")).collect();
    assert!(named.len() >= 4, "{named:?}");
    for name in named {
        assert!(
            metric::ALL.iter().any(|metric| metric.name == name),
            "{name}"
        );
    }
}
