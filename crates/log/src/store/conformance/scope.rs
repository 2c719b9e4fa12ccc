//! Messages are shown to those they are for; what is hidden is not counted; statuses are.

use std::sync::Arc;

use turnwire_event::row::{FinishedMessage, NewMessage, RowChange, Scope, StoredMessage};
use turnwire_event::{
    ContentBlock, Epoch, EventType, Filter, FilterSpec, MessageId, MessageStatus, Position, Role,
    Seq, StopReason, Sub, Timestamp, TurnId, TypeSet, Ulid, Usage,
};

use super::{Maker, queue::rows};
use crate::record::Append;
use crate::store::{StatusCount, Store, View};

pub(super) fn run(make: &dyn Fn() -> Arc<dyn Store>) {
    everyone_is_shown_their_own(make().as_ref());
    what_is_only_displayed_is_for_clients(make().as_ref());
    what_sub_agents_say_never_streams(make().as_ref());
    rows_beside_the_events_share_a_place(make().as_ref());
    hidden_events_are_not_counted(make().as_ref());
    statuses_are_counted_by_day(make().as_ref());
}

pub(super) fn message(id: u128, role: Role, scope: Scope) -> RowChange {
    let new = NewMessage {
        kept: turnwire_event::Kept::default(),
        id: MessageId(Ulid(id)),
        role,
        content: vec![ContentBlock::text("hi")],
        metadata: serde_json::Map::new(),
        scope,
    };
    RowChange::MessagePut(TurnId(Ulid(5)), new)
}

/// An event with a message.
pub(super) fn said(maker: &mut Maker, change: RowChange) -> Append {
    let mut append = maker.notes(1);
    append.rows.push(maker.placed(change));
    append
}

fn ids(found: Vec<StoredMessage>) -> Vec<u128> {
    found.iter().map(|stored| stored.message.id.0.0).collect()
}

pub(super) fn at(seq: u64) -> Position {
    Position::persisted(Epoch(1), Seq(seq))
}

fn everyone_is_shown_their_own(store: &dyn Store) {
    let mut a = Maker::new(1);
    let agent = |id: &str| Scope::Agent(id.into());
    let scopes = [
        Scope::Shared,
        agent("shop"),
        Scope::Private,
        agent("rewards"),
        Scope::Agents,
        Scope::Shared,
        agent("shop"),
    ];
    for (n, scope) in (1..).zip(scopes) {
        let append = said(&mut a, message(n, Role::Tool, scope));
        store.append(&[append]).expect("an append");
    }
    let id = a.session;
    let all = |view| ids(store.messages(id, view, at(9), None, 9).expect("messages"));
    assert_eq!(all(View::Clients), [1, 6]);
    assert_eq!(all(View::Orchestrator), [1, 3, 6]);
    assert_eq!(all(View::Agent("shop")), [2, 7]);
    assert_eq!(all(View::Agent("rewards")), [4]);
    assert_eq!(all(View::Agents), [5]);
    for odd in ["nobody", "", "-", "*", "+"] {
        assert!(all(View::Agent(odd)).is_empty(), "no id is a way around");
    }
    let newest = store.messages(id, View::Agent("shop"), at(6), None, 1);
    assert_eq!(ids(newest.expect("messages")), [2]);
    let before = Some(MessageId(Ulid(6)));
    let older = store.messages(id, View::Clients, at(9), before, 9);
    assert_eq!(ids(older.expect("messages")), [1]);
    let since = |view| {
        let found = store.messages_since(id, view, at(1), at(6));
        ids(found.expect("messages"))
    };
    assert_eq!(since(View::Orchestrator), [3, 6]);
    assert_eq!(since(View::Agent("shop")), [2]);
    assert_eq!(since(View::Agents), [5]);
    let count = |view| store.message_count(id, view, at(5)).expect("a count");
    let counts = [View::Clients, View::Orchestrator, View::Agent("shop")].map(count);
    assert_eq!(counts, [1, 2, 1]);
    let one = |n| store.message(id, MessageId(Ulid(n))).expect("a read");
    assert!(one(1).is_some() && one(2).is_none() && one(3).is_none());
}

/// A collection weighs much and no model sees it: it must not push out what one does see.
fn what_is_only_displayed_is_for_clients(store: &dyn Store) {
    let mut a = Maker::new(1);
    let list = || ContentBlock::Data {
        data_id: "data_1".into(),
        data_type: "offer_list".into(),
        key: serde_json::json!({}),
        items: serde_json::json!([]),
    };
    let contents = [
        vec![list()],
        vec![ContentBlock::text("a list"), list()],
        vec![list(), list()],
    ];
    for (n, content) in (1..).zip(contents) {
        let RowChange::MessagePut(turn, mut new) = message(n, Role::Tool, Scope::Shared) else {
            unreachable!("a message")
        };
        new.content = content;
        let append = said(&mut a, RowChange::MessagePut(turn, new));
        store.append(&[append]).expect("an append");
    }
    let id = a.session;
    for (view, expected) in [
        (View::Clients, &[1, 2, 3][..]),
        (View::Orchestrator, &[2]),
        (View::Agents, &[]),
    ] {
        let all = store.messages(id, view, at(9), None, 9).expect("messages");
        assert_eq!(ids(all), expected);
        let since = store.messages_since(id, view, at(0), at(9));
        assert_eq!(ids(since.expect("messages")), expected);
        let count = store.message_count(id, view, at(9)).expect("a count");
        assert_eq!(count, expected.len() as u64);
    }
    let one = store.message(id, MessageId(Ulid(1))).expect("a read");
    assert!(one.is_some(), "clients are shown it");
}

