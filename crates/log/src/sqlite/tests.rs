//! The SQLite store: the conformance suite, and what only a file can get wrong.

use std::sync::Arc;

use turnwire_event::{Seq, SessionId, TurnId, Ulid};

use super::*;
use crate::store::conformance::{self, Maker, queue as waiting};

fn options(dir: &Path) -> Options {
    Options {
        dir: dir.to_owned(),
        durability: Durability::Full,
    }
}

fn open(dir: &Path) -> Sqlite {
    Sqlite::open(&options(dir)).expect("a store")
}

// S3-108
#[test]
fn keeps_the_promises_of_a_store() {
    let root = tempfile::tempdir().expect("a folder");
    let next = std::sync::atomic::AtomicUsize::new(0);
    conformance::run(&|| {
        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Arc::new(open(&root.path().join(n.to_string())))
    });
}

#[test]
fn everything_is_there_after_reopening() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut maker = Maker::new(1);
    open(dir.path())
        .append(&[maker.notes(5)])
        .expect("an append");
    let store = open(dir.path());
    assert_eq!(
        store
            .events(maker.session, Seq(0), Seq(5), 10)
            .expect("events")
            .len(),
        5
    );
    store
        .append(&[maker.notes(1)])
        .expect("the tail is found again");
}

#[test]
fn a_second_process_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().expect("a folder");
    let _first = open(dir.path());
    let error = Sqlite::open(&options(dir.path())).expect_err("in use");
    assert!(
        matches!(error, OpenError::InUse(_)) && error.to_string().contains("TURNWIRE_HOME"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join(FILE), vec![b'x'; 8192]).expect("a file");
    let error = Sqlite::open(&options(dir.path())).expect_err("corrupt");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[test]
fn a_newer_or_foreign_database_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(open(dir.path()));
    let raw = Connection::open(dir.path().join(FILE)).expect("a connection");
    raw.pragma_update(None, "user_version", 999)
        .expect("a pragma");
    drop(raw);
    let error = Sqlite::open(&options(dir.path())).expect_err("newer");
    assert!(
        matches!(error, OpenError::Newer { found: 999, .. }),
        "{error}"
    );
    let other = tempfile::tempdir().expect("a folder");
    let raw = Connection::open(other.path().join(FILE)).expect("a connection");
    raw.execute_batch("CREATE TABLE theirs (x)")
        .expect("a table");
    drop(raw);
    let error = Sqlite::open(&options(other.path())).expect_err("foreign");
    assert!(matches!(error, OpenError::Foreign(_)), "{error}");
}

#[test]
fn a_changed_record_is_found_and_others_are_not_blamed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut a, mut b) = (Maker::new(1), Maker::new(2));
    open(dir.path())
        .append(&[a.notes(5), b.notes(5)])
        .expect("an append");
    let raw = Connection::open(dir.path().join(FILE)).expect("a connection");
    let changed = raw
        .execute(
            "UPDATE event SET bytes = replace(bytes, 'note 2', 'nope 2') WHERE seq = 3 AND sid = 1",
            [],
        )
        .expect("an update");
    assert_eq!(changed, 1);
    drop(raw);
    let store = open(dir.path());
    let error = store
        .events(a.session, Seq(0), Seq(5), 10)
        .expect_err("damaged");
    assert!(
        matches!(error, ReadError::Damaged { seq: 3, .. }),
        "{error}"
    );
    assert_eq!(
        store
            .events(b.session, Seq(0), Seq(5), 10)
            .expect("sound")
            .len(),
        5
    );
}

#[test]
fn a_missing_record_is_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut a = Maker::new(1);
    open(dir.path()).append(&[a.notes(5)]).expect("an append");
    let raw = Connection::open(dir.path().join(FILE)).expect("a connection");
    raw.execute("DELETE FROM event WHERE seq = 3", [])
        .expect("a delete");
    drop(raw);
    assert!(
        open(dir.path())
            .events(a.session, Seq(0), Seq(5), 10)
            .is_err()
    );
}

