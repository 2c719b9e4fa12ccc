//! Damage of the database's files between two runs: lost commits begin a new epoch and are told, a
//! torn tail is cut, a database page that cannot be read quarantines its session, damage that concerns all
//! sessions makes the server not ready, and a missing database stops the start.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rusqlite::Connection;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Event, Position, SessionId};
use turnwire_testkit::chat::{ChatStream, CursorPlacement};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer, binary};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

/// Turns of a session before the server is killed.
const TURNS: usize = 6;

/// A file of the database.
fn file(server: &TestServer, suffix: &str) -> PathBuf {
    server.home().join(format!("turnwire.sqlite3{suffix}"))
}

fn flip(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 1], at).expect("written");
}

fn verify(server: &TestServer, session: SessionId) -> Output {
    let mut command = Command::new(binary());
    command.args(["verify", &session.to_string(), "--data"]);
    let output = command.arg(server.home()).output();
    output.expect("the command runs")
}

/// A session with some turns, whose server was killed; with the events that clients have seen, and
/// the bytes that the WAL had after each turn.
async fn killed_after_turns() -> (ServerFixture, Vec<Event>, Vec<u64>) {
    let script = ModelScript::new().on("", [ScriptStep::text("a few words")]);
    let mut fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let mut wal_bytes = Vec::new();
    for turn in 0..TURNS {
        fixture.turn(&format!("turn {turn}")).await;
        let wal = file(&fixture.server, "-wal").metadata();
        wal_bytes.push(wal.expect("a WAL").len());
    }
    let seen = fixture.log().await;
    fixture.server.kill().await;
    (fixture, seen, wal_bytes)
}

/// Subscribes after `since`, and returns the code of the refusal.
async fn refusal(fixture: &ServerFixture, since: Position) -> String {
    let mut client: WatchClient = fixture.connect("with an old cursor").await;
    let frame = SubscribeOptions::since(since).frame();
    client.send(&frame).await.expect("sent");
    loop {
        match client.next().await.expect("an answer") {
            WatchFrame::Frame(answer) if answer["type"] == "subscribe_error" => {
                return answer["code"].as_str().unwrap_or_default().to_owned();
            }
            WatchFrame::Frame(answer) => assert_ne!(answer["type"], "subscribe_ack"),
            WatchFrame::Event(event) => panic!("an event for an old cursor: {:?}", event.id),
        }
    }
}

/// Starts the server after damage, and checks that every client is told.
async fn check_loss(fixture: &mut ServerFixture, seen: &[Event]) {
    let found = verify(&fixture.server, fixture.session);
    let report = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(1), "before the start: {report}");
    fixture.server.run().await.expect("it comes up");
    let log = fixture.server.stderr();
    let lines = log.lines().filter(|line| line.contains("ERROR"));
    let told: Vec<&str> = lines.collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("WAL") && told[0].contains("-wal.damaged"),
        "{told:?}"
    );

    let last = seen.last().expect("events").id;
    for cursor in [seen[0].id, last] {
        assert_eq!(refusal(fixture, cursor).await, "cursor_expired", "{cursor}");
        let path = format!("/sessions/{}/events?since={cursor}", fixture.session);
        let answer = fixture.api.get(&path).await.expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (410, "cursor_expired")
        );
    }
    // The turns that are left, of which the last may be open again, and one that is new.
    let turn = seen.iter().find_map(|event| event.turn_id).expect("a turn");
    let (api, placement) = (&fixture.api, CursorPlacement::Header);
    let resumed = ChatStream::resume(api, "sse", turn, Some(last.into()), placement, None).await;
    let refused = resumed.expect_err("an old cursor");
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (410, "cursor_expired")
    );
    let new = fixture.turn("after the damage").await;
    let seen_ids: Vec<Position> = seen.iter().map(|event| event.id).collect();
    for event in &new {
        assert!(
            !seen_ids.contains(&event.id),
            "{} was given twice",
            event.id
        );
        assert_eq!(event.id.epoch.0, last.epoch.0 + 1);
    }
    // What is left is what was there.
    for event in fixture.log().await {
        let before = seen.iter().find(|seen| seen.id == event.id);
        assert!(before.is_none_or(|before| *before == event), "{}", event.id);
    }
    let metrics = fixture.api.get("/metrics").await.expect("metrics").body;
    let lost = metrics
        .lines()
        .find(|line| line.starts_with("turnwire_log_wal_frames_lost_total"));
    let lost = lost.and_then(|line| line.split(' ').next_back()?.parse().ok());
    assert!(lost.is_some_and(|lost: f64| lost > 0.0), "{lost:?}");
    let found = verify(&fixture.server, fixture.session);
    let report = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(1), "{report}");
    assert!(report.contains("WAL"), "{report}");

    // Once: the next start finds nothing new.
    fixture.server.restart().await;
    assert_eq!(fixture.server.stderr().matches("ERROR").count(), 1);
    let again = fixture.turn("once more").await;
    assert_eq!(again[0].id.epoch, new[0].id.epoch);
}

