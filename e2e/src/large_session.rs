//! Sessions that are larger than turns could make them in a test: events appended to the data folder
//! of a stopped server, with the hashes that the server checks.

use std::path::Path;

use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::{Actor, Body, Event, Position, SessionId};
use turnwire_log::chain::ChainHash;
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{EventRecord, LeaseTerm, Log as _, LogTail, SessionAppend};

use turnwire_testkit::server::TestServer;

/// Events written in one transaction.
const BATCH_MAX: u64 = 2_000;
/// Bytes written in one transaction.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// A feedback event with a comment of `bytes` bytes.
pub fn comment(bytes: usize) -> Body {
    Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: None,
        rating: "up".into(),
        comment: Some("x".repeat(bytes)),
    })
}

/// Stops `server`, appends `count` events to a session, and starts the server again. `event` gives
/// the actor and the body of each, by its index.
pub async fn append_events(
    server: &mut TestServer,
    session: SessionId,
    count: u64,
    event: impl Fn(u64) -> (Actor, Body),
) {
    server.kill().await;
    append_to_folder(&server.home(), session, count, event);
    server.run().await.unwrap_or_else(|why| panic!("{why}"));
}

fn append_to_folder(
    home: &Path,
    session: SessionId,
    count: u64,
    event: impl Fn(u64) -> (Actor, Body),
) {
    let options = SqliteOptions {
        dir: home.to_owned(),
        durability: CommitDurability::Full,
    };
    let store = SqliteStore::open(&options).expect("the data folder of a stopped server");
    let tail = store.tail(session).expect("a read").expect("a session");
    let (mut prev, mut hash, mut index) = (tail.seq, tail.hash, 0);
    while index < count {
        let (mut records, mut bytes) = (Vec::new(), 0);
        let batch_end = count.min(index + BATCH_MAX);
        while index < batch_end && bytes < BATCH_BYTES_MAX {
            let at = records.last().map_or(prev, |last: &EventRecord| last.seq);
            let (actor, body) = event(index);
            let id = Position::persisted(tail.epoch, at.next());
            let record = record((session, id), &tail, hash, actor, body);
            (hash, bytes, index) = (record.hash, bytes + record.bytes.len(), index + 1);
            records.push(record);
        }
        let last = records.last().map_or(prev, |last| last.seq);
        let append = SessionAppend {
            session,
            term: LeaseTerm(0),
            prev,
            records,
            rows: Vec::new(),
        };
        store.append(&[append]).expect("an append");
        prev = last;
    }
    store.close();
}

fn record(
    (session_id, id): (SessionId, Position),
    tail: &LogTail,
    previous: ChainHash,
    actor: Actor,
    body: Body,
) -> EventRecord {
    let event = Event {
        response_id: None,
        id,
        session_id,
        turn_id: None,
        actor,
        timestamp: tail.time,
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    };
    let bytes = event.to_bytes();
    EventRecord {
        seq: id.seq,
        kind: event.body.kind(),
        turn: None,
        actor: event.actor.clone(),
        time: event.timestamp,
        hidden: false,
        hash: previous.next(&bytes),
        bytes: bytes.into(),
    }
}