#[test]
fn an_unclean_end_of_a_relaxed_run_begins_an_epoch() {
    let dir = tempfile::tempdir().expect("a folder");
    let relaxed = Options {
        dir: dir.path().to_owned(),
        durability: Durability::Relaxed,
    };
    let epoch = |store: &Sqlite| {
        store
            .tail(SessionId(Ulid(1)))
            .expect("a tail")
            .expect("a session")
            .epoch
            .0
    };
    let store = Sqlite::open(&relaxed).expect("a store");
    store.append(&[Maker::new(1).notes(1)]).expect("an append");
    store.close();
    drop(store);
    let store = Sqlite::open(&relaxed).expect("a store");
    assert_eq!(epoch(&store), 1, "it ended in order");
    drop(store);
    let store = open(dir.path());
    assert_eq!(epoch(&store), 2, "it did not");
    drop(store);
    assert_eq!(epoch(&open(dir.path())), 2, "a crash under full keeps it");
}

#[test]
fn a_turn_that_waits_goes_along_into_a_new_epoch() {
    let dir = tempfile::tempdir().expect("a folder");
    let relaxed = Options {
        dir: dir.path().to_owned(),
        durability: Durability::Relaxed,
    };
    let (mut maker, turn) = (Maker::new(1), TurnId(Ulid(5)));
    let store = Sqlite::open(&relaxed).expect("a store");
    store.append(&[maker.notes(3)]).expect("an append");
    let waits = waiting::rows(&maker, vec![waiting::queued(turn, 0)]);
    store.append(&[waits]).expect("an append");
    store.append(&[maker.notes(2)]).expect("an append");
    drop(store);
    let store = open(dir.path());
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    let tail = store.tail(maker.session).expect("a read").expect("a tail");
    assert_eq!(tail.epoch.0, 2);
    let after = Position::persisted(tail.epoch, tail.seq.next());
    assert_eq!(row.started, after, "a place that can still come");
}

#[test]
fn keys_that_are_removed_count_toward_the_next_checkpoint() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = open(dir.path());
    let mut maker = Maker::new(1);
    store.append(&[maker.notes(1)]).expect("an append");
    let key = |n: usize| waiting::scope(None, &format!("key {n:06}"));
    let keys = (0..10_000).map(|n| waiting::key(&key(n), TurnId(Ulid(5)), 1));
    store
        .append(&[waiting::rows(&maker, keys.collect())])
        .expect("an append");
    let uncopied = || store.writer.lock().uncopied;
    store.writer.lock().checkpoint().expect("a checkpoint");
    let mut most = 0;
    while store
        .forget_keys(Timestamp::from_millis(i64::MAX), 1_000)
        .expect("a delete")
        > 0
    {
        assert!(uncopied() > most || most + 8_192_000 >= CHECKPOINT_BYTES);
        most = uncopied();
    }
    assert!(most < CHECKPOINT_BYTES, "copied on the way");
}

#[test]
fn another_process_can_read_along() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = open(dir.path());
    let mut a = Maker::new(1);
    store.append(&[a.notes(2)]).expect("an append");
    let reader = Sqlite::open_read_only(dir.path()).expect("a reader");
    assert_eq!(
        reader
            .events(a.session, Seq(0), Seq(2), 10)
            .expect("events")
            .len(),
        2
    );
    assert!(reader.append(&[a.notes(1)]).is_err(), "it cannot write");
}

