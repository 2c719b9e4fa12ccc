//! Servers that do what they should not, when they are started: each is told by name, with what to
//! do.

use std::time::Duration;

use serde_json::json;
use turnwire_pack::McpTransport;

use super::stage::{Stage, def, run, tool_def};
use crate::fit::fits;

/// What is told of a server in `mode` that has `start_ms` to start.
async fn told(mode: &str, start_ms: u64) -> String {
    let stage = Stage::new();
    let mut def = stage.def(mode, &[]);
    def.start_timeout_ms = start_ms;
    let told = stage.refused(def).await;
    assert!(
        told.starts_with("the MCP server `small` cannot be used: "),
        "{told}"
    );
    assert!(!told.contains("/secret"), "{told}");
    told
}

#[tokio::test]
async fn missing_program_is_reported() {
    let stage = Stage::new();
    let missing = def(McpTransport::Stdio {
        command: vec!["/no/such/program".into()],
        env: Vec::new(),
    });
    let told = stage.refused(missing).await;
    assert!(told.contains("there is no such program"), "{told}");
    assert!(
        told.contains("install it, or write another `command`"),
        "{told}"
    );
}

#[tokio::test]
async fn server_that_never_answers_is_reported() {
    let told = told("never", 1_500).await;
    assert!(told.contains("did not answer within 1500 ms"), "{told}");
    assert!(told.contains("start_timeout_ms"), "{told}");
}

#[tokio::test]
async fn server_that_logs_to_stdout_is_reported() {
    let told = told("nonsense", 1_500).await;
    assert!(told.contains("logs belong on standard error"), "{told}");
}

#[tokio::test]
async fn server_that_exits_is_reported_with_its_status() {
    let told = told("dies", 20_000).await;
    assert!(told.contains("ended before it answered"), "{told}");
    assert!(told.contains('7'), "its status is told: {told}");
}

#[tokio::test]
async fn rejected_handshake_is_quoted() {
    let told = told("refuses", 20_000).await;
    assert!(
        told.contains("it rejected the handshake: the licence has run out"),
        "{told}"
    );
}

#[tokio::test]
async fn endless_line_and_flood_end_the_start_at_once() {
    let told_of = told("endless", 60_000).await;
    assert!(
        told_of.contains("without the end of a message"),
        "{told_of}"
    );
    let told_of = told("flood", 60_000).await;
    assert!(told_of.contains("bytes in 10 s"), "{told_of}");
}

#[tokio::test]
async fn lists_beyond_their_limits_are_errors() {
    let told_of = told("cursor", 20_000).await;
    assert!(told_of.contains("more than 8 pages"), "{told_of}");
    let told_of = told("many", 20_000).await;
    assert!(told_of.contains("more than 256 tools"), "{told_of}");
}

#[tokio::test]
async fn tool_with_unusable_schema_is_left_out_or_an_error() {
    let stage = Stage::new();
    let listed = stage.good("schema", &[]).await;
    let all = listed.all("small").expect("tools");
    let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["small_echo", "small_mail"]);
    // Its server looks at the pattern itself; the model is shown it.
    let mail = &all[1];
    let shown = mail.input_schema()["properties"]["to"]["pattern"].to_string();
    assert!(shown.contains("(?!"), "{shown}");
    assert_eq!(fits(&**mail, &json!({"to": "a@b"})), Ok(()));
    assert!(fits(&**mail, &json!({"to": 5})).is_err());
    let broken = listed.tool(&tool_def("broken"), "small", "broken");
    let told = broken.map(|_| ()).expect_err("no schema");
    assert!(
        told.contains("`broken` of the MCP server `small`"),
        "{told}"
    );
    assert!(told.contains("its input schema cannot be used"), "{told}");
    let doubling = listed.tool(&tool_def("doubling"), "small", "doubling");
    let told = doubling.map(|_| ()).expect_err("too much");
    assert!(told.contains("more than 20000 steps"), "{told}");
    let missing = listed.tool(&tool_def("ecko"), "small", "ecko");
    let told = missing.map(|_| ()).expect_err("no such tool");
    assert!(
        told.contains("has no tool `ecko`; write: one of `echo`"),
        "{told}"
    );
}

#[tokio::test]
async fn all_failing_servers_are_reported_together() {
    let stage = Stage::new();
    let mut never = stage.def("never", &[]);
    never.start_timeout_ms = 1_000;
    let defs = [
        ("a".to_owned(), stage.def("dies", &[])),
        ("b".to_owned(), stage.def("good", &[])),
        ("c".to_owned(), never),
    ];
    let bad = stage.servers.open(&defs.into()).await;
    let bad = bad.map(|_| ()).expect_err("two are wrong");
    let names: Vec<&str> = bad.iter().map(|bad| bad.server.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test]
async fn flood_in_a_call_ends_the_connection_and_restarts() {
    let stage = Stage::new();
    let listed = stage.good("good", &[]).await;
    let failed = run(&listed, "pour", json!({}))
        .await
        .expect_err("a failure");
    assert_eq!(
        failed.told,
        "The tool's server disconnected during the call."
    );
    // Away for half a second, and then there again.
    for _ in 0..40 {
        if run(&listed, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("it did not come back");
}