fn what_sub_agents_say_never_streams(store: &dyn Store) {
    let mut a = Maker::new(1);
    let inner = Scope::Agent("shop".into());
    for (n, scope) in [(1, inner.clone()), (2, inner)] {
        let append = said(&mut a, message(n, Role::Assistant, scope));
        store.append(&[append]).expect("an append");
    }
    let finished = FinishedMessage {
        kept: turnwire_event::Kept::default(),
        id: MessageId(Ulid(3)),
        status: MessageStatus::Complete,
        stop_reason: StopReason::EndTurn,
        model: "m".into(),
        content: vec![ContentBlock::text("hi")],
        usage: Usage::default(),
        started: at(1),
        started_at: Timestamp::from_millis(10),
        cuts: Vec::new(),
        inputs: Vec::new(),
    };
    let finished = RowChange::MessageFinished(TurnId(Ulid(5)), Box::new(finished));
    let append = said(&mut a, finished);
    store.append(&[append]).expect("an append");
    let streamed = |after, upto| {
        let found = store.streamed(a.session, at(after), at(upto));
        ids(found.expect("messages"))
    };
    assert_eq!(streamed(0, 3), [3]);
    assert_eq!(streamed(0, 1), [3], "the next to end began inside");
}

fn rows_beside_the_events_share_a_place(store: &dyn Store) {
    let mut a = Maker::new(1);
    let first = said(&mut a, message(1, Role::Tool, Scope::Shared));
    store.append(&[first]).expect("an append");
    let noted = [2, 3].map(|n| message(n, Role::User, Scope::Agents));
    let noted = rows(&a, noted.into());
    store.append(&[noted]).expect("rows at the same place");
    let found = store.messages(a.session, View::Agents, at(1), None, 9);
    assert_eq!(ids(found.expect("messages")), [2, 3]);
    let mut streaming = at(1);
    streaming.sub = Sub(4);
    let found = store.messages_since(a.session, View::Agents, at(1), streaming);
    assert!(found.expect("messages").is_empty());
}

fn hidden_events_are_not_counted(store: &dyn Store) {
    let mut a = Maker::new(1);
    let mut append = a.notes(10);
    for at in [1, 4, 5] {
        append.records[at].hidden = true;
    }
    store.append(&[append]).expect("an append");
    let every = FilterSpec {
        include_suppressed: true,
        ..FilterSpec::default()
    };
    let every = Filter::resolve(&every).expect("a filter");
    let notes = Filter::of(
        [EventType::FeedbackRecorded]
            .into_iter()
            .collect::<TypeSet>(),
    );
    let count = |after, upto, filter: &Filter| {
        let counted = store.count(a.session, Seq(after), Seq(upto), filter);
        counted.expect("a count")
    };
    for filter in [&Filter::full(), &notes] {
        assert_eq!(count(0, 10, filter), 7);
        assert_eq!(count(2, 5, filter), 2);
        assert_eq!(count(4, 6, filter), 0);
        assert_eq!(count(0, 99, filter), 7, "there is nothing behind the tail");
    }
    assert_eq!(count(0, 10, &every), 10);
    assert_eq!(count(10, 10, &every), 0);
}

fn statuses_are_counted_by_day(store: &dyn Store) {
    const DAY: i64 = 24 * 3600 * 1000;
    let mut a = Maker::new(1);
    let emitted = [
        (0, "searching", 1),
        (0, "searching", 2),
        (0, "thinking", 1),
        (40, "searching", 3),
        (41, "searching", 1),
    ];
    for (day, event_id, times) in emitted {
        let mut append = a.notes(1);
        for _ in 0..times {
            let mut row = a.placed(RowChange::StatusCounted(event_id.into()));
            row.time = Timestamp::from_millis(day * DAY + DAY - 1);
            append.rows.push(row);
        }
        store.append(&[append]).expect("an append");
    }
    let told = |event_id: &str, total, days: &[(&str, u64)]| StatusCount {
        event_id: event_id.into(),
        total,
        days: days.iter().map(|&(day, n)| (day.into(), n)).collect(),
    };
    let recent = store.status_counts(Timestamp::from_millis(41 * DAY));
    let expected = [
        told("searching", 7, &[("1970-02-11", 1)]),
        told("thinking", 1, &[]),
    ];
    assert_eq!(recent.expect("counts"), expected);
    let all = store
        .status_counts(Timestamp::from_millis(0))
        .expect("counts");
    let days = [("1970-01-01", 3), ("1970-02-10", 3), ("1970-02-11", 1)];
    assert_eq!(all[0], told("searching", 7, &days));
    store.delete(a.session).expect("a delete");
    let kept = store
        .status_counts(Timestamp::from_millis(0))
        .expect("counts");
    assert_eq!(kept, all, "what was counted stays when the session goes");
}