#[test]
fn reading_while_events_are_trimmed_or_the_session_is_deleted_is_never_damage() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = Options {
        dir: dir.path().to_owned(),
        durability: Durability::Relaxed,
    };
    let store = Arc::new(Sqlite::open(&options).expect("a store"));
    let mut maker = Maker::new(1);
    store.append(&[maker.notes(50)]).expect("an append");
    let session = maker.session;
    let reading = {
        let store = store.clone();
        std::thread::spawn(move || {
            let mut read = 0;
            loop {
                let low = match store.tail(session) {
                    Ok(Some(tail)) => tail.low,
                    Ok(None) => return read,
                    Err(error) => panic!("{error}"),
                };
                match store.events(session, low, Seq(u64::MAX >> 1), 1_000) {
                    Ok(events) => read += events.len(),
                    Err(ReadError::Trimmed { .. } | ReadError::Gone) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    };
    for _ in 0..300 {
        store.append(&[maker.notes(5)]).expect("an append");
        let before = Timestamp::from_millis(maker.seq.0 as i64 * 10 - 200);
        store.trim(before, 10).expect("a trim");
    }
    store.delete(session).expect("a delete");
    assert!(reading.join().expect("no damage was found") > 0);
}

#[test]
fn a_store_of_the_first_release_is_brought_up_to_date_with_its_data() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut maker = Maker::new(1);
    let append = maker.notes(2);
    let raw = Connection::open(dir.path().join(FILE)).expect("a connection");
    raw.execute_batch(&format!(
        "BEGIN; {} PRAGMA application_id = 0x54574952; PRAGMA user_version = 1; COMMIT;",
        include_str!("migrations/0001_first.sql")
    ))
    .expect("the first schema");
    let session = maker.session.to_string();
    let seed = crate::chain::Hash::seed(maker.session);
    raw.execute(
        "INSERT INTO session VALUES (1, ?1, '00000000-0000-0000-0000-000000000000', 'local', NULL, NULL, '{}', \
         'ep_00000000000000000000000001', 'm', '1', 0.5, 1, 1, 1, 1, 0, 0, ?2)",
        rusqlite::params![session, &seed.0[..]],
    )
    .expect("a session");
    for record in &append.records {
        raw.execute(
            "INSERT INTO event (sid, seq, type, turn, actor, time, hidden, hash, bytes) \
             VALUES (1, ?1, ?2, NULL, 'user', ?3, 0, ?4, ?5)",
            rusqlite::params![
                record.seq.0 as i64,
                record.kind.name(),
                record.time.as_millis(),
                &record.hash.0[..],
                &record.bytes[..]
            ],
        )
        .expect("an event");
    }
    let (open, done) = (TurnId(Ulid(4)), TurnId(Ulid(5)));
    let at =
        |seq| turnwire_event::Position::persisted(turnwire_event::Epoch(1), Seq(seq)).to_string();
    for (turn, state, ended) in [(open, "running", None), (done, "completed", Some(at(2)))] {
        raw.execute(
            "INSERT INTO turn VALUES (?1, 1, 'chat', ?2, 'continue', 0, NULL, ?3, 5, ?4, NULL, NULL, NULL)",
            rusqlite::params![turn.to_string(), state, at(1), ended],
        )
        .expect("a turn");
    }
    let said = [
        turnwire_event::MessageId(Ulid(8)).to_string(),
        done.to_string(),
        at(2),
    ];
    raw.execute(
        "INSERT INTO message VALUES (?1, 1, ?2, 'user', 'complete', '[]', NULL, NULL, NULL, '{}', 5, 5, ?3, ?3, x'', '[]')",
        said,
    )
    .expect("a message");
    drop(raw);
    let store = open_twice(dir.path());
    let tail = turnwire_event::Position::persisted(turnwire_event::Epoch(1), Seq(2));
    let count = |view| {
        store
            .message_count(maker.session, view, tail)
            .expect("a count")
    };
    let counts = [View::Clients, View::Orchestrator, View::Agent("shop")].map(count);
    assert_eq!(counts, [1, 1, 0], "what was said before scopes is shared");
    let old = store.messages(maker.session, View::Clients, tail, None, 9);
    assert!(old.expect("messages")[0].message.kept.is_empty());
    let calls = store.llm_calls(maker.session, None, 9).expect("calls");
    assert!(calls.is_empty(), "calls had no rows then");
    let events = store.events(maker.session, Seq(0), Seq(2), 10);
    assert_eq!(events.expect("events").len(), 2);
    let row = store
        .session(maker.session)
        .expect("a read")
        .expect("a session");
    assert_eq!((row.cost_usd, row.turn_count), (0.5, 1));
    let (_, row) = store.turn(done).expect("a read").expect("a turn");
    assert_eq!(
        (row.wire_version, row.agent_definition.as_str()),
        (None, "")
    );
    assert_eq!(row.ended.map(|end| end.seq), Some(Seq(2)));
    let left = store.open_turns().expect("turns");
    assert_eq!(left.iter().map(|turn| turn.id).collect::<Vec<_>>(), [open]);
    assert!(store.queues().expect("sessions").is_empty());
    store
        .append(&[maker.notes(1)])
        .expect("the log goes on where it was");
}

/// Opens a store, lets it go, and opens it again: bringing it up to date is done once.
fn open_twice(dir: &Path) -> Sqlite {
    drop(open(dir));
    open(dir)
}
