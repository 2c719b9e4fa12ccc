//! Messages by view, the streamed messages of a range, messages at one position.

use std::sync::Arc;

use turnwire_event::row::{FinishedMessage, MessageScope, NewMessage, RowChange, StoredMessage};
use turnwire_event::{
    ContentBlock, Message, MessageId, MessageStatus, Role, StopReason, Sub, Timestamp, TokenUsage,
    TurnId, Ulid,
};

use crate::error::ReadError;
use crate::records::{MessageView, PageBounds, RowPage};
use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, at};

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    each_view_shows_its_own_messages(create().as_ref());
    display_only_messages_are_shown_to_clients_only(create().as_ref());
    messages_of_sub_agents_are_not_streamed(create().as_ref());
    streamed_messages_stop_at_their_bytes(create().as_ref());
    messages_without_an_event_share_a_position(create().as_ref());
    large_messages_are_listed_without_their_content(create().as_ref());
}

pub(super) fn message(id: u128, role: Role, scope: MessageScope) -> RowChange {
    let new = NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(Ulid(id)),
        role,
        content: vec![ContentBlock::text("hi")],
        metadata: turnwire_event::JsonObject::default(),
        scope,
    };
    RowChange::MessagePut(TurnId(Ulid(5)), new)
}

fn page_ids(page: Result<RowPage<Message>, ReadError>) -> Vec<u128> {
    let rows = page.expect("messages").rows;
    rows.iter().map(|message| message.id.0.0).collect()
}

fn ids(messages: Vec<StoredMessage>) -> Vec<u128> {
    messages
        .iter()
        .map(|stored| stored.message.id.0.0)
        .collect()
}

fn each_view_shows_its_own_messages(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let agent = |id: &str| MessageScope::Agent(id.into());
    let scopes = [
        MessageScope::Shared,
        agent("shop"),
        MessageScope::Private,
        agent("rewards"),
        MessageScope::Agents,
        MessageScope::Shared,
        agent("shop"),
    ];
    for (n, scope) in (1..).zip(scopes) {
        let append = a.event_with(message(n, Role::Tool, scope));
        store.append(&[append]).expect("an append");
    }
    let id = a.session;
    let all = |view| page_ids(store.messages(id, view, at(9), None, 9.into()));
    assert_eq!(all(MessageView::Clients), [1, 6]);
    assert_eq!(all(MessageView::Orchestrator), [1, 3, 6]);
    assert_eq!(all(MessageView::Agent("shop")), [2, 7]);
    assert_eq!(all(MessageView::Agent("rewards")), [4]);
    assert_eq!(all(MessageView::Agents), [5]);
    for id in ["nobody", "", "-", "*", "+"] {
        assert!(
            all(MessageView::Agent(id)).is_empty(),
            "no other scope by an id"
        );
    }
    let newest = store.messages(id, MessageView::Agent("shop"), at(6), None, 1.into());
    assert_eq!(page_ids(newest), [2]);
    let before = Some(MessageId(Ulid(6)));
    let older = store.messages(id, MessageView::Clients, at(9), before, 9.into());
    assert_eq!(page_ids(older), [1]);
    let since = |view| {
        let messages = store.messages_since(id, view, at(1), at(6));
        ids(messages.expect("messages"))
    };
    assert_eq!(since(MessageView::Orchestrator), [3, 6]);
    assert_eq!(since(MessageView::Agent("shop")), [2]);
    assert_eq!(since(MessageView::Agents), [5]);
    let count = |view| store.message_count(id, view, at(5)).expect("a count");
    let counts = [
        MessageView::Clients,
        MessageView::Orchestrator,
        MessageView::Agent("shop"),
    ]
    .map(count);
    assert_eq!(counts, [1, 2, 1]);
    let one = |n| store.message(id, MessageId(Ulid(n))).expect("a read");
    assert!(one(1).is_some() && one(2).is_none() && one(3).is_none());
}

/// A collection is large and no model reads it: it must not displace messages that a model reads.
fn display_only_messages_are_shown_to_clients_only(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
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
        let RowChange::MessagePut(turn, mut new) = message(n, Role::Tool, MessageScope::Shared)
        else {
            unreachable!("a message")
        };
        new.content = content;
        let append = a.event_with(RowChange::MessagePut(turn, new));
        store.append(&[append]).expect("an append");
    }
    let id = a.session;
    for (view, expected) in [
        (MessageView::Clients, &[1, 2, 3][..]),
        (MessageView::Orchestrator, &[2]),
        (MessageView::Agents, &[]),
    ] {
        let all = store.messages(id, view, at(9), None, 9.into());
        assert_eq!(page_ids(all), expected);
        let since = store.messages_since(id, view, at(0), at(9));
        assert_eq!(ids(since.expect("messages")), expected);
        let count = store.message_count(id, view, at(9)).expect("a count");
        assert_eq!(count, expected.len() as u64);
    }
    let one = store.message(id, MessageId(Ulid(1))).expect("a read");
    assert!(one.is_some(), "clients see the message");
}