// F2
#[tokio::test]
async fn damaged_wal_frame_begins_an_epoch_and_is_told() {
    let (mut fixture, seen, wal_bytes) = killed_after_turns().await;
    let wal = file(&fixture.server, "-wal");
    flip(&wal, (wal_bytes[1] + wal_bytes[2]) / 2);
    let damaged = fs::read(&wal).expect("a WAL");
    check_loss(&mut fixture, &seen).await;
    let copy = fs::read(file(&fixture.server, "-wal.damaged")).expect("a copy");
    assert!(copy == damaged, "the copy is the WAL as it was found");
}

// F2
#[tokio::test]
async fn damage_is_proved_by_the_wal_alone() {
    let (mut fixture, seen, wal_bytes) = killed_after_turns().await;
    fs::remove_file(file(&fixture.server, "-mark")).expect("removed");
    fs::remove_file(file(&fixture.server, "-shm")).expect("removed");
    flip(&file(&fixture.server, "-wal"), wal_bytes[1] + 100);
    check_loss(&mut fixture, &seen).await;
}

// F2
#[tokio::test]
async fn cut_wal_begins_an_epoch_and_is_told() {
    let (mut fixture, seen, wal_bytes) = killed_after_turns().await;
    let wal = File::options()
        .write(true)
        .open(file(&fixture.server, "-wal"));
    wal.and_then(|wal| wal.set_len(wal_bytes[3])).expect("cut");
    check_loss(&mut fixture, &seen).await;
}

// F2
#[tokio::test]
async fn torn_tail_of_an_unacknowledged_commit_is_cut_silently() {
    let (mut fixture, seen, _) = killed_after_turns().await;
    // Half of a frame, as a process leaves it that is killed while it writes.
    let wal = file(&fixture.server, "-wal");
    let mut bytes = fs::read(&wal).expect("a WAL");
    bytes.extend_from_within(bytes.len() - 4_120..bytes.len() - 2_000);
    fs::write(&wal, bytes).expect("written");
    fixture.server.run().await.expect("it comes up");
    assert!(
        !fixture.server.stderr().contains("ERROR"),
        "{}",
        fixture.server.stderr()
    );
    let last = seen.last().expect("events").id;
    let mut client = fixture.connect("back").await;
    let ack = client.subscribed(&SubscribeOptions::since(last)).await;
    ack.expect("the cursor works");
    fixture.turn("as if nothing had been").await;
    assert_eq!(
        verify(&fixture.server, fixture.session).status.code(),
        Some(0)
    );
    fixture.check_history().await;
}

