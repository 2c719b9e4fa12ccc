//! A producer that requests approvals, and resumes with the decisions.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use turnwire_event::body::approval::{ApprovalRequested, ResolvedApproval};
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{MessageStart, ToolUseEnd, ToolUseStart};
use turnwire_event::body::tool::{ToolCalled, ToolCompleted, ToolFailed};
use turnwire_event::code::{CallPurpose, Decision, ToolErrorClass, ToolType, TurnStatus};
use turnwire_event::port::{Emission, MessageEnd, TurnContext, TurnInput, TurnOutcome};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, ApprovalId, Body, ContentBlock, IdGenerator as _, Message, MessageId, Role, StopReason,
    TokenUsage, ToolUseId,
};
use turnwire_session::SystemIdGenerator;

use super::{LARGE_BUDGET, OK, WorkFn, emit, ids, producer_fn};

/// The inputs and histories of turns, and the tools that ran.
#[derive(Default)]
pub struct TurnRecorder {
    pub inputs: Mutex<Vec<TurnInput>>,
    pub pasts: Mutex<Vec<Vec<Message>>>,
    /// The tools that ran, in order.
    pub done: Mutex<Vec<ToolUseId>>,
}

/// A turn whose text is a number requests that many approvals. A resuming turn runs the approved
/// tools, or never ends if its metadata has `hang`.
pub fn approval_producer() -> (Arc<TurnRecorder>, WorkFn) {
    let recorder = Arc::new(TurnRecorder::default());
    let shared = recorder.clone();
    let act = producer_fn(move |turn| {
        let recorder = shared.clone();
        async move { act(turn, &recorder).await }
    });
    (recorder, act)
}

async fn act(turn: TurnContext, recorder: &TurnRecorder) -> TurnOutcome {
    let history = turn.history.recent(LARGE_BUDGET).await.expect("a past");
    recorder.pasts.lock().push(history);
    recorder.inputs.lock().push(turn.input.clone());
    if let Some(resumed) = turn.input.resumed.clone() {
        if turn.input.metadata.get("hang").is_some() {
            std::future::pending::<()>().await;
        }
        for answer in &resumed.answers {
            work(&turn, recorder, answer);
        }
        return match turn.input.metadata.get("again").is_some() {
            true => request_approvals(&turn, 1),
            false => OK,
        };
    }
    let words = turn.input.content.first().and_then(ContentBlock::as_text);
    match words.and_then(|words| words.parse().ok()) {
        Some(count) => request_approvals(&turn, count),
        None => OK,
    }
}

/// Uses `count` tools, and requests an approval for each.
pub fn request_approvals(turn: &TurnContext, count: u32) -> TurnOutcome {
    for tool_use_id in use_tools(turn, count) {
        let requested = ApprovalRequested {
            approval_id: ApprovalId(SystemIdGenerator.ulid()),
            tool_use_id,
            tool_name: "pay".into(),
            input_summary: "{}".into(),
            input_truncated: false,
            input_bytes: None,
            input_sha256: None,
        };
        emit(turn, Body::ApprovalRequested(requested));
    }
    TurnOutcome {
        cancelled: None,
        status: TurnStatus::Paused,
        error: None,
        reason: None,
    }
}

fn use_tools(turn: &TurnContext, count: u32) -> Vec<ToolUseId> {
    let (call_id, message_id, _) = ids();
    let started = CallStarted {
        call_id,
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: false,
    };
    emit(turn, Body::LlmCallStarted(started));
    let start = MessageStart {
        message_id,
        role: Role::Assistant,
        model: "m".into(),
    };
    emit(turn, Body::MessageStart(start));
    let mut uses = Vec::new();
    for content_block_index in 0..count {
        let tool_use_id = ids().2;
        let start = ToolUseStart {
            message_id,
            content_block_index,
            tool_use_id,
            tool_name: "pay".into(),
        };
        emit(turn, Body::ToolUseStart(start));
        let end = ToolUseEnd {
            message_id,
            content_block_index,
            tool_use_id,
            final_input: json!({}),
        };
        emit(turn, Body::ToolUseEnd(end));
        uses.push(tool_use_id);
    }
    let end = MessageEnd {
        provider_state: turnwire_event::ProviderState::default(),
        provider_response_id: None,
        call_id,
        message_id,
        stop_reason: StopReason::ToolUse,
        usage: TokenUsage::default(),
        failure: None,
        tools: uses.iter().map(|id| (*id, ToolType::Http)).collect(),
    };
    turn.emitter.complete(end).expect("accepted");
    uses
}

/// Runs or refuses the tool of one decision.
fn work(turn: &TurnContext, recorder: &TurnRecorder, answer: &ResolvedApproval) {
    let (tool_use_id, tool_name) = (answer.tool_use_id, answer.tool_name.clone());
    let tool_type = answer.tool_type;
    let allowed = answer.decision == Decision::Approve;
    let body = if allowed {
        let called = ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: tool_name.clone(),
            tool_type,
            input_summary: String::new(),
        };
        emit(turn, Body::ToolCalled(called));
        recorder.done.lock().push(tool_use_id);
        Body::ToolCompleted(ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            duration_ms: 1,
            result_summary: String::new(),
            result_sha256: String::new(),
        })
    } else {
        Body::ToolFailed(ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            error_class: ToolErrorClass::Cancelled,
            called: false,
        })
    };
    let emission = Emission {
        message: Some(result(tool_use_id)),
        ..Emission::new(Actor::ORCHESTRATOR, body)
    };
    turn.emitter.emit(emission).expect("accepted");
}

fn result(tool_use_id: ToolUseId) -> NewMessage {
    NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(SystemIdGenerator.ulid()),
        role: Role::Tool,
        content: vec![ContentBlock::ToolResult {
            tool_use_id,
            content: json!("said"),
            is_error: false,
        }],
        metadata: turnwire_event::JsonObject::default(),
        scope: MessageScope::Shared,
    }
}
