//! What every store must do, as one suite. A store calls `run` with a way to make an empty one.

pub(crate) mod approval;
pub(crate) mod call;
pub(crate) mod queue;
pub(crate) mod scope;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Map;
use turnwire_event::body::feedback::Recorded;
use turnwire_event::code::{OnDisconnect, TurnKind, TurnState};
use turnwire_event::row::{Placed, RowChange, SessionRow};
use turnwire_event::{
    Actor, Body, EpisodeId, Epoch, Event, EventType, Filter, Owner, Position, Seq, SessionId,
    TenantId, Timestamp, TurnId, TypeSet, Ulid,
};

use crate::chain::Hash;
use crate::error::{AppendError, ReadError};
use crate::record::{Append, Record, Term};
use crate::store::Store;

pub(crate) fn owner(name: &str) -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: name.parse().expect("a principal"),
    }
}

pub(crate) fn session_row(id: u128, name: &str) -> SessionRow {
    SessionRow {
        agent: None,
        id: SessionId(Ulid(id)),
        owner: owner(name),
        parent: None,
        workspace_path: None,
        metadata: Map::new(),
        episode_id: EpisodeId(Ulid(id)),
        active_model: "scripted:default".into(),
        routing_policy_version: "1".into(),
        cost_usd: 0.0,
        turn_count: 0,
        created_at: Timestamp::from_millis(1),
        updated_at: Timestamp::from_millis(1),
    }
}

/// A log as a writer would make it: events of one session, chained.
pub(crate) struct Maker {
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
    hash: Hash,
    pub(crate) all: Vec<Bytes>,
}

impl Maker {
    pub(crate) fn new(id: u128) -> Self {
        let session = SessionId(Ulid(id));
        Self {
            session,
            seq: Seq(0),
            hash: Hash::seed(session),
            all: Vec::new(),
        }
    }

    fn record(&mut self, turn: Option<TurnId>, body: Body) -> Record {
        self.seq = self.seq.next();
        let time = Timestamp::from_millis(self.seq.0 as i64 * 10);
        let event = Event {
            id: Position::persisted(Epoch(1), self.seq),
            session_id: self.session,
            turn_id: turn,
            actor: Actor::USER,
            timestamp: time,
            trace: None,
            render: None,
            body,
        };
        let bytes = Bytes::from(event.to_bytes());
        self.hash = self.hash.next(&bytes);
        self.all.push(bytes.clone());
        let (seq, hash, kind) = (self.seq, self.hash, event.body.kind());
        Record {
            seq,
            kind,
            turn,
            actor: Actor::USER,
            time,
            hidden: false,
            hash,
            bytes,
        }
    }

    fn note(&mut self, comment: &str) -> Record {
        let feedback = Recorded {
            message_id: None,
            turn_id: None,
            rating: "1".into(),
            comment: Some(comment.into()),
        };
        self.record(None, Body::FeedbackRecorded(feedback))
    }

    /// An append of `n` notes, with the session's row if it is the first.
    pub(crate) fn notes(&mut self, n: usize) -> Append {
        let prev = self.seq;
        let records = (0..n).map(|at| self.note(&format!("note {at}"))).collect();
        let change = RowChange::SessionPut(Box::new(session_row(self.session.0.0, "local")));
        let rows = if prev == Seq(0) {
            vec![self.placed(change)]
        } else {
            Vec::new()
        };
        Append {
            session: self.session,
            term: Term(0),
            prev,
            records,
            rows,
        }
    }

    pub(crate) fn placed(&self, change: RowChange) -> Placed {
        let time = Timestamp::from_millis(self.seq.0 as i64 * 10);
        Placed {
            at: Position::persisted(Epoch(1), self.seq),
            time,
            change,
        }
    }

    pub(crate) fn turn_started(&mut self, turn: TurnId) -> Append {
        let mut append = self.notes(1);
        append.rows.push(self.placed(RowChange::TurnStarted {
            turn_id: turn,
            kind: TurnKind::Chat,
            on_disconnect: OnDisconnect::Continue,
            disconnect_grace_ms: 0,
            trace: None,
            wire_version: Some("0.5".into()),
            agent_definition: "1".into(),
            resumes: None,
        }));
        append.records[0].turn = Some(turn);
        append
    }

