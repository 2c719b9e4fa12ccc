//! Google Gemini as bytes: unnamed events that are each a whole `GenerateContentResponse` with a
//! piece of the content, CR LF ends, Google's own spacing, `finishReason` on the last.

use serde_json::{Value, json};

use super::frame::{SseFrame, google_json};
use super::message::{BlockOrder, FinishReason, MessagePart, ModelMessage, TokenCounts};
use super::render_request::RenderRequest;

/// The frames of a message.
pub(crate) fn frames(message: &ModelMessage, request: &RenderRequest) -> Vec<SseFrame> {
    let mut broken = false;
    let mut contents: Vec<Vec<Value>> = Vec::new();
    let mut calls: Vec<Value> = Vec::new();
    for part in &message.parts {
        match part {
            MessagePart::Thinking { pieces, signature } => {
                contents.extend(thoughts(pieces, &signature.concat()));
            }
            MessagePart::Redacted { data } => {
                contents.push(vec![json!({"text": "", "thoughtSignature": data})]);
            }
            MessagePart::Text { pieces } => {
                contents.extend(pieces.iter().map(|piece| vec![json!({"text": piece})]));
            }
            MessagePart::Call { .. } => match call(part) {
                Some(call) if message.order == BlockOrder::Interleaved => calls.push(call),
                Some(call) => contents.push(vec![call]),
                None => broken = true,
            },
        }
    }
    if !calls.is_empty() {
        contents.push(calls);
    }
    let finish = if broken {
        "MALFORMED_FUNCTION_CALL"
    } else {
        finish(&message.finish)
    };
    if contents.is_empty() {
        contents.push(vec![json!({"text": ""})]);
    }
    let last = contents.len() - 1;
    let chunks = contents.into_iter().enumerate();
    chunks
        .map(|(at, parts)| chunk(message, request, parts, (at == last).then_some(finish)))
        .collect()
}

/// The frame of an error in the stream.
pub(crate) fn error(body: &Value) -> SseFrame {
    SseFrame::data(google_json(body))
}

/// A frame of a kind that no client knows: neither candidates nor usage.
pub(crate) fn unknown() -> SseFrame {
    SseFrame::data(google_json(&json!({"auroraMetadata": {"strength": 3}})))
}

/// Takes the end away from the last frame: its piece stays, the reason does not.
pub(crate) fn without_end(frames: &mut [SseFrame]) {
    let Some(last) = frames.last_mut() else {
        return;
    };
    let mut body: Value = serde_json::from_str(&last.data).unwrap_or_default();
    if let Some(candidate) = body["candidates"][0].as_object_mut() {
        candidate.remove("finishReason");
    }
    last.data = google_json(&body);
}

fn thoughts(pieces: &[String], signature: &str) -> Vec<Vec<Value>> {
    let mut parts: Vec<Value> = pieces
        .iter()
        .map(|piece| json!({"text": piece, "thought": true}))
        .collect();
    if !signature.is_empty() {
        if parts.is_empty() {
            parts.push(json!({"text": "", "thought": true}));
        }
        if let Some(part) = parts.last_mut() {
            part["thoughtSignature"] = json!(signature);
        }
    }
    parts.into_iter().map(|part| vec![part]).collect()
}

/// A call; `None` if its input is no object, which this wire cannot carry.
fn call(part: &MessagePart) -> Option<Value> {
    let MessagePart::Call {
        id,
        name,
        pieces,
        signature,
    } = part
    else {
        return None;
    };
    let args: Value = serde_json::from_str(&pieces.concat()).ok()?;
    let mut call = json!({"name": name, "args": args.as_object()?});
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    let mut part = json!({"functionCall": call});
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    Some(part)
}

fn chunk(
    message: &ModelMessage,
    request: &RenderRequest,
    parts: Vec<Value>,
    finish: Option<&str>,
) -> SseFrame {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    candidate["index"] = json!(0);
    let id = message.id.clone();
    SseFrame::data(google_json(&json!({
        "candidates": [candidate],
        "usageMetadata": usage(message.usage, finish.is_some()),
        "modelVersion": message.model.as_ref().unwrap_or(&request.model),
        "responseId": id.unwrap_or_else(|| request.id("f4keResponse", 0)),
    })))
}

fn finish(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Done
        | FinishReason::Tools
        | FinishReason::Sequence(_)
        | FinishReason::Paused => "STOP",
        FinishReason::Length | FinishReason::Window => "MAX_TOKENS",
        FinishReason::Refused => "SAFETY",
        FinishReason::Word(word) => word,
    }
}

/// The usage so far; only the last chunk has the answer's own count.
fn usage(usage: TokenCounts, whole: bool) -> Value {
    let visible = usage.output.saturating_sub(usage.reasoning);
    let mut counts = json!({"promptTokenCount": usage.input});
    if whole {
        counts["candidatesTokenCount"] = json!(visible);
    }
    let total = usage.input + usage.reasoning + if whole { visible } else { 0 };
    counts["totalTokenCount"] = json!(total);
    if usage.cached > 0 {
        counts["cachedContentTokenCount"] = json!(usage.cached);
    }
    counts["promptTokensDetails"] = json!([{"modality": "TEXT", "tokenCount": usage.input}]);
    if usage.reasoning > 0 {
        counts["thoughtsTokenCount"] = json!(usage.reasoning);
    }
    counts
}
