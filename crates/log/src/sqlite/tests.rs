//! The conformance suites over SQLite, and tests of the file: locks, migrations, epochs, checkpoints.

use std::io::Read as _;
use std::sync::Arc;

use rusqlite::Connection;
use turnwire_event::content::content_json;
use turnwire_event::row::{MessagePart, NewMessage, RowChange};
use turnwire_event::{
    ContentBlock, MessageId, Position, Role, Seq, SessionId, Timestamp, TurnId, Ulid,
};

use super::*;
use crate::chain::ChainHash;
use crate::error::{AppendError, ReadError};
use crate::log::Log as _;
use crate::maintenance::{Maintenance as _, PieceBudget, Progress};
use crate::records::{CallRecords as _, MessageRecords as _, SessionRecords as _};
use crate::records::{MessageView, TurnRecords as _};
use crate::selection::{EventSelection, ReadLimits};
use crate::sqlite::upkeep::checkpoint::run_checkpoint;
use crate::sqlite::upkeep::removal;
use crate::tests::fixture::{BatchBuilder, at, sweep};
use crate::tests::log_conformance::{self, Damage, LogUnderTest};
use crate::tests::records_conformance::{self, turn};

fn options(dir: &Path) -> SqliteOptions {
    SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    }
}

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(&options(dir)).expect("a store")
}

const LIMITS: ReadLimits = ReadLimits {
    events: 1_000,
    bytes: usize::MAX,
    scanned: 1_000,
};

/// The seqs of the events up to `upto`.
fn read_all(store: &SqliteStore, session: SessionId, upto: u64) -> Vec<u64> {
    let all = EventSelection::all();
    let read = store.read(session, Seq(0), Seq(upto), &all, LIMITS);
    let read = read.expect("events");
    read.events.iter().map(|event| event.seq.0).collect()
}

/// Runs `suite` with a way to get a new folder for each of its tests.
fn with_folders(suite: impl FnOnce(&dyn Fn() -> PathBuf)) {
    let root = tempfile::tempdir().expect("a folder");
    let next = std::cell::Cell::new(0);
    suite(&|| root.path().join(next.replace(next.get() + 1).to_string()));
}

// S3-108
#[test]
fn sqlite_passes_the_log_suite() {
    with_folders(|folder| {
        log_conformance::run(&|| {
            let dir = folder();
            LogUnderTest {
                log: Arc::new(open(&dir)),
                damage: Box::new(move |session, seq, damage| apply(&dir, session, seq, damage)),
            }
        });
    });
}

#[test]
fn sqlite_passes_the_records_suite() {
    with_folders(|folder| records_conformance::run(&|| Arc::new(open(&folder()))));
}

/// A later term belongs to a server that took the session over.
#[test]
fn append_of_an_older_term_is_fenced() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    let store = open(dir.path());
    store.append(&[builder.events(1)]).expect("an append");
    drop(store);
    for (term, is_fenced) in [(0, false), (1, true)] {
        let raw = Connection::open(dir.path().join(DATABASE_FILE)).expect("a connection");
        let changed = raw.execute("UPDATE session SET term = ?1", [term]);
        assert_eq!(changed.expect("an update"), 1);
        drop(raw);
        let store = open(dir.path());
        let appended = store.append(&[builder.events(1)]);
        let fenced = matches!(appended, Err(AppendError::Fenced(id)) if id == builder.session);
        assert_eq!(fenced, is_fenced, "{appended:?}");
        assert_eq!(appended.is_ok(), !is_fenced);
    }
}

/// Damages a stored event through a connection of its own.
fn apply(dir: &Path, session: SessionId, seq: Seq, damage: Damage) {
    let raw = Connection::open(dir.join(DATABASE_FILE)).expect("a connection");
    let event = "WHERE seq = ?2 AND sid = (SELECT sid FROM session WHERE id = ?1)";
    let sql = match damage {
        Damage::Bytes => {
            format!("UPDATE event SET bytes = replace(bytes, 'comment', 'Comment') {event}")
        }
        Damage::StoredHash => format!("UPDATE event SET hash = zeroblob(32) {event}"),
        Damage::Missing => format!("DELETE FROM event {event}"),
    };
    let values = rusqlite::params![session.to_string(), seq.0 as i64];
    let mut changed = raw.execute(&sql, values).expect("a change");
    if matches!(damage, Damage::StoredHash) {
        let sql = "UPDATE session SET low_hash = zeroblob(32) WHERE id = ?1 AND low_seq = ?2";
        changed += raw.execute(sql, values).expect("a change");
    }
    assert_eq!(changed, 1, "{damage:?} at {seq:?}");
}