#[tokio::test]
async fn damaged_database_page_quarantines_its_session() {
    let script = ModelScript::new().on("", [ScriptStep::text("a few words")]);
    let mut fixture = ServerFixture::new(ServerOptions::script(script)).await;
    for turn in 0..3 * TURNS {
        fixture.turn(&format!("turn {turn}")).await;
    }
    fixture.server.sigterm();
    let status = fixture.server.wait(Duration::from_secs(30)).await;
    assert!(status.success(), "{status}");
    // The page of an early event, which only reads of this session touch.
    let path = file(&fixture.server, "");
    let mut bytes = fs::read(&path).expect("a database");
    let event = b"{\"id\":\"evt_00010000000003\"";
    // A leaf of the table: the root may still have the bytes of events that moved to a leaf.
    let leaf = bytes.chunks(4_096).position(|page| {
        let mut windows = page.windows(event.len());
        page[0] == 0x0d && windows.any(|window| window == event)
    });
    let page = leaf.expect("the event") * 4_096;
    bytes[page..page + 100].fill(0);
    fs::write(&path, bytes).expect("written");

    fixture.server.run().await.expect("it comes up");
    let path = format!("/sessions/{}/events", fixture.session);
    for _ in 0..2 {
        let answer = fixture.api.get(&path).await.expect("an answer");
        let code = answer.code();
        assert_eq!((answer.status, code.as_str()), (503, "session_quarantined"));
    }
    let metrics = fixture.api.get("/metrics").await.expect("metrics").body;
    let found = "\nturnwire_session_damaged_total 1\n";
    assert!(metrics.contains(found), "{metrics}");
    let answer = fixture.api.try_submit(fixture.session, "hello?").await;
    assert_eq!(answer.expect("an answer").status, 503);
    // Other sessions are served.
    let other = fixture.api.create().await.expect("a session");
    let turn = fixture.api.submit(other, "hello").await.expect("a turn");
    let ended = fixture.api.ended(turn.turn_id).await.expect("an end");
    assert_eq!(ended["terminal"]["payload"]["status"], "ok", "{ended}");
}

/// Overwrites the root page of a table or an index of a stopped server.
fn damage_root(server: &TestServer, name: &str) {
    let path = file(server, "");
    let (root, page_bytes): (u64, u64) = {
        let database = Connection::open(&path).expect("a database");
        let sql = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?1";
        let found = database.query_row(sql, [name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        let (root, page_bytes) = found.expect("a root page");
        (root as u64, page_bytes as u64)
    };
    let database = File::options().write(true).open(&path).expect("a file");
    let garbage = vec![0xa5; page_bytes as usize];
    database
        .write_all_at(&garbage, (root - 1) * page_bytes)
        .expect("written");
}

/// A session with a turn, whose server has shut down cleanly.
async fn closed_after_a_turn() -> ServerFixture {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    fixture.server.sigterm();
    let status = fixture.server.wait(Duration::from_secs(30)).await;
    assert!(status.success(), "{status}");
    fixture
}

#[tokio::test]
async fn damaged_shared_index_is_damage_of_the_database() {
    let mut fixture = closed_after_a_turn().await;
    damage_root(&fixture.server, "turn_open");
    fixture.server.run().await.expect("it comes up");
    let api = &fixture.api;
    let other = api.create().await.expect("a session");
    for session in [fixture.session, fixture.session, other] {
        let answer = api.try_submit(session, "hello?").await.expect("an answer");
        let code = answer.code();
        assert_eq!((answer.status, code.as_str()), (503, "database_damaged"));
        assert!(!answer.body.contains("not affected"), "{}", answer.body);
    }
    let created = api.send(hyper::Method::POST, "/sessions", None).await;
    assert_eq!(created.expect("an answer").code(), "database_damaged");
    let ready = api.get("/readyz").await.expect("an answer");
    assert_eq!(
        (ready.status, ready.code().as_str()),
        (503, "database_damaged")
    );
    let log = fixture.server.stderr();
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("ERROR") && line.contains("integrity_check"))
        .collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("turnwire.sqlite3"), "{told:?}");
}

