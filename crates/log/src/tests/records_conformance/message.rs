//! Messages by view, the streamed messages of a range, messages at one position.

use std::sync::Arc;

use turnwire_event::row::{FinishedMessage, MessageScope, NewMessage, RowChange, StoredMessage};
use turnwire_event::{
    ContentBlock, MessageId, MessageStatus, Role, StopReason, Sub, Timestamp, TokenUsage, TurnId,
    Ulid,
};

use crate::records::MessageView;
use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, at};

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    each_view_shows_its_own_messages(create().as_ref());
    display_only_messages_are_shown_to_clients_only(create().as_ref());
    messages_of_sub_agents_are_not_streamed(create().as_ref());
    messages_without_an_event_share_a_position(create().as_ref());
}

pub(super) fn message(id: u128, role: Role, scope: MessageScope) -> RowChange {
    let new = NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(Ulid(id)),
        role,
        content: vec![ContentBlock::text("hi")],
        metadata: serde_json::Map::new(),
        scope,
    };
    RowChange::MessagePut(TurnId(Ulid(5)), new)
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
    let all = |view| ids(store.messages(id, view, at(9), None, 9).expect("messages"));
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
    let newest = store.messages(id, MessageView::Agent("shop"), at(6), None, 1);
    assert_eq!(ids(newest.expect("messages")), [2]);
    let before = Some(MessageId(Ulid(6)));
    let older = store.messages(id, MessageView::Clients, at(9), before, 9);
    assert_eq!(ids(older.expect("messages")), [1]);
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
        let all = store.messages(id, view, at(9), None, 9).expect("messages");
        assert_eq!(ids(all), expected);
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
        let messages = store.streamed_messages(a.session, at(after), at(upto));
        ids(messages.expect("messages"))
    };
    assert_eq!(streamed(0, 3), [3]);
    assert_eq!(
        streamed(0, 1),
        [3],
        "a message that started in the range and completes after it"
    );
}

fn messages_without_an_event_share_a_position(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let first = a.event_with(message(1, Role::Tool, MessageScope::Shared));
    store.append(&[first]).expect("an append");
    let notes = [2, 3].map(|n| message(n, Role::User, MessageScope::Agents));
    let notes = a.rows(notes.into());
    store.append(&[notes]).expect("rows at the same position");
    let messages = store.messages(a.session, MessageView::Agents, at(1), None, 9);
    assert_eq!(ids(messages.expect("messages")), [2, 3]);
    let mut streaming = at(1);
    streaming.sub = Sub(4);
    let messages = store.messages_since(a.session, MessageView::Agents, at(1), streaming);
    assert!(messages.expect("messages").is_empty());
}
