//! Model calls of the orchestrator and of sub-agents, with their cost.

use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::body::stream::{MessageStart, TextDelta};
use turnwire_event::code::{CallPurpose, LlmErrorClass};
use turnwire_event::port::{Emission, MessageEnd, TurnContext};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, ProviderState, Role, StopReason, TokenUsage,
};

use super::{emit, ids};

/// The usage of a call.
pub fn usage_of(input: u64, output: u64, cost_usd: f64) -> TokenUsage {
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input + output,
        reasoning_tokens: 0,
        cached_tokens: 0,
        cost_usd,
        estimated: false,
    }
}

pub fn call_started(call_id: CallId, model: &str, purpose: CallPurpose) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id,
        model: model.into(),
        purpose,
        attempt: 1,
        first: false,
    })
}

/// Streams a message of the orchestrator, with its model call.
pub fn stream_message(
    turn: &TurnContext,
    text: &str,
    usage: TokenUsage,
    kept: ProviderState,
) -> CallId {
    let (call_id, message_id, _) = ids();
    emit(
        turn,
        call_started(call_id, "big:one", CallPurpose::Orchestrate),
    );
    emit(
        turn,
        Body::MessageStart(MessageStart {
            message_id,
            role: Role::Assistant,
            model: "big:one".into(),
        }),
    );
    emit(
        turn,
        Body::TextDelta(TextDelta {
            message_id,
            content_block_index: 0,
            text: text.into(),
        }),
    );
    let end = MessageEnd {
        provider_state: kept,
        provider_response_id: Some(format!("theirs of {text}")),
        call_id,
        message_id,
        stop_reason: StopReason::EndTurn,
        usage,
        failure: None,
        tools: Vec::new(),
    };
    turn.emitter.complete(end).expect("accepted");
    call_id
}

/// Emits a model call of a sub-agent, which completes or fails.
pub fn call_as_sub_agent(
    turn: &TurnContext,
    agent: &str,
    usage: Option<TokenUsage>,
    kept: ProviderState,
) -> CallId {
    let (call_id, message_id, _) = ids();
    let actor = Actor::subagent(agent);
    let start = call_started(call_id, "small:one", CallPurpose::Subagent);
    let emitted = turn.emitter.emit(Emission::new(actor.clone(), start));
    emitted.expect("accepted");
    let body = match usage {
        Some(usage) => Body::LlmCallCompleted(CallCompleted {
            call_id,
            message_id,
            content_sha256: String::new(),
            stop_reason: StopReason::EndTurn,
            usage,
        }),
        None => Body::LlmCallFailed(CallFailed {
            call_id,
            message_id: None,
            content_sha256: None,
            error_class: LlmErrorClass::Timeout,
            usage: TokenUsage::default(),
        }),
    };
    let mut emission = Emission::new(actor, body);
    emission.provider_response_id = Some("inner".into());
    emission.message = usage.map(|_| NewMessage {
        provider_state: kept,
        id: message_id,
        role: Role::Assistant,
        content: vec![ContentBlock::text("to myself")],
        metadata: turnwire_event::JsonObject::default(),
        scope: MessageScope::Agent(agent.into()),
    });
    turn.emitter.emit(emission).expect("accepted");
    call_id
}
