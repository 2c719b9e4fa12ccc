//! The row changes of an event, derived from the event alone.
//!
//! Changes that need more than the event (a turn's settings, a message's content) are added by the
//! caller; this is the part that the live server and crash recovery share.

use crate::actor::Actor;
use crate::body::status::UNREGISTERED;
use crate::body::{Body, family};
use crate::code::{ToolErrorClass, ToolState};
use crate::id::{CallId, TurnId};
use crate::row::{ModelCallEnd, RowChange};

/// The row changes of an event; `turn` is `None` for events outside of any turn.
pub fn rows(turn: Option<TurnId>, actor: &Actor, body: &Body) -> Vec<RowChange> {
    match turn {
        Some(turn_id) => of_turn(turn_id, actor, body),
        None => of_session(body).into_iter().collect(),
    }
}

/// The change of an event outside of any turn, if it has one.
fn of_session(body: &Body) -> Option<RowChange> {
    if let Body::ApprovalResolved(resolved) = body {
        return Some(RowChange::ApprovalResolved(resolved.clone()));
    }
    if let Body::RoutingPolicyReloaded(policy) = body {
        let version = policy.routing_policy_version.clone();
        return Some(RowChange::PolicyReloaded(version));
    }
    None
}

/// The provider's id of the answer is not in the event: the emitter adds it.
fn call_ended(call_id: CallId, end: ModelCallEnd) -> RowChange {
    RowChange::CallEnded {
        call_id,
        end,
        provider_response_id: None,
    }
}

fn of_turn(turn_id: TurnId, actor: &Actor, body: &Body) -> Vec<RowChange> {
    let tool = |tool_use_id, tool_name: &String, tool_type, status| {
        vec![RowChange::ToolCall {
            tool_use_id,
            turn_id,
            tool_name: tool_name.clone(),
            tool_type,
            status,
        }]
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
            turn_id,
            model: route.model.clone(),
            policy_version: (route.relayed.is_none()).then(|| route.routing_policy_version.clone()),
            response_id: route
                .relayed
                .as_ref()
                .and_then(|relayed| relayed.response_id.clone()),
        }],
        Body::LlmCallStarted(call) => vec![RowChange::CallStarted {
            turn_id,
            actor: actor.clone(),
            call: call.clone(),
        }],
        Body::LlmCallCompleted(call) => {
            let (stop_reason, usage) = (call.stop_reason, call.usage);
            let end = ModelCallEnd::Completed { stop_reason, usage };
            let cost = RowChange::CostAdd(usage.cost_usd);
            vec![cost, call_ended(call.call_id, end)]
        }
        Body::LlmCallFailed(call) => {
            let (error_class, usage) = (call.error_class, call.usage);
            let end = ModelCallEnd::Failed { error_class, usage };
            // A call that failed or was stopped is paid for as well.
            let cost = (usage.cost_usd > 0.0).then_some(RowChange::CostAdd(usage.cost_usd));
            let end = call_ended(call.call_id, end);
            cost.into_iter().chain([end]).collect()
        }
        Body::ToolCalled(t) => tool(t.tool_use_id, &t.tool_name, t.tool_type, ToolState::Running),
        Body::ToolCompleted(t) => tool(
            t.tool_use_id,
            &t.tool_name,
            t.tool_type,
            ToolState::Completed,
        ),
        Body::ToolFailed(t) => {
            let status = match t.error_class {
                ToolErrorClass::Cancelled | ToolErrorClass::NotExecuted => ToolState::Cancelled,
                ToolErrorClass::Timeout
                | ToolErrorClass::EnvelopeError
                | ToolErrorClass::PrincipalMismatch
                | ToolErrorClass::InvalidInput
                | ToolErrorClass::Internal => ToolState::Failed,
            };
            tool(t.tool_use_id, &t.tool_name, t.tool_type, status)
        }
        Body::ApprovalRequested(requested) => {
            vec![RowChange::ApprovalPut(turn_id, requested.clone())]
        }
        // A withheld status is not counted.
        Body::StatusEmitted(status) if status.event_id == UNREGISTERED => Vec::new(),
        Body::StatusEmitted(status) => vec![RowChange::StatusCounted(status.event_id.clone())],
        family!(Session | SubagentEnd | Delegate | Plan | Display | Bus | Delta | Mcp | Note)
        | Body::TurnStarted(_)
        | Body::DispatchTraced(_)
        | Body::RoutingPolicyReloaded(_)
        | Body::ApprovalResolved(_)
        | Body::SubagentStarted(_)
        | Body::MessageStart(_)
        | Body::MessageComplete(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::llm::{CallFailed, CallStarted};
    use crate::body::routing::PolicyReloaded;
    use crate::body::status::StatusEmitted;
    use crate::code::{CallPurpose, LlmErrorClass};
    use crate::content::TokenUsage;
    use crate::id::Ulid;

    #[test]
    fn status_is_counted_unless_withheld() {
        let counted = |event_id: &str| {
            let body = Body::StatusEmitted(StatusEmitted {
                event_id: event_id.into(),
                message: String::new(),
                invocation_id: None,
            });
            rows(Some(TurnId(Ulid(1))), &Actor::ORCHESTRATOR, &body)
        };
        let row = RowChange::StatusCounted("searching".into());
        assert_eq!(counted("searching"), [row]);
        assert_eq!(counted(UNREGISTERED), []);
    }

    // D-04
    #[test]
    fn model_call_row_lives_from_start_to_end() {
        let turn = TurnId(Ulid(1));
        let call_id = CallId(Ulid(2));
        let shop = Actor::subagent("shop");
        let call = CallStarted {
            call_id,
            model: "local:small".into(),
            purpose: CallPurpose::Subagent,
            attempt: 2,
            first: false,
        };
        let started = Body::LlmCallStarted(call.clone());
        let expected = RowChange::CallStarted {
            turn_id: turn,
            actor: shop.clone(),
            call,
        };
        assert_eq!(rows(Some(turn), &shop, &started), [expected]);
        let failed = Body::LlmCallFailed(CallFailed {
            call_id,
            message_id: None,
            content_sha256: None,
            error_class: LlmErrorClass::RateLimited,
            usage: TokenUsage::default(),
        });
        let end = |usage| RowChange::CallEnded {
            call_id,
            end: ModelCallEnd::Failed {
                error_class: LlmErrorClass::RateLimited,
                usage,
            },
            provider_response_id: None,
        };
        let expected = end(TokenUsage::default());
        assert_eq!(rows(Some(turn), &shop, &failed), [expected]);
        let usage = TokenUsage {
            input_tokens: 7,
            total_tokens: 7,
            cost_usd: 0.5,
            estimated: true,
            ..TokenUsage::default()
        };
        let stopped = Body::LlmCallFailed(CallFailed {
            call_id,
            message_id: None,
            content_sha256: None,
            error_class: LlmErrorClass::RateLimited,
            usage,
        });
        let expected = [RowChange::CostAdd(0.5), end(usage)];
        assert_eq!(rows(Some(turn), &shop, &stopped), expected);
    }

    // S3-104
    #[test]
    fn reload_changes_the_session_and_no_turn() {
        let body = Body::RoutingPolicyReloaded(PolicyReloaded {
            routing_policy_version: "2".into(),
            previous_version: Some("1".into()),
        });
        let row = RowChange::PolicyReloaded("2".into());
        assert_eq!(rows(None, &Actor::SYSTEM, &body), [row]);
    }
}
