//! What was deleted, or has expired, is in no file of the data folder some time later: a marker in
//! every place where content can be is searched in the bytes of all files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::SessionId;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;

const MARKER: &str = "Zq7-planted-marker";

/// The files of a folder that contain `marker`, with the number of times.
fn files_with(dir: &Path, marker: &str) -> Vec<(PathBuf, usize)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, marker));
            continue;
        }
        let Ok(bytes) = std::fs::read(&path) else {
            continue; // removed meanwhile
        };
        let marker = marker.as_bytes();
        let count = bytes.windows(marker.len()).filter(|part| *part == marker);
        match count.count() {
            0 => {}
            count => found.push((path, count)),
        }
    }
    found
}

async fn until_erased(home: &Path, marker: &str) {
    let started = Instant::now();
    loop {
        let found = files_with(home, marker);
        if found.is_empty() {
            return;
        }
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(60),
            "after {waited:?}: {found:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn script() -> ModelScript {
    let long = format!("{MARKER} and more. ").repeat(300);
    ModelScript::new()
        .on(
            "marked",
            [
                ScriptStep::thinking(&format!("{MARKER} thought"), "s"),
                ScriptStep::text(&format!("{MARKER} answer")),
                ScriptStep::tool(tool::ECHO, json!({ "text": format!("{MARKER} input") })),
                ScriptStep::text(&long),
            ],
        )
        .on(
            "other",
            [
                ScriptStep::tool(tool::ECHO, json!({"text": "x".repeat(700)})),
                ScriptStep::text(&"an answer without it. ".repeat(40)),
            ],
        )
}

/// A session whose metadata, messages, inputs, answers, tool calls and feedback have the marker.
async fn marked_session(fixture: &ServerFixture) -> SessionId {
    let api = &fixture.api;
    let body = json!({"metadata": {"note": MARKER}, "workspace_path": format!("/{MARKER}")});
    let created = api.post("/sessions", body).await.expect("an answer");
    let session = created.json()["session_id"]
        .as_str()
        .expect("an id")
        .parse();
    let session: SessionId = session.expect("an id");
    for round in 0..12 {
        // Between turns of another session, so that they share pages.
        let text = format!("marked {round}: {} {MARKER}", "words ".repeat(round * 40));
        for (session, text) in [(session, text), (fixture.session, "other".to_owned())] {
            let turn = api.submit(session, &text).await.expect("an answer");
            let row = api.ended(turn.turn_id).await.expect("an end");
            assert_eq!(row["state"], "completed", "{row}");
            let feedback = json!({"turn_id": turn.turn_id, "rating": "up", "comment": match session == fixture.session {
                true => "none".to_owned(),
                false => format!("{MARKER} comment"),
            }});
            let path = format!("/sessions/{session}/feedback");
            let answer = api.post(&path, feedback).await.expect("an answer");
            assert!(answer.status < 300, "{}", answer.body);
        }
    }
    let folder = fixture.server.home().join("work").join(session.to_string());
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("note"), MARKER).expect("a file");
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_session_leaves_no_byte_in_any_file() {
    let options = ServerOptions::script(script()).set("store", "erase_ms", 300);
    let fixture = ServerFixture::new(options).await;
    let session = marked_session(&fixture).await;
    let home = fixture.server.home();
    let before = files_with(&home, MARKER);
    assert!(before.len() >= 2, "{before:?}");
    let path = format!("/sessions/{session}");
    let answer = fixture.api.send(Method::DELETE, &path, None).await;
    assert_eq!(answer.expect("an answer").status, 204);
    until_erased(&home, MARKER).await;
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let done = "turnwire_log_background_done_timestamp_seconds{task=\"erasure\"}";
    let started = Instant::now();
    let mut metrics = metrics;
    while !metrics.contains(done) {
        assert!(started.elapsed() < Duration::from_secs(30), "{metrics}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    }
    // The other session is whole, and its next turn brings nothing back.
    fixture.turn("other").await;
    fixture.check_history().await;
    assert_eq!(files_with(&home, MARKER), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_before_a_kill_is_erased_after_the_start() {
    // The first run is killed before a pass begins.
    let options = ServerOptions::script(script()).set("store", "erase_ms", 2_000);
    let mut fixture = ServerFixture::new(options).await;
    let session = marked_session(&fixture).await;
    let path = format!("/sessions/{session}");
    let answer = fixture.api.send(Method::DELETE, &path, None).await;
    assert_eq!(answer.expect("an answer").status, 204);
    fixture.server.restart().await;
    let home = fixture.server.home();
    until_erased(&home, MARKER).await;
    fixture.check_history().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_events_leave_no_byte_in_any_file() {
    let options = ServerOptions::script(script())
        .set("store", "erase_ms", 300)
        .set("store", "retention_s", 2)
        .set("store", "retention_sweep_ms", 200);
    let fixture = ServerFixture::new(options).await;
    let turn = fixture.submit("other").await;
    fixture.api.ended(turn).await.expect("an end");
    for round in 0..40 {
        // A comment is in no record but its event.
        let comment = format!("{MARKER} {}", "words ".repeat(round));
        let feedback = json!({"turn_id": turn, "rating": "down", "comment": comment});
        let path = format!("/sessions/{}/feedback", fixture.session);
        let answer = fixture.api.post(&path, feedback).await.expect("an answer");
        assert!(answer.status < 300, "{}", answer.body);
    }
    let home = fixture.server.home();
    assert_ne!(files_with(&home, MARKER), []);
    until_erased(&home, MARKER).await;
    let kept = fixture
        .api
        .messages(fixture.session)
        .await
        .expect("messages");
    assert!(!kept.is_empty());
}
