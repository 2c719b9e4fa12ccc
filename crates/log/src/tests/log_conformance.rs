//! The conformance suite of [`Log`]: every implementation calls [`run`] with empty logs.

mod selection;

use std::sync::Arc;

use turnwire_event::{EventType, Seq, SessionId, TurnId, TypeSet, Ulid};

use crate::chain::ChainHash;
use crate::error::{AppendError, ReadError};
use crate::log::Log;
use crate::selection::{EventSelection, ReadLimits};
use crate::tests::fixture::{BatchBuilder, sweep};

/// Limits that no read of the suite reaches, unless it sets one of them.
const LIMITS: ReadLimits = ReadLimits {
    events: 100,
    bytes: 1 << 20,
    scanned: 100,
};

/// Damage to the stored form of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    /// A byte of the event is changed.
    Bytes,
    /// The stored hash is changed; at the low-water mark, the hash that the trim kept.
    StoredHash,
    /// The event is gone.
    Missing,
}

/// A log to test, and a way to damage it from outside.
pub(crate) struct LogUnderTest {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) damage: Box<dyn Fn(SessionId, Seq, Damage)>,
}

/// Runs the suite; `create` makes an empty log for each test.
pub(crate) fn run(create: &dyn Fn() -> LogUnderTest) {
    read_returns_appended_bytes(create().log.as_ref());
    read_stops_at_its_bytes(create().log.as_ref());
    failed_batch_writes_nothing(create().log.as_ref());
    append_that_does_not_continue_is_refused(create().log.as_ref());
    second_terminal_of_a_turn_is_refused(create().log.as_ref());
    count_matches_the_selection(create().log.as_ref());
    hidden_events_are_counted_on_request(create().log.as_ref());
    deleted_session_id_is_refused(create().log.as_ref());
    trim_keeps_the_chain_and_open_turns(create().log.as_ref());
    sweep_in_pieces_trims_every_due_session(create().log.as_ref());
    full_read_reports_the_first_damaged_event(create);
    damage_in_one_session_leaves_others_readable(&create());
    selection::run(create);
}

/// Every event in (`after`, `upto`], at most 100.
fn read_all(
    log: &dyn Log,
    session: SessionId,
    (after, upto): (u64, u64),
) -> Result<Vec<u64>, ReadError> {
    let events = log
        .read(
            session,
            Seq(after),
            Seq(upto),
            &EventSelection::all(),
            LIMITS,
        )?
        .events;
    Ok(events.iter().map(|event| event.seq.0).collect())
}

fn last_seq(log: &dyn Log, session: SessionId) -> Seq {
    let tail = log.tail(session).expect("a read").expect("a session");
    tail.seq
}

fn read_returns_appended_bytes(log: &dyn Log) {
    let (mut a, mut b) = (BatchBuilder::new(1), BatchBuilder::new(2));
    log.append(&[a.events(3), b.events(2)]).expect("an append");
    log.append(&[a.events(4)]).expect("an append");
    let tail = log.tail(a.session).expect("a read").expect("a session");
    assert_eq!((tail.seq, tail.hash, tail.low), (Seq(7), a.hash, Seq(0)));
    let all = EventSelection::all();
    let read = log.read(a.session, Seq(2), Seq(6), &all, LIMITS);
    let read = read.expect("events");
    assert_eq!(read.end, Seq(6));
    let events = read.events;
    let bytes: Vec<_> = events.iter().map(|event| event.bytes.clone()).collect();
    assert_eq!(bytes, a.bytes[2..6]);
    let three = ReadLimits {
        events: 3,
        ..LIMITS
    };
    let limited = log.read(a.session, Seq(0), Seq(7), &all, three);
    let limited = limited.expect("events");
    assert_eq!((limited.events.len(), limited.end), (3, Seq(3)));
    assert_eq!(read_all(log, b.session, (0, 9)).expect("events"), [1, 2]);
    assert_eq!(log.hash_at(a.session, Seq(7)).expect("a hash"), a.hash);
    let seed = ChainHash::seed(a.session);
    assert_eq!(log.hash_at(a.session, Seq(0)).expect("a hash"), seed);
    let missing = log.tail(SessionId(Ulid(99)));
    assert!(missing.expect("a read").is_none());
}