    fn turn_ended(&mut self, turn: TurnId) -> Append {
        let prev = self.seq;
        let mut record = self.note("ended");
        record.turn = Some(turn);
        record.kind = EventType::TurnCompleted;
        let change = RowChange::TurnEnded {
            turn_id: turn,
            terminal: EventType::TurnCompleted,
            payload: "{}".into(),
        };
        let rows = vec![self.placed(change)];
        Append {
            session: self.session,
            term: Term(0),
            prev,
            records: vec![record],
            rows,
        }
    }
}

/// Runs the suite.
pub(crate) fn run(make: &dyn Fn() -> Arc<dyn Store>) {
    what_was_written_is_read(make().as_ref());
    a_batch_is_all_or_nothing(make().as_ref());
    appends_must_follow(make().as_ref());
    one_terminal_a_turn(make().as_ref());
    counting_is_by_filter(make().as_ref());
    owners_see_their_own(make().as_ref());
    a_deleted_session_never_returns(make().as_ref());
    trimming_keeps_the_chain_and_open_turns(make().as_ref());
    queue::run(make);
    scope::run(make);
    call::run(make);
    approval::run(make);
}

fn what_was_written_is_read(store: &dyn Store) {
    let (mut a, mut b) = (Maker::new(1), Maker::new(2));
    store.append(&[a.notes(3), b.notes(2)]).expect("an append");
    store.append(&[a.notes(4)]).expect("an append");
    let tail = store.tail(a.session).expect("a tail").expect("a session");
    assert_eq!((tail.seq, tail.hash, tail.low), (Seq(7), a.hash, Seq(0)));
    let read = store
        .events(a.session, Seq(2), Seq(6), 100)
        .expect("events");
    assert_eq!(
        read.iter().map(|e| e.bytes.clone()).collect::<Vec<_>>(),
        a.all[2..6]
    );
    assert_eq!(
        store
            .events(a.session, Seq(0), Seq(7), 3)
            .expect("events")
            .len(),
        3
    );
    assert_eq!(
        store
            .events(b.session, Seq(0), Seq(9), 100)
            .expect("events")
            .len(),
        2
    );
    assert_eq!(store.hash_at(a.session, Seq(7)).expect("a hash"), a.hash.0);
    assert_eq!(
        store.hash_at(a.session, Seq(0)).expect("a hash"),
        Hash::seed(a.session).0
    );
    assert!(store.tail(SessionId(Ulid(99))).expect("no error").is_none());
}

fn a_batch_is_all_or_nothing(store: &dyn Store) {
    let (mut a, mut b) = (Maker::new(1), Maker::new(2));
    store.append(&[a.notes(1), b.notes(1)]).expect("an append");
    let good = a.notes(5);
    let mut bad = b.notes(1);
    bad.prev = Seq(40);
    assert!(matches!(
        store.append(&[good.clone(), bad]),
        Err(AppendError::Refused(_))
    ));
    assert_eq!(
        store
            .tail(a.session)
            .expect("a tail")
            .expect("a session")
            .seq,
        Seq(1)
    );
    store
        .append(&[good])
        .expect("the same batch again, with the same numbers");
    assert_eq!(
        store
            .tail(a.session)
            .expect("a tail")
            .expect("a session")
            .seq,
        Seq(6)
    );
}

fn appends_must_follow(store: &dyn Store) {
    let mut a = Maker::new(1);
    let first = a.notes(2);
    store
        .append(std::slice::from_ref(&first))
        .expect("an append");
    assert!(store.append(&[first]).is_err(), "the same events twice");
    let mut gap = a.notes(2);
    gap.records.remove(0);
    assert!(store.append(&[gap]).is_err(), "a hole");
}

fn one_terminal_a_turn(store: &dyn Store) {
    let mut a = Maker::new(1);
    let turn = TurnId(Ulid(5));
    store.append(&[a.notes(1)]).expect("an append");
    store.append(&[a.turn_started(turn)]).expect("an append");
    let open = store.open_turns().expect("turns");
    assert_eq!(
        open.iter().map(|t| (t.id, t.state)).collect::<Vec<_>>(),
        [(turn, TurnState::Running)]
    );
    store.append(&[a.turn_ended(turn)]).expect("an append");
    assert!(store.open_turns().expect("turns").is_empty());
    assert!(
        store.append(&[a.turn_ended(turn)]).is_err(),
        "a second terminal"
    );
    let (of, row) = store.turn(turn).expect("a read").expect("the turn");
    assert_eq!(
        (of, row.state, row.ended.map(|p| p.seq)),
        (owner("local"), TurnState::Completed, Some(Seq(3)))
    );
}

