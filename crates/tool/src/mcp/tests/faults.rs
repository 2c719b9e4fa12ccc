//! Servers that fail to start: each error names the server and says what to do.

use std::time::Duration;

use serde_json::json;
use turnwire_pack::McpTransport;

use super::support::{ServerFixture, def, run, tool_def};
use crate::input::check_input;

/// The error of a server in `mode` that has `start_ms` to start.
async fn start_error(mode: &str, start_ms: u64) -> String {
    let fixture = ServerFixture::new();
    let mut def = fixture.def(mode, &[]);
    def.start_timeout_ms = start_ms;
    let message = fixture.open_error(def).await;
    assert!(
        message.starts_with("the MCP server `small` cannot be used: "),
        "{message}"
    );
    assert!(!message.contains("/secret"), "{message}");
    message
}

#[tokio::test]
async fn missing_program_is_reported() {
    let fixture = ServerFixture::new();
    let missing = def(McpTransport::Stdio {
        command: vec!["/no/such/program".into()],
        env: Vec::new(),
    });
    let message = fixture.open_error(missing).await;
    assert!(message.contains("there is no such program"), "{message}");
    assert!(
        message.contains("install it, or write another `command`"),
        "{message}"
    );
}

#[tokio::test]
async fn server_that_never_answers_is_reported() {
    let message = start_error("never", 1_500).await;
    assert!(
        message.contains("did not answer within 1500 ms"),
        "{message}"
    );
    assert!(message.contains("start_timeout_ms"), "{message}");
}

#[tokio::test]
async fn server_that_logs_to_stdout_is_reported() {
    let message = start_error("nonsense", 1_500).await;
    assert!(
        message.contains("logs belong on standard error"),
        "{message}"
    );
}

#[tokio::test]
async fn server_that_exits_is_reported_with_its_status() {
    let message = start_error("dies", 20_000).await;
    assert!(message.contains("ended before it answered"), "{message}");
    assert!(message.contains('7'), "its status is told: {message}");
}

#[tokio::test]
async fn rejected_handshake_is_quoted() {
    let message = start_error("refuses", 20_000).await;
    assert!(
        message.contains("it rejected the handshake: the licence has run out"),
        "{message}"
    );
}

#[tokio::test]
async fn endless_line_and_flood_end_the_start_at_once() {
    let message = start_error("endless", 60_000).await;
    assert!(
        message.contains("without the end of a message"),
        "{message}"
    );
    let message = start_error("flood", 60_000).await;
    assert!(message.contains("bytes in 10 s"), "{message}");
}

#[tokio::test]
async fn lists_beyond_their_limits_are_errors() {
    let message = start_error("cursor", 20_000).await;
    assert!(message.contains("more than 8 pages"), "{message}");
    let message = start_error("many", 20_000).await;
    assert!(message.contains("more than 256 tools"), "{message}");
}

#[tokio::test]
async fn tool_with_unusable_schema_is_left_out_or_an_error() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("schema", &[]).await;
    let all = tools.all_tools("small").expect("tools");
    let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["small_echo", "small_mail"]);
    // The server checks the pattern itself; the model sees it.
    let mail = &all[1];
    let shown = mail.input_schema()["properties"]["to"]["pattern"].to_string();
    assert!(shown.contains("(?!"), "{shown}");
    assert_eq!(check_input(&**mail, &json!({"to": "a@b"})), Ok(()));
    assert!(check_input(&**mail, &json!({"to": 5})).is_err());
    let broken = tools.tool(&tool_def("broken"), "small", "broken");
    let message = broken.map(|_| ()).expect_err("no schema");
    assert!(
        message.contains("`broken` of the MCP server `small`"),
        "{message}"
    );
    assert!(
        message.contains("its input schema cannot be used"),
        "{message}"
    );
    let doubling = tools.tool(&tool_def("doubling"), "small", "doubling");
    let message = doubling.map(|_| ()).expect_err("too much");
    assert!(message.contains("more than 20000 steps"), "{message}");
    let missing = tools.tool(&tool_def("ecko"), "small", "ecko");
    let message = missing.map(|_| ()).expect_err("no such tool");
    assert!(
        message.contains("has no tool `ecko`; write: one of `echo`"),
        "{message}"
    );
}

#[tokio::test]
async fn all_failing_servers_are_reported_together() {
    let fixture = ServerFixture::new();
    let mut never = fixture.def("never", &[]);
    never.start_timeout_ms = 1_000;
    let defs = [
        ("a".to_owned(), fixture.def("dies", &[])),
        ("b".to_owned(), fixture.def("good", &[])),
        ("c".to_owned(), never),
    ];
    let bad = fixture.servers.open(&defs.into()).await;
    let bad = bad.map(|_| ()).expect_err("two are wrong");
    let names: Vec<&str> = bad.iter().map(|bad| bad.server.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test]
async fn flood_in_a_call_ends_the_connection_and_restarts() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let failed = run(&tools, "pour", json!({})).await.expect_err("a failure");
    assert_eq!(
        failed.message,
        "The tool's server disconnected during the call."
    );
    // Restarted after half a second.
    for _ in 0..40 {
        if run(&tools, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("it did not restart");
}
