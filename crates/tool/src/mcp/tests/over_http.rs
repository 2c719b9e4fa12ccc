//! Servers over HTTP: calls, restarts, bad responses and broken streams.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use turnwire_event::Body;
use turnwire_event::code::ToolErrorClass;
use turnwire_pack::{McpServer, McpTransport};

use super::support::{ServerFixture, def, program, run, tool, tool_def, until};
use crate::tests::support::{EventSink, LogCapture, call};

/// A server process; dropping it kills it.
struct HttpServer(Child);

impl HttpServer {
    /// Starts a server at a free port or at `port`.
    async fn start(fixture: &ServerFixture, mode: &str, port: Option<&str>) -> (Self, String) {
        let port_file = fixture.file("port");
        let _ = std::fs::remove_file(&port_file);
        let child = Command::new("python3")
            .arg(program())
            .arg(mode)
            .arg("--journal")
            .arg(fixture.journal())
            .arg("--http")
            .arg(&port_file)
            .args(port.into_iter().flat_map(|port| ["--port", port]))
            .stdin(Stdio::null())
            .spawn()
            .expect("python3 is there");
        let started = Self(child);
        until("the port is written", || port_file.exists()).await;
        let port = std::fs::read_to_string(&port_file).expect("a port");
        (started, port)
    }
}