#[tokio::test]
async fn damage_that_stops_the_start_names_the_database() {
    for name in ["turn", "turn_queued"] {
        let mut fixture = closed_after_a_turn().await;
        damage_root(&fixture.server, name);
        let error = fixture.server.run().await.expect_err("it must not come up");
        assert!(error.status.is_some_and(|status| !status.success()));
        let text = &error.stderr;
        let named = format!("{} is damaged", file(&fixture.server, "").display());
        assert!(text.contains(&named) && text.contains("backup"), "{text}");
        assert!(!text.contains("log of the session"), "{text}");
    }
}

/// The bytes of the files beside the database.
fn beside(server: &TestServer) -> [Option<Vec<u8>>; 2] {
    ["-wal", "-mark"].map(|suffix| fs::read(file(server, suffix)).ok())
}

#[tokio::test]
async fn missing_or_empty_database_is_refused_and_nothing_is_changed() {
    for is_killed in [true, false] {
        let (mut fixture, _, _) = killed_after_turns().await;
        if !is_killed {
            fixture.server.run().await.expect("it comes up");
            fixture.server.sigterm();
            let status = fixture.server.wait(Duration::from_secs(30)).await;
            assert!(status.success(), "{status}");
        }
        let database = file(&fixture.server, "");
        let copy = fs::read(&database).expect("a database");
        let left = beside(&fixture.server);
        let has_frames = left[0].as_ref().is_some_and(|wal| !wal.is_empty());
        assert_eq!((has_frames, left[1].is_some()), (is_killed, true));
        for is_empty in [true, false] {
            match is_empty {
                true => fs::write(&database, "").expect("emptied"),
                false => fs::remove_file(&database).expect("removed"),
            }
            let state = match is_empty {
                true => "turnwire.sqlite3 is empty",
                false => "turnwire.sqlite3 is missing",
            };
            let error = fixture.server.run().await.expect_err("it must not come up");
            let text = error.stderr;
            assert!(text.contains(state) && text.contains("-mark"), "{text}");
            assert!(text.contains("backup"), "{text}");
            let found = verify(&fixture.server, fixture.session);
            let text = String::from_utf8_lossy(&found.stderr).into_owned();
            assert_eq!(found.status.code(), Some(2), "{text}");
            assert!(text.contains(state), "{text}");
            let bytes = database.metadata().map(|found| found.len()).ok();
            assert_eq!(bytes, is_empty.then_some(0), "no file was created");
            assert!(beside(&fixture.server) == left, "nothing was changed");
        }
        fs::write(&database, &copy).expect("restored");
        fixture.server.run().await.expect("it is as it was");
        fixture.check_history().await;
    }
}

/// The mode of every file and folder of the data folder that is not private.
fn open_to_others(home: &Path) -> Vec<(PathBuf, u32)> {
    let files = fs::read_dir(home).expect("a folder").flatten();
    let paths = files.map(|entry| entry.path()).chain([home.to_owned()]);
    let modes = paths.map(|path| {
        let mode = path.metadata().map_or(0, |meta| meta.permissions().mode());
        (path, mode & 0o777)
    });
    modes.filter(|(_, mode)| mode & 0o077 != 0).collect()
}

#[tokio::test]
async fn data_folder_is_private_and_mended_at_the_start() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    let home = fixture.server.home();
    assert_eq!(open_to_others(&home), []);
    let written = fs::read_dir(&home).expect("a folder").count();
    assert!(written >= 6, "{written} files");
    assert!(
        !fixture.server.stderr().contains("WARN"),
        "{}",
        fixture.server.stderr()
    );
    fixture.server.kill().await;
    for entry in fs::read_dir(&home).expect("a folder").flatten() {
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(entry.path(), mode).expect("changed");
    }
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).expect("changed");
    fixture.server.run().await.expect("it comes up");
    assert_eq!(open_to_others(&home), []);
    let log = fixture.server.stderr();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("755") && told[0].contains("turnwire.sqlite3 (was 644)"),
        "{told:?}"
    );
    fixture.turn("y").await;
    fixture.check_history().await;
}