fn read_stops_at_its_bytes(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    log.append(&[a.events(6)]).expect("an append");
    let sizes: Vec<usize> = a.bytes.iter().map(|bytes| bytes.len()).collect();
    let feedback = TypeSet::EMPTY.with(EventType::FeedbackRecorded);
    let selections = [
        EventSelection::all(),
        EventSelection::all().with_types(feedback),
        EventSelection::all().visible_only(),
    ];
    for selection in selections {
        let read = |after, bytes| {
            let limits = ReadLimits { bytes, ..LIMITS };
            let read = log.read(a.session, Seq(after), Seq(6), &selection, limits);
            let read = read.expect("events");
            (read.events.len(), read.end.0)
        };
        let two = sizes[0] + sizes[1];
        assert_eq!(read(0, two), (2, 2), "{selection:?}");
        assert_eq!(read(0, two - 1), (1, 1), "{selection:?}");
        assert_eq!(read(0, 0), (1, 1), "one event at least: {selection:?}");
        assert_eq!(read(5, 0), (1, 6), "{selection:?}");
        assert_eq!(read(0, sizes.iter().sum()), (6, 6), "{selection:?}");
    }
}

fn failed_batch_writes_nothing(log: &dyn Log) {
    let (mut a, mut b) = (BatchBuilder::new(1), BatchBuilder::new(2));
    log.append(&[a.events(1), b.events(1)]).expect("an append");
    let good = a.events(5);
    let mut bad = b.events(1);
    bad.prev = Seq(40);
    let refused = log.append(&[good.clone(), bad]);
    assert!(matches!(refused, Err(AppendError::Refused(_))));
    assert_eq!(last_seq(log, a.session), Seq(1));
    log.append(&[good]).expect("the same numbers again");
    assert_eq!(last_seq(log, a.session), Seq(6));
}

fn append_that_does_not_continue_is_refused(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    let first = a.events(2);
    log.append(std::slice::from_ref(&first)).expect("an append");
    assert!(log.append(&[first]).is_err(), "the same events twice");
    let mut gap = a.events(2);
    gap.records.remove(0);
    assert!(log.append(&[gap]).is_err(), "a gap");
}

fn second_terminal_of_a_turn_is_refused(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    let turn = TurnId(Ulid(5));
    log.append(&[a.turn_started(turn)]).expect("the start");
    log.append(&[a.turn_ended(turn)]).expect("the terminal");
    assert!(log.append(&[a.turn_ended(turn)]).is_err());
}

fn count_matches_the_selection(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    log.append(&[a.events(10)]).expect("an append");
    let count = |types: &[EventType], after| {
        let types: TypeSet = types.iter().copied().collect();
        let selection = EventSelection::all().with_types(types);
        let count = log.count(a.session, Seq(after), Seq(10), &selection, 100);
        count.expect("a count").events
    };
    assert_eq!(count(&[EventType::FeedbackRecorded], 0), 10);
    assert_eq!(count(&[EventType::FeedbackRecorded], 4), 6);
    assert_eq!(count(&[EventType::TurnStarted, EventType::TextDelta], 0), 0);
}

fn hidden_events_are_counted_on_request(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    let mut append = a.events(10);
    for index in [1, 4, 5] {
        append.records[index].hidden = true;
    }
    log.append(&[append]).expect("an append");
    let types = TypeSet::EMPTY.with(EventType::FeedbackRecorded);
    let visible = EventSelection::all().visible_only();
    let count = |after, upto, selection: &EventSelection| {
        let count = log.count(a.session, Seq(after), Seq(upto), selection, 100);
        count.expect("a count").events
    };
    for selection in [visible.clone(), visible.with_types(types)] {
        assert_eq!(count(0, 10, &selection), 7);
        assert_eq!(count(2, 5, &selection), 2);
        assert_eq!(count(4, 6, &selection), 0);
        assert_eq!(count(0, 99, &selection), 7, "no event after the tail");
    }
    assert_eq!(count(0, 10, &EventSelection::all()), 10);
    assert_eq!(count(10, 10, &EventSelection::all()), 0);
}

