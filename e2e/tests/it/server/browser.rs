//! The live page in a real browser: type, watch, scroll, stop, reload, lose the server. Needs `node`, `npm` and Chromium
//! (`CHROMIUM` names it if it is not /usr/bin/chromium).

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use turnwire_e2e::data_service::{FakeDataService, ServiceReply};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("browser")
}

fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(folder())
        .output()
        .unwrap_or_else(|why| panic!("{program} is needed for this test: {why}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{program} {arguments:?} ended with {}:\n{}\n{}",
        done.status,
        text(&done.stdout),
        text(&done.stderr)
    );
    text(&done.stdout)
}

fn install() {
    if !folder().join("node_modules").is_dir() {
        run("npm", &["ci"]);
    }
}

/// Drives the page of a server with one of the programs; gives its report.
async fn drive(server: &TestServer, program: &'static str) -> String {
    drive_with(server, program, &[]).await
}

/// The same, with `more` arguments.
async fn drive_with(server: &TestServer, program: &'static str, more: &[&'static str]) -> String {
    let more = more.to_vec();
    install();
    let profile = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}", server.addr());
    let profile_path = profile.path().to_str().expect("a path").to_owned();
    let driven = tokio::task::spawn_blocking(move || {
        run(
            "node",
            &[&[program, &url, &profile_path], more.as_slice()].concat(),
        )
    });
    let report = driven.await.expect("the browser's report");
    println!("{report}");
    report
}

// S3-084, S3-106
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_streams_stops_and_reloads_without_loss() {
    let words = "Some words, one after the other, so that there is something to see. ";
    let script = ModelScript::new()
        .on("^long", [ScriptStep::slow(words, 3, 40).repeat(20)])
        .on("^echo", [ScriptStep::text("{{user}}")])
        .on(
            "",
            [
                ScriptStep::slow(words, 4, 30),
                ScriptStep::text("This is the end."),
            ],
        );
    let server = TestServer::start(ServerOptions::script(script)).await;
    let report = drive(&server, "page.mjs").await;
    assert!(report.contains("\"messages\":10"), "{report}");
}

// S3-084, S3-091
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_shows_receipts_approvals_and_workers() {
    let programs = StubbornPrograms::new();
    let command = format!("command: {:?}", programs.command(StubbornKind::IgnoresTerm));
    let workshop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/workshop");
    let pack = TestPack::read(&workshop).expect("the workshop");
    let pack = pack.change("tools.yaml", "command: [sleep, \"{seconds}\"]", &command);
    let options = ServerOptions::pack(pack).set("tool", "grace_ms", 3000);
    let server = TestServer::start(options).await;
    let report = drive(&server, "workshop.mjs").await;
    assert!(report.contains("\"receipt\":2"), "{report}");
    assert_eq!(programs.processes(), [0; 0]);
}

// S3-084
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_shows_open_work_without_reading_the_log() {
    let workshop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/workshop");
    let pack = TestPack::read(&workshop).expect("the workshop");
    let researcher = "scripts/10-researcher.yaml";
    let pack = pack.change(researcher, "{pause_ms: 2000}", "{stall: true}");
    let input = r#"input: {text: "{{user}}"}"#;
    let slow_input = format!("{input}, fragments: 60, delay_ms: 150");
    let pack = pack.change("scripts/20-orchestrator.yaml", input, &slow_input);
    let note = |text: &str| ScriptStep::tool("take_note", json!({"note": text}));
    let pair = [
        note("one"),
        note("two"),
        ScriptStep::text("Both are decided."),
    ];
    let pair = ModelScript::new().on("^pair", pair).text();
    let pack = pack.put("scripts/05-pair.yaml", &pair);
    let server = TestServer::start(ServerOptions::pack(pack)).await;
    let report = drive(&server, "snapshot.mjs").await;
    assert!(report.contains("\"receipts\":2"), "{report}");
}

// S3-110
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_follows_the_end_and_resumes_after_cuts() {
    let lines = "A line of its own.\n".repeat(12);
    let words = "Some words, one after the other, so that there is something to see. ";
    let script = ModelScript::new()
        .on(
            "^tall",
            [
                ScriptStep::slow(&lines, 120, 5).repeat(3),
                ScriptStep::text("This is the end."),
            ],
        )
        .on(
            "^steady",
            [
                ScriptStep::slow(&lines, 5, 15).repeat(300),
                ScriptStep::stall(),
            ],
        )
        .on(
            "^long",
            [
                ScriptStep::slow(words, 3, 40).repeat(20),
                ScriptStep::text("THE END."),
            ],
        );
    let server = TestServer::start(ServerOptions::script(script)).await;
    let report = drive(&server, "follow.mjs").await;
    assert!(report.contains("\"messages\":16,\"cuts\":3"), "{report}");
}

