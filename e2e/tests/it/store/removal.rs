//! Deleting a large session: the answer does not wait for the rows, other writes go on, a kill in the
//! middle changes nothing, and the file shrinks.

use std::process::Command;
use std::time::{Duration, Instant};

use hyper::Method;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{self, ServerOptions};

use super::big_database::{add_events, database, number, stop};

const EVENTS: i64 = 150;
const EVENT_BYTES: i64 = 1 << 20;
const LEFT: &str = "SELECT count(*) FROM event WHERE seq >= 1000000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_session_is_removed_behind_other_writes() {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    let mut fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let large = fixture.api.create().await.expect("a session");
    stop(&mut fixture.server).await;
    let home = fixture.server.home();
    add_events(&home, large, EVENTS, EVENT_BYTES);
    fixture.server.run().await.expect("a start");
    let reader = database(&home);
    let file = home.join("turnwire.sqlite3");
    let bytes = || std::fs::metadata(&file).expect("a file").len() as i64;
    assert_eq!(number(&reader, LEFT), EVENTS);
    let path = format!("/sessions/{large}");
    let answer = fixture.api.send(Method::DELETE, &path, None).await;
    assert_eq!(answer.expect("an answer").status, 204);
    assert!(number(&reader, LEFT) > 0, "the rows go after the answer");
    let gone = fixture.api.get(&path).await.expect("an answer");
    assert_eq!(gone.status, 404);

    let started = Instant::now();
    let mut kills = 0;
    let mut writes = 0;
    loop {
        fixture.api.create().await.expect("a session");
        let left = number(&reader, LEFT);
        if left == 0 {
            break;
        }
        writes += 1;
        if kills == 0 && left < EVENTS / 2 {
            kills += 1;
            fixture.server.restart().await;
            let gone = fixture.api.get(&path).await.expect("an answer");
            assert_eq!(gone.status, 404);
        }
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(120),
            "{left} events after {waited:?}"
        );
    }
    assert_eq!(kills, 1, "the removal took several pieces");
    assert!(writes >= 5, "{writes} writes during the removal");
    while bytes() > EVENTS * EVENT_BYTES / 3 {
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(120),
            "{} bytes after {waited:?}",
            bytes()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fixture.check_history().await;
}

/// Runs `turnwire compact` on a folder: whether it succeeded, and what it printed.
fn compact(home: &std::path::Path) -> (bool, String) {
    let mut command = Command::new(server::binary());
    let output = command.arg("compact").arg("--home").arg(home).output();
    let output = output.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("text");
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compact_converts_an_old_database_and_keeps_its_data() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    fixture.turn("one").await;
    stop(&mut fixture.server).await;
    let home = fixture.server.home();
    let old = "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;";
    let raw = database(&home);
    raw.execute_batch(old).expect("an old database");
    raw.execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(4000000)); DROP TABLE filler;")
        .expect("free pages");
    assert_eq!(number(&raw, "PRAGMA auto_vacuum"), 0);
    drop(raw);
    fixture.server.run().await.expect("it runs as before");
    assert!(fixture.server.stderr().contains("turnwire compact"));
    fixture.turn("two").await;
    let (succeeded, text) = compact(&home);
    assert!(!succeeded && text.contains("in use"), "{text}");
    stop(&mut fixture.server).await;
    let bytes = || {
        std::fs::metadata(home.join("turnwire.sqlite3"))
            .expect("a file")
            .len()
    };
    let before = bytes();
    let (succeeded, text) = compact(&home);
    assert!(succeeded, "{text}");
    assert!(
        text.contains(&format!("{before} bytes before, {} after", bytes())),
        "{text}"
    );
    assert!(bytes() + 3_000_000 < before, "{text}");
    assert_eq!(number(&database(&home), "PRAGMA auto_vacuum"), 2);
    let (succeeded, text) = compact(&home.join("nowhere"));
    assert!(
        !succeeded && text.contains("there is no database"),
        "{text}"
    );
    fixture.server.run().await.expect("a start");
    fixture.turn("three").await;
    fixture.check_history().await;
}
