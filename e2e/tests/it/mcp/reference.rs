//! The public reference MCP servers, as they are published: `server-everything` over pipes and
//! over streamable HTTP, `server-filesystem` over pipes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, until};
use turnwire_e2e::engine::{EngineFixture, only};
use turnwire_e2e::mcp::{McpScript, engine, program, said, service};
use turnwire_e2e::probe;
use turnwire_testkit::environment::javascript;
use turnwire_testkit::server::free_port;

/// The file that a reference server is.
fn file(name: &str) -> String {
    let modules = javascript("mcp").join("node_modules/@modelcontextprotocol");
    modules
        .join(name)
        .join("dist/index.js")
        .display()
        .to_string()
}

fn command(name: &str, args: &[&str]) -> Value {
    let mut command = vec!["node".to_owned(), file(name)];
    command.extend(args.iter().map(|&word| word.to_owned()));
    program(&command)
}

fn everything() -> Vec<McpScript<'static>> {
    let long = |duration: f64| json!({"duration": duration, "steps": 4});
    vec![
        ("echo", "everything_echo", json!({"message": "oats"})),
        ("sum", "everything_get-sum", json!({"a": 20, "b": 22})),
        ("badsum", "everything_get-sum", json!({"a": "x", "b": 22})),
        (
            "weather",
            "everything_get-structured-content",
            json!({"location": "Chicago"}),
        ),
        ("picture", "everything_get-tiny-image", json!({})),
        (
            "long",
            "everything_trigger-long-running-operation",
            long(2.0),
        ),
        (
            "endless",
            "everything_trigger-long-running-operation",
            long(600.0),
        ),
    ]
}

/// Everything that is asked of `server-everything`, whatever the way to it.
async fn tried(engine: &EngineFixture) {
    for (word, expected) in [
        ("echo", "Echo: oats"),
        ("sum", "42"),
        ("badsum", "The input does not fit"),
        ("weather", "temperature"),
        ("picture", "[an image, image/png"),
    ] {
        let (_, _, shown) = said(engine, word).await;
        assert!(shown.contains(expected), "{word}: {shown}");
    }
    let (_, reply, shown) = said(engine, "long").await;
    assert!(
        shown.contains("Long running operation completed"),
        "{shown}"
    );
    assert!(
        reply.count("mcp_session_progress") >= 2,
        "{:?}",
        reply.labels()
    );

    let session = engine.api.create().await.expect("a session");
    let accepted = engine.api.submit(session, "endless").await;
    let turn = accepted.expect("an answer").turn_id;
    until("it is called", || async {
        let events = engine.log(session).await;
        events.iter().any(|event| event["type"] == "tool.called")
    })
    .await;
    engine.api.cancel(turn).await.expect("an answer");
    let ended = engine.api.ended(turn).await.expect("an end");
    assert_eq!(ended["terminal"]["type"], "turn.cancelled", "{ended}");
    // It serves as before.
    let (_, _, shown) = said(engine, "echo").await;
    assert!(shown.contains("Echo: oats"), "{shown}");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let outcomes = metrics.by("turnwire_mcp_calls_total", "outcome");
    assert_eq!(outcomes.get("cancelled"), Some(&1), "{outcomes:?}");
    assert_eq!(metrics.sum("turnwire_mcp_server_restarts_total"), 0.0);
}

#[tokio::test]
async fn everything_server_works_over_pipes() {
    let server = command("server-everything", &["stdio"]);
    let mut says = everything();
    says.push(("probe", "everything_nothing", json!({})));
    let engine = engine("everything", &server, &says).await;
    // Every tool that it lists is shown to the model.
    let (_, _, shown) = said(&engine, "probe").await;
    let request = probe::asked(&shown);
    let tools = probe::tools(&request);
    let server_tools = tools.iter().filter(|name| name.starts_with("everything_"));
    assert!(server_tools.count() >= 10, "{tools:?}");
    tried(&engine).await;
}

/// `server-everything` over HTTP; dropping it ends it.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    async fn start(port: u16) -> Self {
        let child = Command::new("node")
            .args([&file("server-everything"), "streamableHttp"])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is there");
        let started = Self {
            child,
            url: format!("http://127.0.0.1:{port}/mcp"),
        };
        until("it listens", || async {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
        })
        .await;
        started
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn everything_server_works_over_http_and_after_restart() {
    let port = free_port().port();
    let server = Service::start(port).await;
    let engine = engine("everything", &service(&server.url), &everything()).await;
    tried(&engine).await;
    drop(server);
    let (session, _, shown) = said(&engine, "echo").await;
    assert!(!shown.contains("Echo: oats"), "{shown}");
    let events = engine.log(session).await;
    assert_eq!(
        only(&events, "tool.failed")["payload"]["error_class"],
        "internal"
    );
    let _server = Service::start(port).await;
    until("it is used again", || async {
        let (_, _, shown) = said(&engine, "echo").await;
        shown.contains("Echo: oats")
    })
    .await;
}

#[tokio::test]
async fn filesystem_server_respects_its_allowed_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    std::fs::write(root.join("note.txt"), "oats and milk").expect("a file");
    let at = |name: &str| -> String { root.join(name).display().to_string() };
    let outside = PathBuf::from("/etc/hostname").display().to_string();
    let says: Vec<McpScript<'_>> = vec![
        (
            "read",
            "files_read_text_file",
            json!({"path": at("note.txt")}),
        ),
        (
            "write",
            "files_write_file",
            json!({"path": at("new.txt"), "content": "bread"}),
        ),
        ("list", "files_list_directory", json!({"path": at("")})),
        ("outside", "files_read_text_file", json!({"path": outside})),
    ];
    let server = command("server-filesystem", &[&root.display().to_string()]);
    let engine = engine("files", &server, &says).await;
    let (_, _, shown) = said(&engine, "read").await;
    assert!(shown.contains("oats and milk"), "{shown}");
    let (_, _, _) = said(&engine, "write").await;
    let wrote = std::fs::read_to_string(root.join("new.txt"));
    assert_eq!(wrote.expect("a file"), "bread");
    let (_, _, shown) = said(&engine, "list").await;
    assert!(shown.contains("new.txt"), "{shown}");
    let (session, _, shown) = said(&engine, "outside").await;
    assert!(shown.contains("denied"), "{shown}");
    let events = engine.log(session).await;
    assert_eq!(
        only(&events, "tool.failed")["payload"]["error_class"],
        "internal"
    );
}