// S3-110
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_takes_a_snapshot_when_its_cursor_is_refused() {
    let script = ModelScript::new().on("^echo", [ScriptStep::text("{{user}}")]);
    let options = ServerOptions::script(script.clone()).set("stream", "replay_max", 10);
    let server = TestServer::start(options).await;
    drive_with(&server, "behind.mjs", &["replay_too_large"]).await;
    let options = ServerOptions::script(script)
        .set("store", "retention_s", 1)
        .set("store", "retention_sweep_ms", 100);
    let server = TestServer::start(options).await;
    drive_with(&server, "behind.mjs", &["cursor_expired"]).await;
}

// S3-110
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_reconnects_to_a_restarted_server() {
    let script = ModelScript::new()
        .on(
            "^long",
            [
                ScriptStep::slow("word ", 5, 40).repeat(60),
                ScriptStep::stall(),
            ],
        )
        .on("^echo", [ScriptStep::text("{{user}}")]);
    let mut server = TestServer::start(ServerOptions::script(script)).await;
    install();
    let profile = tempfile::tempdir().expect("a folder");
    let mut node = Command::new("node")
        .arg("restart.mjs")
        .arg(format!("http://{}", server.addr()))
        .arg(profile.path())
        .current_dir(folder())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is needed for this test");
    let mut lines = BufReader::new(node.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert_eq!(first, "streaming");
    server.restart().await;
    let report: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let status = node.wait().expect("the end of node");
    assert!(status.success(), "{report:?}");
    assert_eq!(report, ["{\"messages\":4}"]);
}

// FR-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_shows_sub_agents_in_words_and_after_a_reload() {
    let ask = |agent: &str, query: &str| {
        ScriptStep::tool(&format!("ask_{agent}"), json!({"query": query}))
    };
    let orchestrator = "orchestrator";
    let script = ModelScript::new()
        .on_call(
            orchestrator,
            "^stall",
            1,
            [ask("shop", "stall"), ask("rewards", "stall")],
        )
        .on_call("shop", "stall", 1, [ScriptStep::stall()])
        .on_call("rewards", "stall", 1, [ScriptStep::stall()])
        .on_call(
            orchestrator,
            "^many",
            1,
            ["shop", "rewards", "support"].map(|agent| ask(agent, "quick")),
        )
        .on_call("shop", "quick", 1, [ScriptStep::text("one")])
        .on_call("rewards", "quick", 1, [ScriptStep::text("two")])
        .on_call(
            orchestrator,
            "^many",
            2,
            [ScriptStep::text("Two of three.")],
        )
        .on_call(orchestrator, "^data", 1, [ask("shop", "search")])
        .on_call(
            "shop",
            "search",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "oat milk"}),
            )],
        )
        .on_call("shop", "search", 2, [ScriptStep::text("nothing")])
        .on_call(
            orchestrator,
            "^data",
            2,
            [ScriptStep::text("Nothing found.")],
        )
        .on_call(orchestrator, "^broken", 1, [ScriptStep::error("provider")]);
    // The first attempt of a call fails and is repeated.
    let flaky = "\
- {when: {agent: orchestrator, user: '^flaky', attempt: 1}, steps: [{error: transport, retry: true}]}
- {when: {agent: orchestrator, user: '^flaky'}, steps: [{text: There I am.}]}
";
    let service = FakeDataService::start().await;
    service.set("offer_search", ServiceReply::http("503 Busy", &[], "later"));
    let pack = TestPack::market(&service.url()).script(&script);
    let pack = pack.put("scripts/05-flaky.yaml", flaky);
    let file = "pack.yaml";
    let pack = pack.change(file, "fan_out: {cap: 3}", "fan_out: {cap: 2}");
    let server = TestServer::start(ServerOptions::pack(pack)).await;
    let report = drive(&server, "subagents.mjs").await;
    assert!(report.contains("\"alarms\":1"), "{report}");
}