#[test]
fn reopened_database_continues_the_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    open(dir.path())
        .append(&[builder.events(5)])
        .expect("an append");
    let store = open(dir.path());
    assert_eq!(read_all(&store, builder.session, 5).len(), 5);
    store.append(&[builder.events(1)]).expect("the next event");
}

#[test]
fn second_process_is_refused_with_advice() {
    let dir = tempfile::tempdir().expect("a folder");
    let _lock_holder = open(dir.path());
    let error = SqliteStore::open(&options(dir.path())).expect_err("in use");
    assert!(
        matches!(error, OpenError::InUse(_)) && error.to_string().contains("TURNWIRE_HOME"),
        "{error}"
    );
}

#[test]
fn file_that_is_not_a_database_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join(DATABASE_FILE), vec![b'x'; 8192]).expect("a file");
    let error = SqliteStore::open(&options(dir.path())).expect_err("corrupt");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[test]
fn newer_or_foreign_database_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(open(dir.path()));
    let raw = Connection::open(dir.path().join(DATABASE_FILE)).expect("a connection");
    raw.pragma_update(None, "user_version", 999)
        .expect("a pragma");
    drop(raw);
    let error = SqliteStore::open(&options(dir.path())).expect_err("newer");
    assert!(
        matches!(error, OpenError::Newer { schema: 999, .. }),
        "{error}"
    );
    let other = tempfile::tempdir().expect("a folder");
    let raw = Connection::open(other.path().join(DATABASE_FILE)).expect("a connection");
    raw.execute_batch("CREATE TABLE theirs (x)")
        .expect("a table");
    drop(raw);
    let error = SqliteStore::open(&options(other.path())).expect_err("foreign");
    assert!(matches!(error, OpenError::Foreign(_)), "{error}");
}

#[test]
fn unclean_shutdown_of_a_relaxed_run_begins_an_epoch() {
    let dir = tempfile::tempdir().expect("a folder");
    let relaxed = SqliteOptions {
        dir: dir.path().to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let epoch = |store: &SqliteStore| {
        store
            .tail(SessionId(Ulid(1)))
            .expect("a tail")
            .expect("a session")
            .epoch
            .0
    };
    let store = SqliteStore::open(&relaxed).expect("a store");
    store
        .append(&[BatchBuilder::new(1).events(1)])
        .expect("an append");
    store.close();
    drop(store);
    let store = SqliteStore::open(&relaxed).expect("a store");
    assert_eq!(epoch(&store), 1, "a clean shutdown");
    drop(store);
    let store = open(dir.path());
    assert_eq!(epoch(&store), 2, "an unclean shutdown");
    drop(store);
    assert_eq!(
        epoch(&open(dir.path())),
        2,
        "a crash with full durability keeps the epoch"
    );
}

#[test]
fn queued_turn_moves_into_the_new_epoch() {
    let dir = tempfile::tempdir().expect("a folder");
    let relaxed = SqliteOptions {
        dir: dir.path().to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let (mut builder, turn) = (BatchBuilder::new(1), TurnId(Ulid(5)));
    let store = SqliteStore::open(&relaxed).expect("a store");
    store.append(&[builder.events(3)]).expect("an append");
    let queued = builder.rows(vec![turn::queued(turn, 0)]);
    store.append(&[queued]).expect("an append");
    store.append(&[builder.events(2)]).expect("an append");
    drop(store);
    let store = open(dir.path());
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    let tail = store
        .tail(builder.session)
        .expect("a read")
        .expect("a tail");
    assert_eq!(tail.epoch.0, 2);
    let after = Position::persisted(tail.epoch, tail.seq.next());
    assert_eq!(row.started, after, "a position that is still to come");
}

#[test]
fn removal_of_a_deleted_session_leaves_no_row() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = open(dir.path());
    let (mut a, mut b) = (BatchBuilder::new(1), BatchBuilder::new(2));
    store
        .append(&[a.events(40), b.events(2)])
        .expect("an append");
    let turn = TurnId(Ulid(5));
    store.append(&[a.turn_started(turn)]).expect("a turn");
    let keys = (0..30).map(|n| turn::key(&turn::scope(None, &format!("key {n}")), turn, 1));
    store.append(&[a.rows(keys.collect())]).expect("keys");
    store.delete(&[a.session], &[]).expect("a delete");
    let budget = PieceBudget {
        rows: 7,
        ..PieceBudget::default()
    };
    let piece = store.remove_deleted(&budget).expect("a piece");
    assert_eq!(piece, Progress::More);
    // A restart in the middle goes on.
    drop(store);
    let store = open(dir.path());
    while store.remove_deleted(&budget).expect("a piece") == Progress::More {}
    drop(store);
    let raw = Connection::open(dir.path().join(DATABASE_FILE)).expect("a connection");
    let mut names = raw
        .prepare("SELECT t.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.name = 'sid'")
        .expect("a query");
    let names = names.query_map([], |row| row.get::<_, String>(0));
    let names: Vec<_> = names
        .expect("names")
        .map(|name| name.expect("a name"))
        .collect();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        let is_known = removal::removed_tables().contains(&name.as_str());
        assert!(
            is_known || ["session", "session_age", "removal"].contains(&name.as_str()),
            "{name} has rows of sessions: remove them with the session"
        );
        if name != "session_age" {
            let count = format!("SELECT count(*) FROM {name} WHERE sid = 1");
            let left: i64 = raw
                .query_row(&count, [], |row| row.get(0))
                .expect("a count");
            assert_eq!(left, 0, "{name}");
        }
    }
    let others: i64 = raw
        .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(others, 2);
}

