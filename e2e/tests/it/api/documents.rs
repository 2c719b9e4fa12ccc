//! The committed schemas satisfy redocly and ajv in strict mode, and so does everything that a live
//! server sends over both wires.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use turnwire_testkit::environment::{self, text};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::{ServerOptions, TestServer};

/// Runs a program of `e2e/api` with node and gives its report.
fn node(arguments: &[&str]) -> Value {
    let done = Command::new("node")
        .args(arguments)
        .current_dir(environment::javascript("api"))
        .output()
        .expect("node starts");
    assert!(done.status.success(), "{arguments:?}: {}", text(&done));
    serde_json::from_slice(&done.stdout).expect("a report")
}

fn schemas() -> String {
    let folder = environment::root().join("schema");
    folder.to_str().expect("a path").to_owned()
}

fn lint(document: &Path) -> (bool, String) {
    let folder = environment::javascript("api");
    let done = Command::new(folder.join("node_modules/.bin/redocly"))
        .args(["lint", "--config", "redocly.yaml", "--format", "stylish"])
        .arg(document)
        .current_dir(folder)
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .output()
        .expect("redocly starts");
    (done.status.success(), text(&done))
}

#[test]
fn linter_finds_nothing_in_the_document() {
    let committed = environment::root().join("schema/openapi.json");
    // Every recommendation is an error there, and a document with none is called valid.
    let (passed, output) = lint(&committed);
    assert!(passed && output.contains("is valid"), "{output}");
    let document = std::fs::read_to_string(committed).expect("the document");
    let mut document: Value = serde_json::from_str(&document).expect("JSON");
    document["components"]["schemas"]["Turn"]["properties"]["terminal"] = json!({ "$ref": "#/x" });
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("openapi.json");
    std::fs::write(&broken, document.to_string()).expect("a file");
    assert!(!lint(&broken).0);
}

/// Judges an AsyncAPI document: the counts of its parts, or what is wrong.
fn judge_streams(document: &Value) -> Result<Value, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("asyncapi.json");
    std::fs::write(&file, document.to_string()).expect("a file");
    let done = Command::new("node")
        .arg("asyncapi.mjs")
        .arg(&file)
        .current_dir(environment::javascript("api"))
        .output()
        .expect("node starts");
    match done.status.success() {
        true => Ok(serde_json::from_slice(&done.stdout).expect("counts")),
        false => Err(text(&done)),
    }
}

#[tokio::test]
async fn served_document_of_the_streams_is_valid_asyncapi() {
    let server = TestServer::start(ServerOptions::demo()).await;
    let answer = server.api().get("/asyncapi.json").await.expect("an answer");
    assert_eq!(answer.status, 200);
    let document = answer.json();
    let committed = std::fs::read(environment::root().join("schema/asyncapi.json"));
    let committed: Value = serde_json::from_slice(&committed.expect("a file")).expect("JSON");
    assert_eq!(document, committed);
    let counts = judge_streams(&document).expect("a valid document");
    assert_eq!(
        (&counts["channels"], &counts["operations"]),
        (&json!(5), &json!(6))
    );
    assert!(counts["messages"].as_u64() >= Some(45), "{counts}");
    // The judge says no.
    type Breakage = fn(&mut Value);
    let breakages: [(Breakage, &str); 4] = [
        (
            |document| document["asyncapi"] = json!("2.6.0"),
            "/asyncapi",
        ),
        (
            |document| document["operations"]["sendSessionFrame"]["action"] = json!("publish"),
            "/operations/sendSessionFrame/action",
        ),
        (
            |document| {
                document["components"]["schemas"]["SessionServer.Event"] =
                    json!({ "$ref": "#/nowhere" })
            },
            "#/nowhere leads nowhere",
        ),
        (
            |document| {
                document["operations"]["sendChat05Frame"]["channel"]["$ref"] =
                    json!("#/channels/chat04")
            },
            "is of another channel",
        ),
    ];
    for (break_it, expected) in breakages {
        let mut broken = document.clone();
        break_it(&mut broken);
        let refused = judge_streams(&broken).expect_err("a broken document");
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn strict_validator_compiles_every_schema() {
    let counts = node(&["strict.mjs", &schemas()]);
    let files = counts["files"].as_u64().expect("a count");
    assert!(files >= 18, "{counts}");
    assert!(counts["components"].as_u64() >= Some(150), "{counts}");
    assert!(counts["inline"].as_u64() >= Some(50), "{counts}");
}

/// Sends messages over both wires; every frame and body satisfies its schema. Gives the counts.
async fn talk(options: ServerOptions, messages: &[&'static str]) -> Value {
    let server = TestServer::start(options).await;
    let (url, schemas) = (format!("http://{}", server.addr()), schemas());
    let mut arguments: Vec<String> = vec!["live.mjs".to_owned(), url, schemas];
    arguments.extend(messages.iter().map(|&message| message.to_owned()));
    let driven = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        node(&arguments)
    });
    driven.await.expect("a report")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_components_and_data_satisfy_their_schemas() {
    let question = "any oat milk offers, and what is my points balance?";
    let counts = talk(ServerOptions::demo(), &[question]).await;
    for seen in [
        "component.rendered",
        "data.loaded",
        "0.5 component",
        "0.5 status",
        "0.5 completed",
        "0.4 data_loaded",
        "server subscribe_ack",
        "server subscribe_error",
        "server snapshot",
        "server pong",
        "close non_json",
        "close binary",
        "close session_deleted",
    ] {
        assert!(counts[seen].is_u64(), "{seen}: {counts}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_approvals_and_workers_satisfy_their_schemas() {
    let workshop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/workshop");
    let pack = TestPack::read(&workshop).expect("the workshop");
    let messages = ["take a note: buy milk", "find out about milk"];
    let counts = talk(ServerOptions::pack(pack), &messages).await;
    for seen in [
        "approval.requested",
        "approval.resolved",
        "delegate.started",
        "delegate.completed",
        "ApprovalList",
        "ApprovalsAnswered",
        "WorkerList",
    ] {
        assert!(counts[seen].is_u64(), "{seen}: {counts}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_failed_and_cut_turns_satisfy_their_schemas() {
    let text = "word ".repeat(400);
    let script = ModelScript::new()
        .on("^fail", [ScriptStep::error("internal")])
        .on(
            "^nap",
            [ScriptStep::tool(tool::SLEEP, json!({"ms": 60_000}))],
        )
        .on(
            "^type",
            [ScriptStep::slow_tool(
                tool::ECHO,
                json!({"text": text}),
                400,
                50,
            )],
        );
    let messages = [
        "fail",
        "cut:tool.called:nap",
        "cut:tool.use_input_delta:type",
    ];
    let counts = talk(ServerOptions::script(script), &messages).await;
    for seen in [
        "turn.completed failed",
        "turn.cancelled REQUEST_CANCELLED",
        "client cancel",
        "server cancel_ack",
        "server cancel_error",
        "open tools",
        "open inputs",
        "resumed",
        "0.5 error",
        "0.4 error",
        "0.5 resumed to cancelled",
        "0.4 resumed to error",
    ] {
        assert!(counts[seen].is_u64(), "{seen}: {counts}");
    }
}
