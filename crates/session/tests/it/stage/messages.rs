//! Messages that are stored with events, for every kind of reader, and their texts in a history.

use turnwire_event::body::support::SupportNoted;
use turnwire_event::body::tool::{ToolCalled, ToolCompleted};
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, HistoryBudget, TurnContext};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{Actor, Body, ContentBlock, IdGenerator as _, Message, MessageId, Role};
use turnwire_session::SystemIdGenerator;

use super::{emit, ids};

pub fn new_message(role: Role, text: &str, scope: MessageScope) -> NewMessage {
    NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(SystemIdGenerator.ulid()),
        role,
        content: vec![ContentBlock::text(text)],
        metadata: turnwire_event::JsonObject::default(),
        scope,
    }
}

/// Emits the call and the end of a tool, with a message.
pub fn run_tool(turn: &TurnContext, stored: NewMessage) -> MessageId {
    let (.., tool_use_id) = ids();
    let (tool_name, tool_type) = ("search".to_owned(), ToolType::Function);
    emit(
        turn,
        Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: tool_name.clone(),
            tool_type,
            input_summary: String::new(),
        }),
    );
    let body = Body::ToolCompleted(ToolCompleted {
        upstream_id: None,
        tool_use_id,
        tool_name,
        tool_type,
        duration_ms: 1,
        result_summary: String::new(),
        result_sha256: String::new(),
    });
    let mut emission = Emission::new(Actor::ORCHESTRATOR, body);
    let id = stored.id;
    emission.message = Some(stored);
    turn.emitter.emit(emission).expect("accepted");
    id
}

pub fn emit_note(turn: &TurnContext, text: &str) {
    let body = Body::SupportNoted(SupportNoted {
        sub_agent_id: "shop".into(),
        text: text.into(),
    });
    let mut emission = Emission::new(Actor::subagent("shop"), body);
    emission.message = Some(new_message(Role::User, text, MessageScope::Agents));
    turn.emitter.emit(emission).expect("accepted");
}

pub const LARGE_BUDGET: HistoryBudget = HistoryBudget {
    messages_max: 100,
    bytes_max: 100_000,
};

pub fn message_texts(messages: &[Message]) -> Vec<String> {
    let stored = messages.iter().flat_map(|message| &message.content);
    stored
        .filter_map(ContentBlock::as_text)
        .map(str::to_owned)
        .collect()
}
