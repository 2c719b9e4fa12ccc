//! Which rows an event changes, from the event alone.
//!
//! What needs more than the event (a turn's settings, a message's content) is added by whoever
//! has it; this is the part that the live server and the sweep share.

use crate::body::Body;
use crate::body::status::UNREGISTERED;
use crate::code::{ToolErrorClass, ToolState};
use crate::id::TurnId;
use crate::row::RowChange;

/// The row changes of an event of `turn`.
pub fn rows(turn: Option<TurnId>, body: &Body) -> Vec<RowChange> {
    let Some(turn_id) = turn else {
        return Vec::new();
    };
    let tool = |tool_use_id, tool_name: &String, tool_type, status| RowChange::ToolCall {
        tool_use_id,
        turn_id,
        tool_name: tool_name.clone(),
        tool_type,
        status,
    };
    let ended = || {
        let mut payload = Vec::new();
        body.write(&mut payload);
        let payload = String::from_utf8(payload).unwrap_or_default();
        vec![RowChange::TurnEnded {
            turn_id,
            terminal: body.kind(),
            payload,
        }]
    };
    match body {
        Body::TurnCancelRequested(_) => vec![RowChange::TurnCancelling(turn_id)],
        Body::TurnCompleted(_) | Body::TurnCancelled(_) => ended(),
        Body::RouteDecided(route) => vec![RowChange::Routed {
            model: route.model.clone(),
            policy_version: route.routing_policy_version.clone(),
        }],
        Body::LlmCallCompleted(call) => vec![RowChange::CostAdd(call.usage.cost_usd)],
        Body::ToolCalled(t) => vec![tool(
            t.tool_use_id,
            &t.tool_name,
            t.tool_type,
            ToolState::Running,
        )],
        Body::ToolCompleted(t) => vec![tool(
            t.tool_use_id,
            &t.tool_name,
            t.tool_type,
            ToolState::Completed,
        )],
        Body::ToolFailed(t) => {
            let status = match t.error_class {
                ToolErrorClass::Cancelled => ToolState::Cancelled,
                ToolErrorClass::Timeout
                | ToolErrorClass::EnvelopeError
                | ToolErrorClass::PrincipalMismatch
                | ToolErrorClass::InvalidInput
                | ToolErrorClass::Internal => ToolState::Failed,
            };
            vec![tool(t.tool_use_id, &t.tool_name, t.tool_type, status)]
        }
        // What was withheld is no status that anyone counts.
        Body::StatusEmitted(status) if status.event_id == UNREGISTERED => Vec::new(),
        Body::StatusEmitted(status) => vec![RowChange::StatusCounted(status.event_id.clone())],
        Body::SessionCreated(_)
        | Body::SessionClosed(_)
        | Body::TurnStarted(_)
        | Body::DispatchTraced(_)
        | Body::LlmCallStarted(_)
        | Body::LlmCallFailed(_)
        | Body::SubagentStarted(_)
        | Body::SubagentCompleted(_)
        | Body::SubagentFailed(_)
        | Body::DataLoading(_)
        | Body::DataLoaded(_)
        | Body::ComponentRendered(_)
        | Body::ErrorReported(_)
        | Body::FeedbackRecorded(_)
        | Body::PlanStepStarted(_)
        | Body::PlanStepCompleted(_)
        | Body::AgentErrorEmit(_)
        | Body::McpListToolsStarted(_)
        | Body::McpListToolsCompleted(_)
        | Body::McpSessionStarted(_)
        | Body::McpSessionProgressed(_)
        | Body::SupportNoted(_)
        | Body::BusSubscriberRegistered(_)
        | Body::BusSubscriberUnregistered(_)
        | Body::BusHandlerWarning(_)
        | Body::MessageStart(_)
        | Body::TextDelta(_)
        | Body::ThinkingDelta(_)
        | Body::ToolUseStart(_)
        | Body::ToolUseInputDelta(_)
        | Body::ToolUseEnd(_)
        | Body::MessageComplete(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::status::Emitted;
    use crate::id::Ulid;

    #[test]
    fn a_status_is_counted_unless_it_was_withheld() {
        let counted = |event_id: &str| {
            let body = Body::StatusEmitted(Emitted {
                event_id: event_id.into(),
                message: String::new(),
            });
            rows(Some(TurnId(Ulid(1))), &body)
        };
        let row = RowChange::StatusCounted("searching".into());
        assert_eq!(counted("searching"), [row]);
        assert_eq!(counted(UNREGISTERED), []);
    }
}
