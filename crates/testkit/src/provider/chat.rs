//! OpenAI Chat Completions as bytes: unnamed events, a first delta that has only the role, `usage`
//! as null on every chunk and then on a last one without choices (only if it was asked for), and
//! `[DONE]`.

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::error::ProviderError;
use super::frame::{FrameBlock, SseFrame, arrange};
use super::message::{FinishReason, MessagePart, ModelMessage, TokenCounts};
use super::render_request::RenderRequest;

/// The frames of a message.
pub(crate) fn frames(message: &ModelMessage, request: &RenderRequest) -> Vec<SseFrame> {
    let chunks = ChunkBuilder { message, request };
    let speaks = message
        .parts
        .iter()
        .any(|part| matches!(part, MessagePart::Text { .. }));
    let content = if speaks { json!("") } else { Value::Null };
    let mut frames =
        vec![chunks.delta(json!({"role": "assistant", "content": content, "refusal": null}))];
    let mut calls = Vec::new();
    for (index, part) in message.parts.iter().enumerate() {
        match part {
            MessagePart::Thinking { pieces, .. } => {
                let field = message.chat_reasoning.into_iter();
                let deltas =
                    field.flat_map(|field| pieces.iter().map(move |piece| json!({field: piece})));
                frames.extend(deltas.map(|delta| chunks.delta(delta)));
            }
            MessagePart::Redacted { .. } => {}
            MessagePart::Text { pieces } => {
                frames.extend(
                    pieces
                        .iter()
                        .map(|piece| chunks.delta(json!({"content": piece}))),
                );
            }
            MessagePart::Call {
                id, name, pieces, ..
            } => {
                let id = id.clone().unwrap_or_else(|| request.id("call_", index));
                calls.push(chunks.call(calls.len(), &id, name, pieces));
            }
        }
    }
    frames.extend(arrange(calls, message.order));
    frames.push(chunks.choice(json!({}), Some(finish(&message.finish))));
    if request.wants_usage() {
        frames.push(chunks.chunk(json!([]), usage(message.usage)));
    }
    frames.push(SseFrame::data("[DONE]"));
    frames
}

/// How many of the last frames are the proper end: the finish, perhaps the usage, `[DONE]`.
pub(crate) fn end(request: &RenderRequest) -> usize {
    2 + usize::from(request.wants_usage())
}

/// The frame of an error in the stream.
pub(crate) fn error(trouble: ProviderError) -> SseFrame {
    let words = trouble.text(Dialect::Chat);
    let body = json!({"error": {
        "message": words.message, "type": words.kind, "param": null, "code": words.code,
    }});
    SseFrame::data(body.to_string())
}

/// A frame of a kind that no client knows: an object that is no chunk, without choices.
pub(crate) fn unknown() -> SseFrame {
    SseFrame::data(
        json!({"object": "chat.completion.aurora", "choices": [], "aurora": 3}).to_string(),
    )
}

struct ChunkBuilder<'a> {
    message: &'a ModelMessage,
    request: &'a RenderRequest,
}

impl ChunkBuilder<'_> {
    fn delta(&self, delta: Value) -> SseFrame {
        self.choice(delta, None)
    }

    fn choice(&self, delta: Value, finish: Option<&str>) -> SseFrame {
        let choices =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        self.chunk(choices, Value::Null)
    }

    fn chunk(&self, choices: Value, usage: Value) -> SseFrame {
        let id = self.message.id.clone();
        let length = choices.to_string().len();
        let mut chunk = json!({
            "id": id.unwrap_or_else(|| self.request.id("chatcmpl-", 0)),
            "object": "chat.completion.chunk",
            "created": 1_794_700_000,
            "model": self.message.model.as_ref().unwrap_or(&self.request.model),
            "service_tier": "default",
            "system_fingerprint": "fp_0f4ke0f4ke",
            "choices": choices,
        });
        if self.request.wants_usage() {
            chunk["usage"] = usage;
        }
        if self.request.wants_obfuscation() {
            chunk["obfuscation"] = json!("oBfUsCaTiOn"[..length % 11]);
        }
        SseFrame::data(chunk.to_string())
    }

    fn call(&self, index: usize, id: &str, name: &str, pieces: &[String]) -> FrameBlock<SseFrame> {
        let start = json!({
            "index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""},
        });
        let part = |call: Value| self.delta(json!({"tool_calls": [call]}));
        let delta =
            |piece: &String| part(json!({"index": index, "function": {"arguments": piece}}));
        FrameBlock {
            start: vec![part(start)],
            deltas: pieces.iter().map(delta).collect(),
            end: Vec::new(),
        }
    }
}

fn finish(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Done | FinishReason::Sequence(_) | FinishReason::Paused => "stop",
        FinishReason::Tools => "tool_calls",
        FinishReason::Length | FinishReason::Window => "length",
        FinishReason::Refused => "content_filter",
        FinishReason::Word(word) => word,
    }
}

fn usage(usage: TokenCounts) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}
