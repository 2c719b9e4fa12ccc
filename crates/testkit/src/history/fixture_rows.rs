//! The message, turn and tool call rows that a correct server stores for a
//! [`SessionFixture`].

use std::collections::BTreeMap;

use serde_json::{Value, json};
use turnwire_event::{Body, ContentBlock, Message, MessageId, Role, StopReason, TurnId, Ulid};

use super::fixture::SessionFixture;

/// The message rows that a server stores for the first `up_to` events.
pub(super) fn message_rows(fixture: &SessionFixture, up_to: usize) -> Vec<Message> {
    let mut rows: Vec<Message> = Vec::new();
    for event in &fixture.events[..up_to] {
        let message = |id, role, content: &[ContentBlock]| Message {
            provider_state: turnwire_event::ProviderState::default(),
            id,
            session_id: fixture.session,
            turn_id: event.turn_id.unwrap_or(TurnId(Ulid(0))),
            role,
            status: turnwire_event::MessageStatus::Complete,
            content: content.to_vec(),
            model: None,
            omitted_bytes: None,
            stop_reason: None,
            usage: None,
            created_at: event.timestamp,
            metadata: turnwire_event::JsonObject::default(),
        };
        match &event.body {
            Body::TurnStarted(started) => {
                rows.push(message(started.user_message_id, Role::User, &started.input))
            }
            Body::MessageComplete(end) => {
                let mut row = message(end.message_id, Role::Assistant, &end.final_content);
                row.stop_reason = Some(end.stop_reason);
                row.usage = Some(end.usage);
                row.status = match end.stop_reason {
                    StopReason::Cancelled => turnwire_event::MessageStatus::Cancelled,
                    StopReason::Error => turnwire_event::MessageStatus::Failed,
                    _ => turnwire_event::MessageStatus::Complete,
                };
                rows.push(row);
            }
            Body::ToolCompleted(tool) => {
                let id = MessageId(Ulid(tool.tool_use_id.0.0 + 1_000_000));
                rows.push(message(id, Role::Tool, &fixture.results[&tool.tool_use_id]));
            }
            _ => {}
        }
    }
    rows
}

/// The turn rows and the tool call rows of the whole fixture.
pub(super) fn other_rows(fixture: &SessionFixture) -> (Vec<Value>, Vec<Value>) {
    let (mut turns, mut tools) = (BTreeMap::new(), BTreeMap::new());
    for event in &fixture.events {
        let mut turn = |state: &'static str| turns.insert(event.turn_id, state);
        match &event.body {
            Body::TurnStarted(_) => _ = turn("running"),
            Body::TurnCompleted(_) => _ = turn("completed"),
            Body::TurnCancelled(_) => _ = turn("cancelled"),
            Body::ToolCalled(t) => _ = tools.insert(t.tool_use_id, "running"),
            Body::ToolCompleted(t) => _ = tools.insert(t.tool_use_id, "completed"),
            Body::ToolFailed(t) => _ = tools.insert(t.tool_use_id, "cancelled"),
            _ => {}
        }
    }
    (
        turns
            .into_iter()
            .map(|(id, state)| json!({"turn_id": id, "state": state}))
            .collect(),
        tools
            .into_iter()
            .map(|(id, status)| json!({"tool_use_id": id, "status": status}))
            .collect(),
    )
}