/// A store whose file has more than 4 MB of free pages: the rows of a session that was removed.
fn with_free_pages(dir: &Path) -> SqliteStore {
    let store = open(dir);
    let mut builder = BatchBuilder::new(1);
    for _ in 0..40 {
        store.append(&[builder.events(500)]).expect("an append");
    }
    let copied = run_checkpoint(&store.write_half.lock().connection, "TRUNCATE");
    assert_eq!(copied.expect("copied").0, 0);
    let before = database_bytes(dir);
    assert!(before > 4 << 20, "{before}");
    store.delete(&[builder.session], &[]).expect("a delete");
    let budget = PieceBudget::default();
    while store.remove_deleted(&budget).expect("a piece") == Progress::More {}
    store
}

fn database_bytes(dir: &Path) -> u64 {
    let file = std::fs::metadata(dir.join(DATABASE_FILE));
    file.expect("a file").len()
}

#[test]
fn space_of_a_removed_session_is_given_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = with_free_pages(dir.path());
    let budget = PieceBudget::default();
    // The file is cut behind the release, so that no cut is large.
    let mut largest_cut = 0;
    let mut length = database_bytes(dir.path());
    while store.release_pages(64 << 10, &budget).expect("a piece") != Progress::Done {
        let now = database_bytes(dir.path());
        largest_cut = largest_cut.max(length.saturating_sub(now));
        length = now;
    }
    assert!(largest_cut <= 3 << 20, "{largest_cut} bytes at once");
    store.close();
    let left = database_bytes(dir.path());
    assert!(left < 1 << 20, "{left}");
}

#[test]
fn release_waits_for_a_read_transaction() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = with_free_pages(dir.path());
    let reader = Connection::open(dir.path().join(DATABASE_FILE)).expect("a connection");
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM session;")
        .expect("a read transaction");
    let budget = PieceBudget::default();
    let release = || store.release_pages(64 << 10, &budget).expect("a piece");
    let mut pieces = 0;
    while release() == Progress::More {
        pieces += 1;
        assert!(pieces < 1_000, "polls instead of waiting");
    }
    for _ in 0..10 {
        assert_eq!(release(), Progress::Later);
    }
    drop(reader);
    while release() != Progress::Done {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn damaged_newest_event_stops_neither_start_nor_retention() {
    for damage in ["'text'", "7", "x'0102'"] {
        let dir = tempfile::tempdir().expect("a folder");
        let (mut swept, mut damaged) = (BatchBuilder::new(1), BatchBuilder::new(2));
        let store = open(dir.path());
        store.append(&[swept.events(2)]).expect("an append");
        store.append(&[damaged.events(9)]).expect("an append");
        let raw = Connection::open(dir.path().join(DATABASE_FILE)).expect("a connection");
        let newest = "(SELECT max(gid) FROM event)";
        let sql = format!("UPDATE event SET hash = {damage} WHERE gid = {newest}");
        assert_eq!(raw.execute(&sql, []).expect("a change"), 1);
        drop(raw);
        let marks = sweep(&store, 50, 100);
        assert!(marks.contains(&(swept.session, Seq(2))), "{damage}");
        // The emptied session has an age again with its next event.
        store.append(&[swept.events(1)]).expect("an append");
        let marks = sweep(&store, 50, 100);
        assert_eq!(marks, [(swept.session, Seq(3))], "{damage}");
        store.close();
        drop(store);
        let store = open(dir.path());
        store.append(&[swept.events(1)]).expect("an append");
    }
}

#[test]
fn wal_starts_again_while_reads_overlap() {
    let dir = tempfile::tempdir().expect("a folder");
    let relaxed = SqliteOptions {
        dir: dir.path().to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let store = Arc::new(SqliteStore::open(&relaxed).expect("a store"));
    const BOUND: u64 = 1 << 20;
    store.set_wal_bytes_max(BOUND).expect("a bound");
    let mut builder = BatchBuilder::new(1);
    store.append(&[builder.events(2_000)]).expect("an append");
    let session = builder.session;
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    // Four readers, so that at any moment some read runs.
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (store, stop) = (store.clone(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let all = EventSelection::all();
                    let events = store.read(session, Seq(0), Seq(1_000), &all, LIMITS);
                    assert_eq!(events.expect("events").events.len(), 1_000);
                }
            })
        })
        .collect();
    let wal = wal_path(&dir.path().join(DATABASE_FILE));
    // SQLite changes the salts in the header of the WAL when it starts again. Counted, because how
    // much is written until then depends on how busy the machine is.
    let salts = || {
        let mut header = [0; 24];
        let mut file = std::fs::File::open(&wal).expect("the WAL");
        file.read_exact(&mut header).expect("a header");
        header[16..].to_vec()
    };
    let (mut last, mut starts) = (salts(), 0);
    let mut written = 0;
    while starts < 3 && written < 400 * BOUND {
        store.append(&[builder.events(200)]).expect("an append");
        written += 200 * 400;
        let now = salts();
        starts += usize::from(now != last);
        last = now;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("a reader");
    }
    assert_eq!(starts, 3, "{written} bytes written");
}

