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
pub(crate) fn promtool(arguments: &[&str], input: &str) -> (Option<i32>, String) {
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
pub(crate) async fn metrics_of_a_busy_pack() -> String {
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

/// True for a metric of the server, or a part of a histogram of it.
pub(crate) fn is_metric(name: &str) -> bool {
    let parts = ["_bucket", "_count", "_sum"];
    let base = parts.iter().find_map(|part| name.strip_suffix(part));
    let names = [Some(name), base];
    metric::ALL
        .iter()
        .any(|metric| names.contains(&Some(metric.name)))
}

/// The names in a text that begin as those of metrics do.
pub(crate) fn metric_names(text: &str) -> BTreeSet<&str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_name(letter));
    words.filter(|word| word.starts_with("turnwire_")).collect()
}

// S2-052, S1-117
#[test]
fn alert_rules_are_valid_and_name_metrics_that_exist() {
    let path = environment::root().join("ops/prometheus/turnwire.rules.yml");
    let rules = std::fs::read_to_string(&path).expect("the rules");
    let path = path.to_str().expect("a path");
    let (code, text) = promtool(&["check", "rules", path], "");
    assert_eq!(code, Some(0), "{text}");
    let named = metric_names(&rules);
    assert!(named.len() > 20, "{named:?}");
    let unknown: Vec<_> = named.iter().filter(|name| !is_metric(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

// S2-052, S1-117
#[test]
fn alerts_fire_and_stay_silent_as_their_cases_say() {
    let path = environment::root().join("ops/prometheus/turnwire.rules.test.yml");
    let (code, text) = promtool(&["test", "rules", path.to_str().expect("a path")], "");
    assert_eq!(code, Some(0), "{text}");
}