fn deleted_session_id_is_refused(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    log.append(&[a.events(3)]).expect("an append");
    log.delete(&[a.session], &[]).expect("a delete");
    log.delete(&[a.session], &[])
        .expect("a delete of no session");
    assert!(log.tail(a.session).expect("a read").is_none());
    let read = read_all(log, a.session, (0, 3));
    assert!(matches!(read, Err(ReadError::SessionNotFound)));
    assert!(log.append(&[BatchBuilder::new(1).events(1)]).is_err());
}

fn trim_keeps_the_chain_and_open_turns(log: &dyn Log) {
    let mut a = BatchBuilder::new(1);
    log.append(&[a.events(5)]).expect("an append"); // at 10, 20, 30, 40, 50 ms
    let trim = |before| sweep(log, before, 2);
    assert_eq!(trim(35), [(a.session, Seq(3))]);
    assert!(trim(35).is_empty());
    let tail = log.tail(a.session).expect("a read").expect("a session");
    assert_eq!((tail.low, tail.seq), (Seq(3), Seq(5)));
    assert_eq!(read_all(log, a.session, (3, 5)).expect("events"), [4, 5]);
    let turn = TurnId(Ulid(9));
    log.append(&[a.turn_started(turn)]).expect("an append");
    assert_eq!(trim(1_000), [(a.session, Seq(5))], "up to the open turn");
    assert!(trim(1_000).is_empty(), "the turn keeps its events");
    assert_eq!(read_all(log, a.session, (5, 6)).expect("events"), [6]);
    log.append(&[a.turn_ended(turn)]).expect("an append");
    assert_eq!(trim(1_000), [(a.session, Seq(7))]);
    let below = read_all(log, a.session, (3, 7));
    assert!(matches!(below, Err(ReadError::Trimmed { low: 7 })));
    assert!(read_all(log, a.session, (7, 7)).expect("events").is_empty());
    log.append(&[a.events(2)]).expect("events after the mark"); // at 80, 90 ms
    assert_eq!(trim(85), [(a.session, Seq(8))]);
    assert_eq!(read_all(log, a.session, (8, 9)).expect("events"), [9]);
}

fn sweep_in_pieces_trims_every_due_session(log: &dyn Log) {
    let mut sessions: Vec<_> = (1..=20).map(BatchBuilder::new).collect();
    for (index, session) in sessions.iter_mut().enumerate() {
        log.append(&[session.events(3 + index % 5)])
            .expect("an append");
    }
    log.delete(&[sessions[4].session], &[]).expect("a delete");
    let mut open = BatchBuilder::new(99);
    let started = open.turn_started(TurnId(Ulid(9)));
    log.append(&[started]).expect("an append");
    let mut marks = sweep(log, 45, 3);
    marks.sort();
    let expected = sessions
        .iter()
        .filter(|session| session.session != sessions[4].session);
    let expected: Vec<_> = expected
        .map(|session| (session.session, Seq(session.seq.0.min(4))))
        .collect();
    assert_eq!(marks, expected);
    assert!(sweep(log, 45, 3).is_empty());
}

fn full_read_reports_the_first_damaged_event(create: &dyn Fn() -> LogUnderTest) {
    for damage in [Damage::Bytes, Damage::StoredHash, Damage::Missing] {
        let test = create();
        let mut a = BatchBuilder::new(1);
        test.log.append(&[a.events(6)]).expect("an append");
        (test.damage)(a.session, Seq(3), damage);
        let read = read_all(test.log.as_ref(), a.session, (0, 6));
        assert!(
            matches!(read, Err(ReadError::Damaged { seq: 3, .. })),
            "{damage:?}: {read:?}"
        );
        let before = read_all(test.log.as_ref(), a.session, (0, 2));
        assert_eq!(before.expect("events"), [1, 2]);
    }
}

fn damage_in_one_session_leaves_others_readable(test: &LogUnderTest) {
    let (mut a, mut b) = (BatchBuilder::new(1), BatchBuilder::new(2));
    let batch = [a.events(5), b.events(5)];
    test.log.append(&batch).expect("an append");
    (test.damage)(a.session, Seq(3), Damage::Bytes);
    assert!(read_all(test.log.as_ref(), a.session, (0, 5)).is_err());
    let others = read_all(test.log.as_ref(), b.session, (0, 5));
    assert_eq!(others.expect("events").len(), 5);
}