fn messages_of_sub_agents_are_not_streamed(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let inner = MessageScope::Agent("shop".into());
    for (n, scope) in [(1, inner.clone()), (2, inner)] {
        let append = a.event_with(message(n, Role::Assistant, scope));
        store.append(&[append]).expect("an append");
    }
    let finished = FinishedMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(Ulid(3)),
        status: MessageStatus::Complete,
        stop_reason: StopReason::EndTurn,
        model: "m".into(),
        content: vec![ContentBlock::text("hi")],
        usage: TokenUsage::default(),
        started: at(1),
        started_at: Timestamp::from_millis(10),
        cuts: Vec::new(),
        inputs: Vec::new(),
    };
    let finished = RowChange::MessageFinished(TurnId(Ulid(5)), Box::new(finished));
    let append = a.event_with(finished);
    store.append(&[append]).expect("an append");
    let streamed = |after, upto| {
        let messages = store.streamed_messages(a.session, at(after), at(upto), 1 << 20);
        let (messages, end) = messages.expect("messages");
        assert_eq!(end, at(upto));
        ids(messages)
    };
    assert_eq!(streamed(0, 3), [3]);
    assert_eq!(
        streamed(0, 1),
        [3],
        "a message that started in the range and completes after it"
    );
    let ranges = |after, upto, max| {
        let ranges = store.streamed_ranges(a.session, at(after), at(upto), max);
        ranges.expect("ranges")
    };
    assert_eq!(ranges(0, 3, 9), [(at(1), at(3))]);
    assert_eq!(ranges(0, 2, 9), [], "it completes after the range");
    assert_eq!(ranges(3, 9, 9), [], "it has completed before the range");
    assert_eq!(ranges(0, 3, 0), []);
}

/// Models read a message whole however large it is; a list for clients leaves its content out.
fn large_messages_are_listed_without_their_content(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    for (n, bytes) in [(1, 10), (2, 50_000), (3, 10), (4, 10)] {
        let RowChange::MessagePut(turn, mut new) = message(n, Role::User, MessageScope::Shared)
        else {
            unreachable!("a message")
        };
        new.content = vec![ContentBlock::text("x".repeat(bytes))];
        let append = a.event_with(RowChange::MessagePut(turn, new));
        store.append(&[append]).expect("an append");
    }
    let page = |view, before: Option<u128>| {
        let bounds = PageBounds {
            rows: 9,
            bytes: 10_000,
        };
        let before = before.map(|id| MessageId(Ulid(id)));
        let page = store.messages(a.session, view, at(9), before, bounds);
        let page = page.expect("messages");
        let sizes = page.rows.iter();
        let sizes = sizes.map(|m| (m.id.0.0, m.text().len(), m.omitted_bytes));
        (sizes.collect::<Vec<_>>(), page.has_more)
    };
    let newest = (vec![(3, 10, None), (4, 10, None)], true);
    assert_eq!(page(MessageView::Clients, None), newest);
    let stored = r#"[{"type":"text","text":""}]{}"#.len() as u64 + 50_000;
    let large = (vec![(2, 0, Some(stored))], true);
    assert_eq!(page(MessageView::Clients, Some(3)), large);
    let oldest = (vec![(1, 10, None)], false);
    assert_eq!(page(MessageView::Clients, Some(2)), oldest);
    assert_eq!(page(MessageView::Orchestrator, None), newest);
    let whole = (vec![(2, 50_000, None)], true);
    assert_eq!(page(MessageView::Orchestrator, Some(3)), whole);
}

fn streamed_messages_stop_at_their_bytes(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    for n in 1..=3 {
        let append = a.event_with(message(n, Role::Assistant, MessageScope::Shared));
        store.append(&[append]).expect("an append");
    }
    let streamed = |after, bytes_max| {
        let messages = store.streamed_messages(a.session, at(after), at(3), bytes_max);
        let (messages, end) = messages.expect("messages");
        (ids(messages), end)
    };
    assert_eq!(streamed(0, 0), (vec![1], at(1)), "one message at least");
    assert_eq!(streamed(1, 0), (vec![2], at(2)));
    assert_eq!(streamed(2, 0), (vec![3], at(3)));
    assert_eq!(streamed(0, 1 << 20), (vec![1, 2, 3], at(3)));
}

fn messages_without_an_event_share_a_position(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let first = a.event_with(message(1, Role::Tool, MessageScope::Shared));
    store.append(&[first]).expect("an append");
    let notes = [2, 3].map(|n| message(n, Role::User, MessageScope::Agents));
    let notes = a.rows(notes.into());
    store.append(&[notes]).expect("rows at the same position");
    let messages = store.messages(a.session, MessageView::Agents, at(1), None, 9.into());
    assert_eq!(page_ids(messages), [2, 3]);
    let mut streaming = at(1);
    streaming.sub = Sub(4);
    let messages = store.messages_since(a.session, MessageView::Agents, at(1), streaming);
    assert!(messages.expect("messages").is_empty());
}
