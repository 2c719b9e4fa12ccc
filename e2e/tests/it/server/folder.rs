//! The data folder: one server at a time, only with a database version that the server supports, and
//! only as long as it is there.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::script::ScriptStep;
use turnwire_testkit::server::{ServerOptions, TestServer};

/// Starts a server on a folder and must be refused; gives what it said.
async fn refused(home: std::path::PathBuf) -> String {
    let options = ServerOptions {
        home: Some(home),
        ..ServerOptions::default()
    };
    let started = std::time::Instant::now();
    let error = TestServer::try_start(options, Journal::new())
        .await
        .expect_err("it must not come up");
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    assert!(
        error.status.is_some_and(|status| !status.success()),
        "{error}"
    );
    assert!(!error.stderr.contains("panicked"), "{error}");
    error.stderr
}

#[tokio::test]
async fn second_server_on_same_folder_is_refused() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let error_text = refused(fixture.server.home()).await;
    assert!(
        error_text.contains("another")
            || error_text.contains("in use")
            || error_text.contains("already"),
        "{error_text}"
    );
    fixture.turn("still there?").await;
    fixture.check_history().await;
}

/// Checks that the metrics tell the same as `/readyz`.
async fn check_ready_metric(fixture: &ServerFixture, ready: u8) {
    let metrics = fixture.api.get("/metrics").await.expect("metrics").body;
    let line = format!("\nturnwire_server_ready {ready}\n");
    assert!(metrics.contains(&line), "{metrics}");
}

/// Checks that the server refuses turns because its folder is lost, and has said so `times` times.
async fn check_lost(fixture: &ServerFixture, times: usize) {
    let refused = fixture.api.try_submit(fixture.session, "lost?").await;
    let ready = fixture.api.get("/readyz").await;
    for answer in [refused, ready] {
        let answer = answer.expect("an answer");
        let code = answer.code();
        assert_eq!((answer.status, code.as_str()), (503, "data_folder_lost"));
    }
    check_ready_metric(fixture, 0).await;
    let alive = fixture.api.get("/healthz").await.expect("an answer");
    assert_eq!(alive.status, 200);
    let log = fixture.server.stderr();
    let lines = log.lines().filter(|line| line.contains("ERROR"));
    let told = lines.filter(|line| line.contains("while the server runs"));
    assert_eq!(told.count(), times, "{log}");
}

#[tokio::test]
async fn removed_lock_file_admits_no_second_server() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    std::fs::remove_file(fixture.server.home().join("lock")).expect("removed");
    let error_text = refused(fixture.server.home()).await;
    assert!(error_text.contains("in use"), "{error_text}");
    // The folder itself is locked: the server goes on.
    let ready = fixture.api.get("/readyz").await.expect("an answer");
    assert_eq!(ready.status, 200, "{}", ready.body);
    fixture.turn("y").await;
    fixture.check_history().await;
}

#[tokio::test]
async fn lost_data_folder_refuses_turns_until_it_is_back() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    let home = fixture.server.home();
    let moved = home.with_extension("moved");
    std::fs::rename(&home, &moved).expect("moved");
    check_lost(&fixture, 1).await;
    let error_text = refused(moved.clone()).await;
    assert!(error_text.contains("in use"), "{error_text}");
    std::fs::rename(&moved, &home).expect("moved back");
    let ready = fixture.api.get("/readyz").await.expect("an answer");
    assert_eq!(ready.status, 200, "{}", ready.body);
    check_ready_metric(&fixture, 1).await;
    fixture.turn("y").await;
    fixture.check_history().await;
    std::fs::remove_dir_all(&home).expect("removed");
    check_lost(&fixture, 2).await;
}

#[tokio::test]
async fn fifo_or_link_in_place_of_a_file_is_refused() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    fixture.server.kill().await;
    let home = fixture.server.home();
    let target = fixture.server.folder().join("target");
    for name in ["turnwire.sqlite3-mark", "reserve", "lock"] {
        let (path, aside) = (home.join(name), home.with_extension("aside"));
        std::fs::rename(&path, &aside).expect("moved aside");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        let error_text = refused(home.clone()).await;
        let named = format!("{} is a FIFO", path.display());
        assert!(error_text.contains(&named), "{error_text}");
        std::fs::remove_file(&path).expect("removed");

        std::fs::write(&target, "precious").expect("a file");
        symlink(&target, &path).expect("a link");
        let error_text = refused(home.clone()).await;
        assert!(error_text.contains("a symbolic link"), "{error_text}");
        let kept = std::fs::read_to_string(&target).expect("readable");
        assert_eq!(kept, "precious", "the target of {name}");
        std::fs::remove_file(&path).expect("removed");
        std::fs::rename(&aside, &path).expect("moved back");
    }
    fixture.server.run().await.expect("it is as it was");
    fixture.check_history().await;
}

