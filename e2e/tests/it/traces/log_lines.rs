//! The server's log as JSON: trace ids of requests and turns, and no secret.

use serde_json::Value;
use turnwire_e2e::data_service::{FakeDataService, ServiceReply};
use turnwire_e2e::engine::{EngineFixture, asks, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::server::ServerOptions;

use super::spans::{CALLER, TRACE_ID};

/// All values of a field in a line of JSON, also in the spans of the line.
fn values_of<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(name).and_then(Value::as_str));
            fields
                .values()
                .for_each(|value| values_of(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|value| values_of(value, name, found)),
        _ => {}
    }
}

// D-83
#[tokio::test]
async fn json_lines_have_the_trace_of_the_turn_and_no_secret() {
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url()).script(&working(asks(&["shop"], "Sorry.")));
    let options = ServerOptions::pack(pack)
        .set("log", "format", "json")
        .set("log", "filter", "info");
    let engine = EngineFixture::on(ccs, options).await;
    engine.ccs.set(
        "offer_search",
        ServiceReply::http("500 Internal Server Error", &[], "SECRET OF THE SERVICE"),
    );
    let parent = format!("00-{TRACE_ID}-{CALLER}-01");
    let question = ChatSubmit::new("SECRET QUESTION")
        .header("traceparent", &parent)
        .header("authorization", "Bearer SECRET-TOKEN");
    let reply = engine.submit(question).await;
    let log = engine.server.stderr();
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let turn = reply.turn.to_string();
    let mut of_turn = 0;
    for line in &lines {
        let mut turns = Vec::new();
        values_of(line, "turn_id", &mut turns);
        if turns.contains(&turn.as_str()) {
            of_turn += 1;
            let mut traces = Vec::new();
            values_of(line, "trace_id", &mut traces);
            assert!(
                !traces.is_empty() && traces.iter().all(|id| *id == TRACE_ID),
                "{line}"
            );
        }
    }
    assert!(of_turn > 0, "the failed tool is in the log: {log}");
    assert!(!log.contains("SECRET"), "{log}");
}
