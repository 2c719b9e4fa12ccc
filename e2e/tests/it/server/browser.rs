//! The live page in a real browser: type, watch, stop, reload. Needs `node`, `npm` and Chromium
//! (`CHROMIUM` names it if it is not /usr/bin/chromium).

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Drives the page of a server with one of the programs; gives its report.
async fn drive(server: &TestServer, program: &'static str) -> String {
    if !folder().join("node_modules").is_dir() {
        run("npm", &["ci"]);
    }
    let profile = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}", server.addr());
    let profile_path = profile.path().to_str().expect("a path").to_owned();
    let driven = tokio::task::spawn_blocking(move || run("node", &[program, &url, &profile_path]));
    let report = driven.await.expect("the browser's report");
    println!("{report}");
    report
}

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
