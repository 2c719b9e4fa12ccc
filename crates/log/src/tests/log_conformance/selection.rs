//! Reads with an [`EventSelection`]: which events they return, and which damage they find.

use turnwire_event::{Actor, EventType, Seq, SessionId, TurnId, TypeSet, Ulid};

use super::{Damage, LIMITS, LogUnderTest, read_all};
use crate::error::ReadError;
use crate::log::Log;
use crate::selection::{EventSelection, ReadLimits};
use crate::tests::fixture::{BatchBuilder, sweep};

pub(super) fn run(create: &dyn Fn() -> LogUnderTest) {
    read_and_count_return_the_selected_events(create().log.as_ref());
    limit_counts_selected_events(create().log.as_ref());
    scan_ends_at_its_bound(create().log.as_ref());
    damaged_selected_event_fails_the_read(create);
    damaged_hash_before_a_selected_event_fails_the_read(create);
    missing_event_before_a_selected_event_fails_the_read(&create());
    damaged_skipped_event_is_not_checked(&create());
    first_retained_event_is_checked_against_the_trim_hash(&create());
}

const TURN: TurnId = TurnId(Ulid(5));

/// Appends twelve events and returns their session:
///
/// ```text
///   seq     1  2  3  4  5  6  7  8  9 10 11 12
///   type    F  T  F  F  T  F  C  F  F  T  F  F     F feedback, T tool.called, C turn.completed
///   turn       ×  ×     ×     ×
///   actor   u  a  u  u  b  s  u  u  u  a  u  u     u user, a tool:alpha, b tool:beta, s system
///   hidden        ×              ×     ×
/// ```
fn append_mixed(log: &dyn Log) -> BatchBuilder {
    let mut builder = BatchBuilder::new(1);
    let mut append = builder.events(12);
    for record in &mut append.records {
        let seq = record.seq.0;
        record.kind = match seq {
            2 | 5 | 10 => EventType::ToolCalled,
            7 => EventType::TurnCompleted,
            _ => EventType::FeedbackRecorded,
        };
        record.actor = match seq {
            2 | 10 => Actor::tool("alpha"),
            5 => Actor::tool("beta"),
            6 => Actor::SYSTEM,
            _ => Actor::USER,
        };
        record.turn = [2, 3, 5, 7].contains(&seq).then_some(TURN);
        record.hidden = [3, 8, 10].contains(&seq);
    }
    log.append(&[append]).expect("an append");
    builder
}

fn types(kinds: &[EventType]) -> EventSelection {
    EventSelection::all().with_types(kinds.iter().copied().collect::<TypeSet>())
}

fn tool_calls() -> EventSelection {
    types(&[EventType::ToolCalled])
}

fn actors(patterns: &[&str]) -> EventSelection {
    let patterns = patterns.iter().map(|text| text.parse().expect("an actor"));
    EventSelection::all().with_actors(patterns.collect())
}

fn read(
    log: &dyn Log,
    session: SessionId,
    after: u64,
    selection: &EventSelection,
) -> Result<Vec<u64>, ReadError> {
    let events = log
        .read(session, Seq(after), Seq(12), selection, LIMITS)?
        .events;
    Ok(events.iter().map(|event| event.seq.0).collect())
}

