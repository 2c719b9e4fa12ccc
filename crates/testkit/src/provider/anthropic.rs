//! Anthropic Messages as bytes: named events, each with its `type` again in the data, LF ends, a
//! ping after the first block's start, and the padding of spaces that the provider puts before the
//! last brace.

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::error::ProviderError;
use super::frame::{FrameBlock, SseFrame, arrange};
use super::message::{FinishReason, MessagePart, ModelMessage, TokenCounts};
use super::render_request::RenderRequest;

/// The frames of a message.
pub(crate) fn frames(message: &ModelMessage, request: &RenderRequest) -> Vec<SseFrame> {
    let mut frames = vec![start(message, request)];
    let blocks = message.parts.iter().enumerate();
    let blocks = blocks.map(|(index, part)| block(index, part, request));
    frames.extend(arrange(blocks.collect(), message.order));
    frames.insert(frames.len().min(2), event(json!({"type": "ping"})));
    frames.push(delta(message));
    frames.push(event(json!({"type": "message_stop"})));
    frames
}

/// How many of the last frames are the proper end.
pub(crate) const END: usize = 2;

/// The frame of an error in the stream.
pub(crate) fn error(trouble: ProviderError) -> SseFrame {
    let words = trouble.text(Dialect::Anthropic);
    event(json!({
        "type": "error",
        "error": {"type": words.kind, "message": words.message},
    }))
}

/// A frame of a kind that no client knows.
pub(crate) fn unknown() -> SseFrame {
    event(json!({"type": "aurora_update", "aurora": {"strength": 3}}))
}

/// A frame of this data, padded with spaces as the provider pads.
fn event(data: Value) -> SseFrame {
    let name = data["type"].as_str().unwrap_or_default().to_owned();
    let mut text = data.to_string();
    let spaces = text.len() % 13;
    text.insert_str(text.len() - 1, &" ".repeat(spaces));
    SseFrame::named(&name, text)
}

fn start(message: &ModelMessage, request: &RenderRequest) -> SseFrame {
    let id = message.id.clone();
    let model = message.model.as_ref().unwrap_or(&request.model);
    let mut usage = input_usage(message.usage);
    let write = message.usage.cache_write;
    usage["cache_creation"] =
        json!({"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0});
    usage["output_tokens"] = json!(1);
    usage["service_tier"] = json!("standard");
    event(json!({
        "type": "message_start",
        "message": {
            "model": model,
            "id": id.unwrap_or_else(|| request.id("msg_01", 0)),
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "stop_details": null,
            "usage": usage,
        },
    }))
}

fn input_usage(usage: TokenCounts) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
    })
}

fn block(index: usize, part: &MessagePart, request: &RenderRequest) -> FrameBlock<SseFrame> {
    let (content, deltas) = match part {
        MessagePart::Thinking { pieces, signature } => {
            let thoughts = pieces
                .iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            let proofs = signature
                .iter()
                .map(|piece| json!({"type": "signature_delta", "signature": piece}));
            let content = json!({"type": "thinking", "thinking": "", "signature": ""});
            (content, thoughts.chain(proofs).collect())
        }
        MessagePart::Redacted { data } => (
            json!({"type": "redacted_thinking", "data": data}),
            Vec::new(),
        ),
        MessagePart::Text { pieces } => {
            let deltas = pieces
                .iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}));
            (json!({"type": "text", "text": ""}), deltas.collect())
        }
        MessagePart::Call {
            id, name, pieces, ..
        } => {
            let id = id.clone().unwrap_or_else(|| request.id("toolu_01", index));
            let content = json!({"type": "tool_use", "id": id, "name": name, "input": {}, "caller": {"type": "direct"}});
            // The provider always opens a call's input with an empty fragment.
            let pieces = std::iter::once("").chain(pieces.iter().map(String::as_str));
            let deltas =
                pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            (content, deltas.collect::<Vec<Value>>())
        }
    };
    let deltas = deltas
        .into_iter()
        .map(|delta| event(json!({"type": "content_block_delta", "index": index, "delta": delta})));
    FrameBlock {
        start: vec![event(
            json!({"type": "content_block_start", "index": index, "content_block": content}),
        )],
        deltas: deltas.collect(),
        end: vec![event(json!({"type": "content_block_stop", "index": index}))],
    }
}

fn delta(message: &ModelMessage) -> SseFrame {
    let (reason, sequence) = match &message.finish {
        FinishReason::Done => ("end_turn", None),
        FinishReason::Tools => ("tool_use", None),
        FinishReason::Length => ("max_tokens", None),
        FinishReason::Sequence(sequence) => ("stop_sequence", Some(sequence)),
        FinishReason::Refused => ("refusal", None),
        FinishReason::Paused => ("pause_turn", None),
        FinishReason::Window => ("model_context_window_exceeded", None),
        FinishReason::Word(word) => (word.as_str(), None),
    };
    let details = if message.finish == FinishReason::Refused {
        json!({"type": "refusal", "category": null, "explanation": null})
    } else {
        Value::Null
    };
    let mut usage = input_usage(message.usage);
    usage["output_tokens"] = json!(message.usage.output);
    usage["output_tokens_details"] = json!({"thinking_tokens": message.usage.reasoning});
    event(json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": sequence, "stop_details": details},
        "usage": usage,
    }))
}