fn counting_is_by_filter(store: &dyn Store) {
    let mut a = Maker::new(1);
    store.append(&[a.notes(10)]).expect("an append");
    let count = |types: &[EventType], after| {
        let filter = Filter::of(types.iter().copied().collect::<TypeSet>());
        store
            .count(a.session, Seq(after), Seq(10), &filter)
            .expect("a count")
    };
    assert_eq!(count(&[EventType::FeedbackRecorded], 0), 10);
    assert_eq!(count(&[EventType::FeedbackRecorded], 4), 6);
    assert_eq!(count(&[EventType::TurnStarted, EventType::TextDelta], 0), 0);
}

fn owners_see_their_own(store: &dyn Store) {
    for (id, name) in [(1, "ann"), (2, "bob"), (3, "ann")] {
        let mut maker = Maker::new(id);
        let mut append = maker.notes(1);
        append.rows = vec![maker.placed(RowChange::SessionPut(Box::new(session_row(id, name))))];
        store.append(&[append]).expect("an append");
    }
    let ids = |name: &str, before, limit| -> Vec<u128> {
        let rows = store
            .sessions(&owner(name), before, limit)
            .expect("sessions");
        rows.iter().map(|row| row.id.0.0).collect()
    };
    assert_eq!(ids("ann", None, 10), [3, 1]);
    assert_eq!(ids("ann", None, 1), [3]);
    assert_eq!(ids("ann", Some(SessionId(Ulid(3))), 10), [1]);
    assert_eq!(ids("bob", None, 10), [2]);
    assert!(ids("eve", None, 10).is_empty());
}

fn a_deleted_session_never_returns(store: &dyn Store) {
    let mut a = Maker::new(1);
    store.append(&[a.notes(3)]).expect("an append");
    store.delete(a.session).expect("a delete");
    store
        .delete(a.session)
        .expect("deleting what is gone is no error");
    assert!(store.tail(a.session).expect("no error").is_none());
    assert!(store.session(a.session).expect("no error").is_none());
    assert!(
        store.append(&[Maker::new(1).notes(1)]).is_err(),
        "the id is never given again"
    );
}

fn trimming_keeps_the_chain_and_open_turns(store: &dyn Store) {
    let mut a = Maker::new(1);
    store.append(&[a.notes(5)]).expect("an append"); // at 10, 20, 30, 40, 50 ms
    let trimmed = store.trim(Timestamp::from_millis(35), 10).expect("a trim");
    assert_eq!(trimmed, [(a.session, Seq(3))]);
    assert!(
        store
            .trim(Timestamp::from_millis(35), 10)
            .expect("a trim")
            .is_empty()
    );
    let tail = store.tail(a.session).expect("a tail").expect("a session");
    assert_eq!((tail.low, tail.seq), (Seq(3), Seq(5)));
    assert_eq!(
        store
            .events(a.session, Seq(3), Seq(5), 10)
            .expect("the chain still holds")
            .len(),
        2
    );
    let turn = TurnId(Ulid(9));
    store.append(&[a.turn_started(turn)]).expect("an append");
    let late = Timestamp::from_millis(1_000);
    assert!(
        store.trim(late, 10).expect("a trim").is_empty(),
        "a session with an open turn waits"
    );
    store.append(&[a.turn_ended(turn)]).expect("an append");
    assert_eq!(store.trim(late, 10).expect("a trim"), [(a.session, Seq(7))]);
    let asked = store.events(a.session, Seq(3), Seq(7), 10);
    assert!(
        matches!(asked, Err(ReadError::Trimmed { low: 7 })),
        "never a silent jump"
    );
    assert!(
        store
            .events(a.session, Seq(7), Seq(7), 10)
            .expect("nothing after it")
            .is_empty()
    );
}
