//! Clients that others' generators make of the document compile, and talk to the live server.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use turnwire_testkit::environment::{self, text};
use turnwire_testkit::server::{ServerOptions, TestServer};

/// The messages that the clients send to the demo pack.
const MESSAGES: [&str; 2] = [
    "any oat milk offers, and what is my points balance?",
    "hello",
];

/// Runs a command, which must succeed, and gives its output.
fn run(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(done.status.success(), "{command:?}: {}", text(&done));
    String::from_utf8(done.stdout).expect("text")
}

/// The document of the server, on a file.
async fn document(server: &TestServer, folder: &Path) -> String {
    let answer = server.api().get("/openapi.json").await.expect("an answer");
    let path = folder.join("openapi.json");
    std::fs::write(&path, answer.body).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// Runs a generated client in a thread and parses its report.
async fn report(mut client: Command, server: &TestServer) -> Value {
    client
        .arg(format!("http://{}", server.addr()))
        .args(MESSAGES);
    let output = tokio::task::spawn_blocking(move || run(&mut client)).await;
    serde_json::from_str(&output.expect("a client")).expect("a report")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typescript_client_compiles_and_talks_to_the_server() {
    let server = TestServer::start(ServerOptions::demo()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let document = document(&server, folder.path()).await;
    let tools = environment::javascript("api");
    let modules = tools.join("node_modules");
    symlink(&modules, folder.path().join("node_modules")).expect("a link");
    for file in ["client.ts", "tsconfig.json", "package.json"] {
        std::fs::copy(tools.join(file), folder.path().join(file)).expect("a copy");
    }
    run(Command::new(modules.join(".bin/openapi-typescript"))
        .args([&document, "--output", "api.ts"])
        .current_dir(folder.path()));
    let compiler = modules.join(".bin/tsc");
    run(Command::new(&compiler).current_dir(folder.path()));
    misuse_is_refused(&compiler, &folder);
    let mut client = Command::new("node");
    client.arg(folder.path().join("out/client.js"));
    let report = report(client, &server).await;
    assert_eq!(report["endings"], json!(["ok", "ok"]), "{report}");
    assert_eq!(report["problem"], "turn_not_found", "{report}");
    let completed = json!(["completed", "completed"]);
    assert_eq!(report["chats"], completed, "streamed and resumed");
    let lines = report["lines"].as_array().expect("lines");
    assert!(
        lines.contains(&json!("component of render_points_card")),
        "{report}"
    );
}

/// The types are types: a member of another event does not compile.
fn misuse_is_refused(compiler: &Path, folder: &TempDir) {
    let path = folder.path().join("client.ts");
    let client = std::fs::read_to_string(&path).expect("the client");
    let right = "event.payload.tool_call.name";
    let wrong = client.replace(right, "event.payload.tool_use_id");
    assert_ne!(wrong, client);
    std::fs::write(&path, wrong).expect("a file");
    let done = Command::new(compiler)
        .args(["--noEmit"])
        .current_dir(folder.path())
        .output()
        .expect("the compiler starts");
    assert!(!done.status.success(), "{}", text(&done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_client_imports_and_talks_to_the_server() {
    let server = TestServer::start(ServerOptions::demo()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let document = document(&server, folder.path()).await;
    let programs = environment::python("api").join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = vec![programs.clone()];
    paths.extend(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).expect("paths");
    // It formats what it wrote with a program of its environment.
    run(Command::new(programs.join("openapi-python-client"))
        .args(["generate", "--path", &document, "--meta", "none"])
        .args(["--output-path", "turnwire_api", "--fail-on-warning"])
        .current_dir(folder.path())
        .env("PATH", path));
    let mut client = Command::new(programs.join("python"));
    client
        .arg(environment::root().join("e2e/api/client.py"))
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let report = report(client, &server).await;
    let ended = json!(["turn.completed", "ok"]);
    assert_eq!(report["endings"], json!([ended, ended]), "{report}");
    assert_eq!(report["problem"], "turn_not_found", "{report}");
    assert_eq!(
        report["components"],
        json!(["render_points_card"]),
        "{report}"
    );
    let completed = json!(["completed", "completed"]);
    assert_eq!(report["chats"], completed, "streamed and resumed");
    assert_eq!(report["deleted"], 204, "{report}");
}