#[test]
fn read_only_store_sees_the_writer_and_cannot_write() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = open(dir.path());
    let mut a = BatchBuilder::new(1);
    store.append(&[a.events(2)]).expect("an append");
    let reader = SqliteStore::open_read_only(dir.path()).expect("a reader");
    assert_eq!(read_all(&reader, a.session, 2).len(), 2);
    assert!(reader.append(&[a.events(1)]).is_err());
}

#[test]
fn reads_during_trim_and_delete_never_report_damage() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = SqliteOptions {
        dir: dir.path().to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let store = Arc::new(SqliteStore::open(&options).expect("a store"));
    let mut builder = BatchBuilder::new(1);
    store.append(&[builder.events(50)]).expect("an append");
    let session = builder.session;
    let reader = {
        let store = store.clone();
        std::thread::spawn(move || {
            let mut events_read = 0;
            loop {
                let low = match store.tail(session) {
                    Ok(Some(tail)) => tail.low,
                    Ok(None) => return events_read,
                    Err(error) => panic!("{error}"),
                };
                let all = EventSelection::all();
                match store.read(session, low, Seq(u64::MAX >> 1), &all, LIMITS) {
                    Ok(read) => events_read += read.events.len(),
                    Err(ReadError::Trimmed { .. } | ReadError::SessionNotFound) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    };
    for _ in 0..300 {
        store.append(&[builder.events(5)]).expect("an append");
        sweep(store.as_ref(), builder.seq.0 as i64 * 10 - 200, 100);
    }
    store.delete(&[session], &[]).expect("a delete");
    assert!(reader.join().expect("no damage") > 0);
}

#[test]
fn database_of_the_first_release_is_migrated_with_its_data() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    let append = builder.events(2);
    let raw = Connection::open(dir.path().join(DATABASE_FILE)).expect("a connection");
    raw.execute_batch(&format!(
        "BEGIN; {} PRAGMA application_id = 0x54574952; PRAGMA user_version = 1; COMMIT;",
        include_str!("migrations/0001_first.sql")
    ))
    .expect("the first schema");
    let session = builder.session.to_string();
    let seed = crate::chain::ChainHash::seed(builder.session);
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
    for (turn, state, ended) in [
        (open, "running", None),
        (done, "completed", Some(at(2).to_string())),
    ] {
        raw.execute(
            "INSERT INTO turn VALUES (?1, 1, 'chat', ?2, 'continue', 0, NULL, ?3, 5, ?4, NULL, NULL, NULL)",
            rusqlite::params![turn.to_string(), state, at(1).to_string(), ended],
        )
        .expect("a turn");
    }
    let message = [
        turnwire_event::MessageId(Ulid(8)).to_string(),
        done.to_string(),
        at(2).to_string(),
    ];
    raw.execute(
        "INSERT INTO message VALUES (?1, 1, ?2, 'user', 'complete', '[]', NULL, NULL, NULL, '{}', 5, 5, ?3, ?3, x'', '[]')",
        message,
    )
    .expect("a message");
    let streaming = MessageId(Ulid(9));
    let part = |index: u32| MessagePart {
        message_id: streaming,
        turn_id: open,
        model: "m:one".into(),
        started: at(2),
        started_at: Timestamp::from_millis(5),
        index,
        blocks: format!("blocks {index}"),
        cuts: vec![index as u8, 7],
    };
    for part in [part(0), part(1)] {
        raw.execute(
            "INSERT INTO message_part VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8)",
            rusqlite::params![
                part.message_id.to_string(),
                part.index,
                part.turn_id.to_string(),
                part.model,
                part.started.to_string(),
                part.started_at.as_millis(),
                part.blocks,
                part.cuts
            ],
        )
        .expect("a part");
    }
    drop(raw);
    let store = open_twice(dir.path());
    let parts = store.message_checkpoints(open).expect("a read");
    assert_eq!(parts, [part(0), part(1)]);
    let tail = at(2);
    let count = |view| {
        store
            .message_count(builder.session, view, tail)
            .expect("a count")
    };
    let counts = [
        MessageView::Clients,
        MessageView::Orchestrator,
        MessageView::Agent("shop"),
    ]
    .map(count);
    assert_eq!(counts, [1, 1, 0], "messages from before scopes are shared");
    let messages = store.messages(
        builder.session,
        MessageView::Orchestrator,
        tail,
        None,
        9.into(),
    );
    let messages = messages.expect("messages").rows;
    assert!(messages[0].provider_state.is_empty());
    let calls = store.llm_calls(builder.session, None, 9.into());
    assert!(
        calls.expect("calls").rows.is_empty(),
        "calls had no rows in the first release"
    );
    assert_eq!(read_all(&store, builder.session, 2), [1, 2]);
    let row = store
        .session(builder.session)
        .expect("a read")
        .expect("a session");
    assert_eq!((row.cost_usd, row.turn_count), (0.5, 1));
    let (_, row) = store.turn(done).expect("a read").expect("a turn");
    assert_eq!(
        (row.wire_version, row.agent_definition.as_str()),
        (None, "")
    );
    assert_eq!(row.ended.map(|end| end.seq), Some(Seq(2)));
    let open_turns = store.open_turns().expect("turns");
    assert_eq!(
        open_turns.iter().map(|turn| turn.id).collect::<Vec<_>>(),
        [open]
    );
    assert!(store.queued_sessions().expect("sessions").is_empty());
    store.append(&[builder.events(1)]).expect("the next event");
}

/// Opens, closes and opens a store again: migrations are applied once.
/// The input of a turn is in the event that starts it and in the person's message.
#[test]
fn large_content_is_stored_once_and_read_exactly() {
    for text in ["x".repeat(100_000), "\u{1}\"é".repeat(20_000), "x".into()] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let mut builder = BatchBuilder::new(1);
        let content = vec![ContentBlock::text(text)];
        let json = content_json(&content).0;
        let id = MessageId(Ulid(7));
        let turn = TurnId(Ulid(5));
        let new = NewMessage::new(id, Role::User, content);
        let mut append = builder.event_with(RowChange::MessagePut(turn, new));
        let record = &mut append.records[0];
        let start = record.bytes.strip_suffix(b"}").expect("an object");
        let bytes = [start, b",\"input\":", json.as_bytes(), b",\"last\":1}"].concat();
        record.bytes = bytes.clone().into();
        record.hash = ChainHash::seed(builder.session).next(&bytes);
        builder.hash = record.hash;
        store.append(&[append]).expect("an append");
        store.append(&[builder.events(1)]).expect("an append");
        let read = || {
            store.read(
                builder.session,
                Seq(0),
                Seq(2),
                &EventSelection::all(),
                LIMITS,
            )
        };
        let events = read().expect("events").events;
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].bytes, bytes);
        let connection = Connection::open(folder.path().join(DATABASE_FILE)).expect("the file");
        let sum = "SELECT sum(octet_length(bytes)) FROM event WHERE seq = 1";
        let stored: i64 = connection
            .query_row(sum, [], |row| row.get(0))
            .expect("a sum");
        let shared = if json.len() < 1_024 { 0 } else { json.len() };
        assert_eq!(stored as usize, bytes.len() - shared);
        // The event vouches for the content of the message.
        let changed = "UPDATE message SET content = '[]'";
        assert_eq!(connection.execute(changed, []).expect("a change"), 1);
        assert_eq!(read().is_err(), shared > 0, "{:?}", read().err());
    }
}

fn open_twice(dir: &Path) -> SqliteStore {
    drop(open(dir));
    open(dir)
}