impl Drop for HttpServer {
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
    let fixture = ServerFixture::new();
    let (server, port) = HttpServer::start(&fixture, "good", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(tools.servers().collect::<Vec<_>>(), [("small", 16)]);
    assert_eq!(
        run(&tools, "echo", json!({"text": "hi"})).await,
        Ok(json!("hi"))
    );
    let sink = EventSink::with_room(1_000);
    let input = json!({"seconds": 0.5, "steps": 5});
    let done = tool(&tools, "slow").run(call(input, &sink)).await;
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
    let messages = fixture.messages();
    let heads: Vec<_> = messages
        .iter()
        .filter(|message| message["http"] == "POST")
        .collect();
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
    drop(tools);
    until("the session is ended", || {
        fixture
            .messages()
            .iter()
            .any(|message| message["http"] == "DELETE")
    })
    .await;
    drop(server);
}

#[tokio::test]
async fn dropped_call_over_http_is_cancelled_at_the_server() {
    let fixture = ServerFixture::new();
    let (_server, port) = HttpServer::start(&fixture, "good", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    let sink = EventSink::with_room(1_000);
    let running = tool(&tools, "slow").run(call(json!({"seconds": 60, "steps": 600}), &sink));
    let running = tokio::spawn(running);
    until("the server has the call", || {
        fixture.count("tools/call") == 1
    })
    .await;
    running.abort();
    until("the call is cancelled", || {
        fixture.count("notifications/cancelled") == 1
    })
    .await;
    assert_eq!(
        run(&tools, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
}

#[tokio::test]
async fn http_server_that_dies_fails_its_call_and_reconnects() {
    let fixture = ServerFixture::new();
    let (server, port) = HttpServer::start(&fixture, "good", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    let failed = run(&tools, "die", json!({})).await.expect_err("a failure");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(failed.message, "The tool's server broke off its response.");
    drop(server);
    let failed = run(&tools, "echo", json!({})).await.expect_err("away");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    let (_server, _) = HttpServer::start(&fixture, "good", Some(&port)).await;
    for _ in 0..60 {
        if run(&tools, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
    }
    panic!("it did not reconnect");
}

#[tokio::test]
async fn expired_session_is_renewed_within_the_call() {
    let fixture = ServerFixture::new();
    let (server, port) = HttpServer::start(&fixture, "good", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    drop(server);
    let (_server, _) = HttpServer::start(&fixture, "good", Some(&port)).await;
    assert_eq!(
        run(&tools, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
    assert_eq!(fixture.count("initialize"), 2);
}

// F14
#[tokio::test]
async fn bad_response_to_one_call_does_not_affect_another() {
    let fixture = ServerFixture::new();
    let (_server, port) = HttpServer::start(&fixture, "good", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    let sink = EventSink::with_room(1_000);
    let running = tool(&tools, "slow").run(call(json!({"seconds": 4, "steps": 8}), &sink));
    let running = tokio::spawn(running);
    until("the server has the call", || {
        fixture.count("tools/call") == 1
    })
    .await;
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
        let failed = run(&tools, "status", input).await.expect_err("a failure");
        assert_eq!(failed.message, message, "{code} {body}");
    }
    let failed = run(&tools, "cut", json!({})).await.expect_err("a failure");
    assert_eq!(failed.message, "The tool's server broke off its response.");
    assert_eq!(
        running.await.expect("it ran"),
        Ok(json!("slowly done")),
        "{:?}",
        fixture.messages()
    );
    assert_eq!(fixture.count("initialize"), 1, "the session was kept");
}

#[tokio::test]
async fn session_rejected_with_400_is_renewed() {
    let fixture = ServerFixture::new();
    let (server, port) = HttpServer::start(&fixture, "forgets", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    drop(server);
    let (_server, _) = HttpServer::start(&fixture, "forgets", Some(&port)).await;
    for _ in 0..60 {
        if run(&tools, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    panic!("it did not reconnect");
}

#[tokio::test]
async fn connect_errors_over_http_say_what_is_wrong() {
    let fixture = ServerFixture::new();
    for (mode, expected) in [
        ("nonsense", "its answer is not MCP"),
        ("dies", "it answered HTTP 503"),
        ("moved", "redirects to another address; write that one"),
        (
            "refuses",
            "it rejected the handshake: the licence has run out",
        ),
    ] {
        let (_server, port) = HttpServer::start(&fixture, mode, None).await;
        let message = fixture.open_error(at(&port)).await;
        assert!(message.contains(expected), "{mode}: {message}");
        assert!(!message.contains("sk-secret"), "{message}");
    }
    let message = fixture.open_error(at("9")).await;
    assert!(
        message.contains("no server answers at its `url`"),
        "{message}"
    );
    let metadata = def(McpTransport::Http {
        url: "http://169.254.169.254/mcp".to_owned(),
        headers: Vec::new(),
    });
    let message = fixture.open_error(metadata).await;
    assert!(message.contains("is not allowed"), "{message}");
}

// F14
#[tokio::test]
async fn http_server_that_hangs_is_restarted_without_open_pings() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let (_server, port) = HttpServer::start(&fixture, "hangs", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut def = tool_def("echo");
    def.timeout_ms = Some(300);
    let echo = tools.tool(&def, "small", "echo").expect("a tool");
    let sink = EventSink::with_room(10);
    let failed = echo.run(call(json!({}), &sink)).await.expect_err("late");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
    until("it is pinged again", || fixture.count("ping") == 2).await;
    // The call and the first ping are closed when they are late.
    let gone = || {
        fixture
            .messages()
            .iter()
            .filter(|message| message["http"] == "gone")
            .count()
    };
    until("the first ping is ended", || gone() >= 2).await;
    until("the call is cancelled", || {
        fixture.count("notifications/cancelled") >= 2
    })
    .await;
    until("it is stopped", || {
        logs.log().contains("it does not respond to pings")
    })
    .await;
    until("it reconnects", || fixture.count("initialize") >= 2).await;
    until("no request is open", || gone() == 3).await;
}

// F14
#[tokio::test]
async fn busy_serial_server_is_kept_when_another_call_is_late() {
    let fixture = ServerFixture::new();
    let (_server, port) = HttpServer::start(&fixture, "serial", None).await;
    let tools = fixture
        .open(at(&port))
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    let timed = |remote_name: &str, timeout_ms: u64| {
        let mut def = tool_def(remote_name);
        def.timeout_ms = Some(timeout_ms);
        tools.tool(&def, "small", remote_name).expect("a tool")
    };
    let sink = EventSink::with_room(10);
    // Longer than two pings.
    let input = json!({"seconds": 14, "steps": 1});
    let long = tokio::spawn(timed("slow", 120_000).run(call(input, &sink)));
    until("the server has the call", || {
        fixture.count("tools/call") == 1
    })
    .await;
    let late = timed("echo", 300).run(call(json!({}), &sink)).await;
    assert_eq!(late.expect_err("late").class, ToolErrorClass::Timeout);
    assert_eq!(long.await.expect("it ran"), Ok(json!("slowly done")));
    assert!(fixture.count("ping") >= 1, "it was doubted");
    assert_eq!(
        run(&tools, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
    assert_eq!(fixture.count("initialize"), 1, "it was not left");
}

// F14
#[tokio::test]
async fn broken_streams_are_reopened_with_growing_pauses() {
    for mode in ["breaks", "ends"] {
        let fixture = ServerFixture::new();
        let (_server, port) = HttpServer::start(&fixture, mode, None).await;
        let tools = fixture
            .open(at(&port))
            .await
            .unwrap_or_else(|errors| panic!("{errors:?}"));
        let asked = || {
            fixture
                .messages()
                .iter()
                .filter(|message| message["http"] == "GET")
                .count()
        };
        until("the stream is reopened", || asked() >= 2).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        // The first pauses have 0.25 to 0.5, 0.5 to 1 and 1 to 2 s.
        assert!(asked() <= 6, "{mode}: {}", asked());
        assert_eq!(
            run(&tools, "echo", json!({"text": "a"})).await,
            Ok(json!("a"))
        );
    }
}
