//! The result of a tool: its message for the model, its stored message, and the failures of data
//! services that come with it.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::turn::TurnError;
use turnwire_event::row::NewMessage;
use turnwire_event::{Body, ContentBlock, Role, ToolUseId};
use turnwire_model::ModelMessage;
use turnwire_tool::ServiceFault;

use crate::resources::agent_context::{AgentContext, EmitResult};

/// The [`ModelMessage`] that gives a model the result of a tool use.
pub(crate) fn tool_result(tool_use_id: ToolUseId, result: Result<Value, Value>) -> ModelMessage {
    let is_error = result.is_err();
    let (Ok(content) | Err(content)) = result;
    let result = ContentBlock::ToolResult {
        tool_use_id,
        content,
        is_error,
    };
    ModelMessage::new(Role::Tool, vec![result])
}

/// A [`ModelMessage`] as it is stored for the agent of `context`.
pub(crate) fn stored_message(context: &AgentContext<'_>, message: &ModelMessage) -> NewMessage {
    let (metadata, scope) = (context.message_metadata(), context.resources.role.scope());
    context.new_message(message.role, message.content.clone(), metadata, scope)
}

/// Whole milliseconds, for events.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A [`ServiceFault`] as clients are sent it.
pub(crate) fn envelope_error(fault: &ServiceFault) -> TurnError {
    TurnError::envelope(&fault.enricher_id, fault.reason)
}

/// Reports a [`ServiceFault`]; the turn goes on (axis 2).
pub(crate) async fn report_fault(context: &AgentContext<'_>, fault: &ServiceFault) -> EmitResult {
    let reported = Body::ErrorReported(envelope_error(fault));
    context.emit_as_agent(reported).await?;
    let sub_agent_id = context.resources.role.sub_agent_id();
    let counted = Body::AgentErrorEmit(ErrorEmit {
        sub_agent_id: sub_agent_id.map(str::to_owned),
        axis: 2,
        is_final: false,
    });
    context.emit_as_agent(counted).await
}