fn read_and_count_return_the_selected_events(log: &dyn Log) {
    let builder = append_mixed(log);
    let feedback = EventType::FeedbackRecorded;
    let every_type = types(&[feedback, EventType::ToolCalled, EventType::TurnCompleted]);
    let many: Vec<String> = (0..40_000).map(|n| format!("tool:{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases: Vec<(EventSelection, &[u64])> = vec![
        (tool_calls(), &[2, 5, 10]),
        (types(&[EventType::TurnCompleted]), &[7]),
        (types(&[EventType::TurnStarted, EventType::TextDelta]), &[]),
        (types(&[]), &[]),
        (every_type, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        (EventSelection::all().with_turn(TURN), &[2, 3, 5, 7]),
        (EventSelection::all().with_turn(TurnId(Ulid(6))), &[]),
        (tool_calls().with_turn(TURN), &[2, 5]),
        (actors(&["tool"]), &[2, 5, 10]),
        (actors(&["tool:alpha"]), &[2, 10]),
        (actors(&["tool:beta", "system"]), &[5, 6]),
        (actors(&["tool:alph", "subagent", "orchestrator"]), &[]),
        (actors(&many), &[]),
        (actors(&[]), &[]),
        (tool_calls().visible_only(), &[2, 5]),
        (
            EventSelection::all().visible_only(),
            &[1, 2, 4, 5, 6, 7, 9, 11, 12],
        ),
    ];
    for (selection, expected) in cases {
        for after in [0, 2, 6, 11] {
            let expected: Vec<u64> = expected.iter().copied().filter(|n| *n > after).collect();
            let read = log.read(builder.session, Seq(after), Seq(12), &selection, LIMITS);
            let read = read.expect("events");
            assert_eq!(read.end, Seq(12), "after {after}: {selection:?}");
            let events = read.events;
            let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
            assert_eq!(seqs, expected, "after {after}: {selection:?}");
            for event in &events {
                assert_eq!(event.bytes, builder.bytes[event.seq.0 as usize - 1]);
            }
            let count = log.count(builder.session, Seq(after), Seq(12), &selection, 100);
            let count = count.expect("a count");
            assert_eq!((count.events, count.end), (expected.len() as u64, Seq(12)));
            for scanned in [2, 5].into_iter().filter(|_| after == 0) {
                let found = in_pieces(log, builder.session, after, &selection, scanned);
                assert_eq!(found, expected, "{scanned} at once: {selection:?}");
            }
        }
    }
}

/// The selected events up to 12, read in pieces that look at `scanned` events each. Every piece
/// moves on, and counts what it reads.
fn in_pieces(
    log: &dyn Log,
    session: SessionId,
    after: u64,
    selection: &EventSelection,
    scanned: usize,
) -> Vec<u64> {
    let mut after = Seq(after);
    let mut found = Vec::new();
    while after < Seq(12) {
        let limits = ReadLimits { scanned, ..LIMITS };
        let read = log.read(session, after, Seq(12), selection, limits);
        let read = read.expect("events");
        let count = log.count(session, after, read.end, selection, 100);
        assert_eq!(count.expect("a count").events, read.events.len() as u64);
        assert!(read.end > after, "{selection:?}");
        assert!(read.events.len() <= scanned || selection.is_all());
        found.extend(read.events.iter().map(|event| event.seq.0));
        after = read.end;
    }
    found
}

fn scan_ends_at_its_bound(log: &dyn Log) {
    let session = append_mixed(log).session;
    let end = |selection: &EventSelection, scanned, upto| {
        let limits = ReadLimits { scanned, ..LIMITS };
        let read = log.read(session, Seq(0), Seq(upto), selection, limits);
        let read = read.expect("events");
        let count = log.count(session, Seq(0), Seq(upto), selection, scanned);
        let count = count.expect("a count");
        assert_eq!(count.end, read.end, "{selection:?}");
        assert_eq!(count.events, read.events.len() as u64, "{selection:?}");
        (read.events.len(), read.end.0)
    };
    let rare = actors(&["system"]);
    assert_eq!(end(&rare, 4, 12), (0, 4), "nothing found yet");
    assert_eq!(end(&rare, 6, 12), (1, 6));
    assert_eq!(end(&rare, 12, 1_000), (1, 1_000), "no event after the tail");
    // By type only the events of that type are looked at.
    assert_eq!(end(&types(&[EventType::TurnCompleted]), 1, 6), (0, 6));
    assert_eq!(end(&tool_calls(), 2, 12), (2, 5));
    assert_eq!(end(&tool_calls().visible_only(), 3, 12), (2, 10));
    let beta = tool_calls().with_actors(vec![Actor::tool("beta")]);
    assert_eq!(end(&beta, 1, 12), (0, 2));
    assert_eq!(end(&beta, 4, 12), (1, 12));
}

fn limit_counts_selected_events(log: &dyn Log) {
    let session = append_mixed(log).session;
    let read = |after, upto, limit| -> Vec<u64> {
        let limits = ReadLimits {
            events: limit,
            ..LIMITS
        };
        let read = log.read(session, Seq(after), Seq(upto), &tool_calls(), limits);
        let read = read.expect("events");
        read.events.iter().map(|event| event.seq.0).collect()
    };
    assert_eq!(read(0, 12, 2), [2, 5]);
    assert_eq!(read(5, 12, 2), [10]);
    assert_eq!(read(0, 9, 100), [2, 5]);
    assert!(read(10, 12, 2).is_empty());
    assert!(read(0, 12, 0).is_empty());
}

fn damaged_selected_event_fails_the_read(create: &dyn Fn() -> LogUnderTest) {
    for damage in [Damage::Bytes, Damage::StoredHash] {
        let test = create();
        let session = append_mixed(test.log.as_ref()).session;
        (test.damage)(session, Seq(5), damage);
        let damaged = read(test.log.as_ref(), session, 0, &tool_calls());
        assert!(
            matches!(damaged, Err(ReadError::Damaged { seq: 5, .. })),
            "{damage:?}: {damaged:?}"
        );
        let later = read(test.log.as_ref(), session, 6, &tool_calls());
        assert_eq!(later.expect("events"), [10]);
    }
}

fn damaged_hash_before_a_selected_event_fails_the_read(create: &dyn Fn() -> LogUnderTest) {
    // After 0 the predecessor is skipped; after 4 it is where the read begins.
    for after in [0, 4] {
        let test = create();
        let session = append_mixed(test.log.as_ref()).session;
        (test.damage)(session, Seq(4), Damage::StoredHash);
        let damaged = read(test.log.as_ref(), session, after, &tool_calls());
        assert!(
            matches!(damaged, Err(ReadError::Damaged { seq: 5, .. })),
            "after {after}: {damaged:?}"
        );
    }
}

fn missing_event_before_a_selected_event_fails_the_read(test: &LogUnderTest) {
    let session = append_mixed(test.log.as_ref()).session;
    (test.damage)(session, Seq(9), Damage::Missing);
    let damaged = read(test.log.as_ref(), session, 0, &tool_calls());
    assert!(
        matches!(damaged, Err(ReadError::Damaged { seq: 9, .. })),
        "{damaged:?}"
    );
}

fn damaged_skipped_event_is_not_checked(test: &LogUnderTest) {
    let session = append_mixed(test.log.as_ref()).session;
    (test.damage)(session, Seq(4), Damage::Bytes);
    let selected = read(test.log.as_ref(), session, 0, &tool_calls());
    assert_eq!(selected.expect("events"), [2, 5, 10]);
    let full = read_all(test.log.as_ref(), session, (0, 12));
    assert!(matches!(full, Err(ReadError::Damaged { seq: 4, .. })));
}

fn first_retained_event_is_checked_against_the_trim_hash(test: &LogUnderTest) {
    let (log, builder) = (test.log.as_ref(), append_mixed(test.log.as_ref()));
    let session = builder.session;
    assert_eq!(sweep(log, 45, 10), [(session, Seq(4))]);
    let below = read(log, session, 3, &tool_calls());
    assert!(matches!(below, Err(ReadError::Trimmed { low: 4 })));
    let count = log.count(session, Seq(3), Seq(12), &tool_calls(), 100);
    assert!(matches!(count, Err(ReadError::Trimmed { low: 4 })));
    let retained = read(log, session, 4, &tool_calls());
    assert_eq!(retained.expect("events"), [5, 10]);
    (test.damage)(session, Seq(4), Damage::StoredHash);
    let damaged = read(log, session, 4, &tool_calls());
    assert!(
        matches!(damaged, Err(ReadError::Damaged { seq: 5, .. })),
        "{damaged:?}"
    );
    let later = read(log, session, 5, &tool_calls());
    assert_eq!(later.expect("events"), [10]);
}