/// The database of a folder.
fn database(home: &std::path::Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(home)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path());
    let mut databases = files.filter(|path| {
        let mut head = [0u8; 15];
        let read = std::fs::File::open(path)
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
        read.is_ok() && &head == b"SQLite format 3"
    });
    databases.next().expect("a database")
}

#[tokio::test]
async fn newer_database_is_refused_with_advice() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    fixture.server.sigterm();
    assert!(fixture.server.wait(Duration::from_secs(60)).await.success());
    let path = database(&fixture.server.home());
    // The version is a big-endian number in the header (`PRAGMA user_version`).
    let mut bytes = std::fs::read(&path).expect("readable");
    let old = bytes[60..64].to_vec();
    assert_ne!(old, [0; 4], "the store has a version from the first day");
    bytes[60..64].copy_from_slice(&9_999u32.to_be_bytes());
    std::fs::write(&path, &bytes).expect("writable");
    let error_text = refused(fixture.server.home()).await;
    assert!(error_text.contains("newer"), "{error_text}");
    bytes[60..64].copy_from_slice(&old);
    std::fs::write(&path, &bytes).expect("writable");
    fixture.server.run().await.expect("it is as it was");
    fixture.check_history().await;
}

#[tokio::test]
async fn non_database_file_is_refused_and_untouched() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    fixture.server.sigterm();
    assert!(fixture.server.wait(Duration::from_secs(60)).await.success());
    let path = database(&fixture.server.home());
    let original = std::fs::read(&path).expect("readable");
    let garbage = b"this is no database, and nobody should write over it".repeat(100);
    std::fs::write(&path, &garbage).expect("writable");
    let error_text = refused(fixture.server.home()).await;
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    assert!(
        error_text.contains(name),
        "it says which file: {error_text}"
    );
    assert_eq!(std::fs::read(&path).expect("readable"), garbage);
    std::fs::write(&path, &original).expect("writable");
    fixture.server.run().await.expect("it is as it was");
    fixture.check_history().await;
}

#[tokio::test]
async fn unknown_setting_is_refused_with_its_place() {
    let options = ServerOptions::default().set("stream", "colour", "red");
    let error = TestServer::try_start(options, Journal::new())
        .await
        .expect_err("it must not come up");
    assert!(
        error.stderr.contains("colour") && error.stderr.contains(":"),
        "{error}"
    );
    let options = ServerOptions {
        env: vec![("TURNWIRE_STREAM_QUEUE_MAX".into(), "none".into())],
        ..ServerOptions::default()
    };
    let error = TestServer::try_start(options, Journal::new())
        .await
        .expect_err("it must not come up");
    assert!(
        error.stderr.contains("TURNWIRE_STREAM_QUEUE_MAX"),
        "{error}"
    );
}

#[tokio::test]
async fn non_loopback_address_is_refused() {
    let options = ServerOptions {
        env: vec![("TURNWIRE_LISTEN_ADDRESS".into(), "0.0.0.0:18421".into())],
        ..ServerOptions::default()
    };
    let error = TestServer::try_start(options, Journal::new())
        .await
        .expect_err("it must not come up");
    assert!(error.stderr.contains("loopback"), "{error}");
}

#[tokio::test]
async fn session_and_cursor_survive_a_kill() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let events = fixture.turn("x").await;
    let last = events.last().expect("an end").id;
    fixture.server.restart().await;
    let mut client = fixture.connect("back").await;
    let ask = turnwire_testkit::watch::SubscribeOptions::since(last)
        .filter(json!({"event_types": ["turn.started", "turn.completed"]}));
    let ack = client.subscribed(&ask).await.expect("the cursor works");
    assert_eq!(ack["replay_event_count"], 0);
    fixture.turn("y").await;
    fixture.check_history().await;
}
