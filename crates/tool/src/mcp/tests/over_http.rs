//! The same over HTTP.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use turnwire_event::Body;
use turnwire_event::code::ToolErrorClass;
use turnwire_pack::{McpServer, McpTransport};

use super::stage::{Stage, def, program, run, tool, tool_def, until};
use crate::test_support::{EventSink, LogCapture, call};

/// A server; dropping it ends it.
struct Http(Child);

impl Http {
    /// Starts one, at a port of its own or at `port`.
    async fn start(stage: &Stage, mode: &str, port: Option<&str>) -> (Self, String) {
        let port_file = stage.file("port");
        let _ = std::fs::remove_file(&port_file);
        let child = Command::new("python3")
            .arg(program())
            .arg(mode)
            .arg("--journal")
            .arg(stage.journal())
            .arg("--http")
            .arg(&port_file)
            .args(port.into_iter().flat_map(|port| ["--port", port]))
            .stdin(Stdio::null())
            .spawn()
            .expect("python3 is there");
        let started = Self(child);
        until("it says its port", || port_file.exists()).await;
        let port = std::fs::read_to_string(&port_file).expect("a port");
        (started, port)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn at(port: &str) -> McpServer {
    def(McpTransport::Http {
        url: format!("http://127.0.0.1:{port}/mcp"),
        headers: vec![("X-Key".to_owned(), "sk-secret".to_owned())],
    })
}

#[tokio::test]
async fn tools_are_listed_called_and_report_progress_over_http() {
    let stage = Stage::new();
    let (server, port) = Http::start(&stage, "good", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    assert_eq!(listed.servers().collect::<Vec<_>>(), [("small", 16)]);
    assert_eq!(
        run(&listed, "echo", json!({"text": "hi"})).await,
        Ok(json!("hi"))
    );
    let sink = EventSink::with_room(1_000);
    let input = json!({"seconds": 0.5, "steps": 5});
    let done = tool(&listed, "slow").run(call(input, &sink)).await;
    assert_eq!(done, Ok(json!("slowly done")));
    let taken = sink.emissions();
    let last = taken
        .iter()
        .rev()
        .find_map(|emission| match &emission.body {
            Body::McpSessionProgressed(step) => Some((step.progress, step.total)),
            _ => None,
        });
    assert_eq!(last, Some((5.0, Some(5.0))));
    let got = stage.got();
    let heads: Vec<_> = got.iter().filter(|got| got["http"] == "POST").collect();
    assert!(
        heads
            .iter()
            .all(|head| head["headers"]["x-key"] == "sk-secret")
    );
    let accept = &heads[0]["headers"]["accept"];
    assert_eq!(accept, "application/json, text/event-stream");
    let last = heads.last().expect("a call");
    assert_eq!(last["headers"]["mcp-protocol-version"], "2025-06-18");
    assert!(last["headers"]["mcp-session-id"].as_str().is_some());
    drop(listed);
    until("the session is ended", || {
        stage.got().iter().any(|got| got["http"] == "DELETE")
    })
    .await;
    drop(server);
}

#[tokio::test]
async fn dropped_call_over_http_is_cancelled_at_the_server() {
    let stage = Stage::new();
    let (_server, port) = Http::start(&stage, "good", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    let sink = EventSink::with_room(1_000);
    let running = tool(&listed, "slow").run(call(json!({"seconds": 60, "steps": 600}), &sink));
    let running = tokio::spawn(running);
    until("the server has the call", || stage.count("tools/call") == 1).await;
    running.abort();
    until("the server is told", || {
        stage.count("notifications/cancelled") == 1
    })
    .await;
    assert_eq!(
        run(&listed, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
}

#[tokio::test]
async fn http_server_that_dies_fails_its_call_and_reconnects() {
    let stage = Stage::new();
    let (server, port) = Http::start(&stage, "good", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    let failed = run(&listed, "die", json!({})).await.expect_err("a failure");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(failed.message, "The tool's server broke off its response.");
    drop(server);
    let failed = run(&listed, "echo", json!({})).await.expect_err("away");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    let (_server, _) = Http::start(&stage, "good", Some(&port)).await;
    for _ in 0..60 {
        if run(&listed, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
    }
    panic!("it was not had back");
}

#[tokio::test]
async fn expired_session_is_renewed_within_the_call() {
    let stage = Stage::new();
    let (server, port) = Http::start(&stage, "good", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    drop(server);
    let (_server, _) = Http::start(&stage, "good", Some(&port)).await;
    assert_eq!(
        run(&listed, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
    assert_eq!(stage.count("initialize"), 2);
}

// F14
#[tokio::test]
async fn bad_response_to_one_call_does_not_affect_another() {
    let stage = Stage::new();
    let (_server, port) = Http::start(&stage, "good", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    let sink = EventSink::with_room(1_000);
    let running = tool(&listed, "slow").run(call(json!({"seconds": 4, "steps": 8}), &sink));
    let running = tokio::spawn(running);
    until("the server has the call", || stage.count("tools/call") == 1).await;
    let refused = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"not today"}}"#;
    let json = "application/json";
    for (code, kind, body, message) in [
        (
            429,
            "text/plain",
            "",
            "The tool's server answered HTTP 429.",
        ),
        (401, json, "{}", "The tool's server answered HTTP 401."),
        (
            502,
            "text/html",
            "<p>",
            "The tool's server answered HTTP 502.",
        ),
        (
            400,
            "text/plain",
            "no",
            "The tool's server answered HTTP 400.",
        ),
        (400, json, refused, "not today"),
        (404, json, refused, "not today"),
        (
            200,
            "text/html",
            "<p>",
            "The tool's server sent a response that cannot be read.",
        ),
        (
            200,
            json,
            "[",
            "The tool's server sent a response that cannot be read.",
        ),
    ] {
        let input = json!({"code": code, "kind": kind, "body": body});
        let failed = run(&listed, "status", input).await.expect_err("a failure");
        assert_eq!(failed.message, message, "{code} {body}");
    }
    let failed = run(&listed, "cut", json!({})).await.expect_err("a failure");
    assert_eq!(failed.message, "The tool's server broke off its response.");
    assert_eq!(
        running.await.expect("it ran"),
        Ok(json!("slowly done")),
        "{:?}",
        stage.got()
    );
    assert_eq!(stage.count("initialize"), 1, "the session was kept");
}

#[tokio::test]
async fn session_rejected_with_400_is_renewed() {
    let stage = Stage::new();
    let (server, port) = Http::start(&stage, "forgets", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    drop(server);
    let (_server, _) = Http::start(&stage, "forgets", Some(&port)).await;
    for _ in 0..60 {
        if run(&listed, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    panic!("it was not had back");
}

#[tokio::test]
async fn connect_errors_over_http_say_what_is_wrong() {
    let stage = Stage::new();
    for (mode, expected) in [
        ("nonsense", "its answer is not MCP"),
        ("dies", "it answered HTTP 503"),
        ("moved", "redirects to another address; write that one"),
        (
            "refuses",
            "it rejected the handshake: the licence has run out",
        ),
    ] {
        let (_server, port) = Http::start(&stage, mode, None).await;
        let message = stage.refused(at(&port)).await;
        assert!(message.contains(expected), "{mode}: {message}");
        assert!(!message.contains("sk-secret"), "{message}");
    }
    let message = stage.refused(at("9")).await;
    assert!(
        message.contains("no server answers at its `url`"),
        "{message}"
    );
    let metadata = def(McpTransport::Http {
        url: "http://169.254.169.254/mcp".to_owned(),
        headers: Vec::new(),
    });
    let message = stage.refused(metadata).await;
    assert!(message.contains("is not allowed"), "{message}");
}

// F14
#[tokio::test]
async fn http_server_that_hangs_is_restarted_without_open_pings() {
    let logs = LogCapture::start();
    let stage = Stage::new();
    let (_server, port) = Http::start(&stage, "hangs", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    let mut def = tool_def("echo");
    def.timeout_ms = Some(300);
    let echo = listed.tool(&def, "small", "echo").expect("a tool");
    let sink = EventSink::with_room(10);
    let failed = echo.run(call(json!({}), &sink)).await.expect_err("late");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
    until("it is pinged again", || stage.count("ping") == 2).await;
    // The call and the first ping: each ended when it was late.
    let gone = || {
        stage
            .got()
            .iter()
            .filter(|got| got["http"] == "gone")
            .count()
    };
    until("the first ping is ended", || gone() >= 2).await;
    until("the server is told", || {
        stage.count("notifications/cancelled") >= 2
    })
    .await;
    until("it is left", || {
        logs.log().contains("it does not respond to pings")
    })
    .await;
    until("it is had back", || stage.count("initialize") >= 2).await;
    until("nothing waits on", || gone() == 3).await;
}

// F14
#[tokio::test]
async fn busy_serial_server_is_kept_when_another_call_is_late() {
    let stage = Stage::new();
    let (_server, port) = Http::start(&stage, "serial", None).await;
    let listed = stage
        .open(at(&port))
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    let timed = |theirs: &str, timeout_ms: u64| {
        let mut def = tool_def(theirs);
        def.timeout_ms = Some(timeout_ms);
        listed.tool(&def, "small", theirs).expect("a tool")
    };
    let sink = EventSink::with_room(10);
    // Longer than two pings wait.
    let input = json!({"seconds": 14, "steps": 1});
    let long = tokio::spawn(timed("slow", 120_000).run(call(input, &sink)));
    until("the server has the call", || stage.count("tools/call") == 1).await;
    let late = timed("echo", 300).run(call(json!({}), &sink)).await;
    assert_eq!(late.expect_err("late").class, ToolErrorClass::Timeout);
    assert_eq!(long.await.expect("it ran"), Ok(json!("slowly done")));
    assert!(stage.count("ping") >= 1, "it was doubted");
    assert_eq!(
        run(&listed, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
    assert_eq!(stage.count("initialize"), 1, "it was not left");
}

// F14
#[tokio::test]
async fn broken_streams_are_reopened_with_growing_pauses() {
    for mode in ["breaks", "ends"] {
        let stage = Stage::new();
        let (_server, port) = Http::start(&stage, mode, None).await;
        let listed = stage
            .open(at(&port))
            .await
            .unwrap_or_else(|bad| panic!("{bad:?}"));
        let asked = || {
            stage
                .got()
                .iter()
                .filter(|got| got["http"] == "GET")
                .count()
        };
        until("it is asked again", || asked() >= 2).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        // After 0.25, 0.75 and 1.75 s, and then later.
        assert!(asked() <= 6, "{mode}: {}", asked());
        assert_eq!(
            run(&listed, "echo", json!({"text": "a"})).await,
            Ok(json!("a"))
        );
    }
}
