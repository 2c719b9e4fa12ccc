//! Writes a [`ModelRequest`](crate::ModelRequest) for the Messages API: turns alternate, tool
//! results come first in their turn, and thinking is sent only with its signature and never last.

use serde_json::{Map, Value, json};

use crate::dialect::conversation::{
    AssistantPart, ConversationTurn, ToolOutcome, VendorConversation, conversation,
};
use crate::dialect::{EncodeInput, ModelParams, apply_extra, insert_some, joined, tool_list};
use crate::request::ToolSpec;

/// Default of `max_tokens`, which the vendor requires.
const MAX_TOKENS: u32 = 4096;

/// Default of `max_tokens` for adaptive thinking: thinking counts as output and would use up most
/// of [`MAX_TOKENS`].
const MAX_TOKENS_WITH_EFFORT: u32 = 16_384;

/// Smallest thinking budget that the vendor accepts.
const THINKING_TOKENS_MIN: u32 = 1024;

/// Builds the request body.
pub(super) fn body(input: &EncodeInput<'_>) -> Value {
    let VendorConversation { system, turns } = conversation(input.provider, input.request);
    let params = input.params;
    let mut messages = merge_adjacent(turns.iter().filter_map(message).collect());
    let mut thinking = thinking(params);
    if thinking_budget(params).is_some() && is_tool_turn_without_thinking(&messages) {
        thinking = None;
        drop_thinking(&mut messages);
    }
    let mut body = Map::new();
    body.insert("model".into(), input.model.into());
    body.insert("max_tokens".into(), max_tokens(params).into());
    insert_some(&mut body, "system", joined(&system));
    body.insert("messages".into(), messages.into());
    insert_some(&mut body, "tools", tool_list(input.request, tool));
    body.insert("stream".into(), true.into());
    insert_some(&mut body, "temperature", temperature(params));
    insert_some(&mut body, "thinking", thinking);
    let output_config = params.effort.as_ref();
    let output_config = output_config.map(|effort| json!({"effort": effort}));
    insert_some(&mut body, "output_config", output_config);
    apply_extra(&mut body, &params.extra);
    Value::Object(body)
}

/// The temperature to send; `None` if the model thinks, since the vendor then rejects it.
pub(super) fn temperature(params: &ModelParams) -> Option<f64> {
    let thinks = params.effort.is_some() || thinking_budget(params).is_some();
    params.temperature.filter(|_| !thinks)
}

/// The thinking budget; `None` if thinking has no budget.
fn thinking_budget(params: &ModelParams) -> Option<u32> {
    let tokens = params.thinking_tokens.filter(|tokens| *tokens > 0)?;
    Some(tokens.max(THINKING_TOKENS_MIN))
}

/// The limit of output tokens. Thinking counts as output, so the limit exceeds the thinking budget.
fn max_tokens(params: &ModelParams) -> u32 {
    let is_adaptive = params.effort.is_some() && params.thinking_tokens.is_none();
    let default_tokens = match is_adaptive {
        true => MAX_TOKENS_WITH_EFFORT,
        false => MAX_TOKENS,
    };
    let answer_tokens = params.max_tokens.unwrap_or(default_tokens);
    match thinking_budget(params) {
        Some(thinking_budget) if thinking_budget >= answer_tokens => {
            thinking_budget.saturating_add(answer_tokens)
        }
        Some(_) | None => answer_tokens,
    }
}

/// The `thinking` field: a token budget, disabled, or adaptive with the effort.
fn thinking(params: &ModelParams) -> Option<Value> {
    if let Some(thinking_budget) = thinking_budget(params) {
        return Some(json!({"type": "enabled", "budget_tokens": thinking_budget}));
    }
    if params.thinking_tokens.is_some() {
        return Some(json!({"type": "disabled"}));
    }
    let effort = params.effort.as_ref();
    effort.map(|_| json!({"type": "adaptive"}))
}

fn message(turn: &ConversationTurn<'_>) -> Option<Value> {
    let (role, content) = match turn {
        ConversationTurn::User { results, texts } => {
            let results = results.iter().map(result);
            let text = |text: &&str| json!({"type": "text", "text": text});
            let texts = texts.iter().map(text);
            ("user", results.chain(texts).collect())
        }
        ConversationTurn::Assistant(messages) => ("assistant", blocks(messages)),
    };
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}

/// Merges adjacent messages of one role: a turn between them may have had nothing to send.
fn merge_adjacent(messages: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::with_capacity(messages.len());
    for mut message in messages {
        match merged.last_mut() {
            Some(last) if last["role"] == message["role"] => {
                if let (Value::Array(content), Value::Array(next_content)) =
                    (&mut last["content"], &mut message["content"])
                {
                    content.append(next_content);
                }
            }
            Some(_) | None => merged.push(message),
        }
    }
    merged
}

/// True if the last answer calls tools, has their results and does not start with thinking, because
/// another provider wrote it or thinking was off. The vendor then rejects a thinking budget until
/// the tool calls are answered.
fn is_tool_turn_without_thinking(messages: &[Value]) -> bool {
    let [.., answer, results] = messages else {
        return false;
    };
    let has_block = |message: &Value, kind: &str| {
        let mut blocks = message["content"].as_array().into_iter().flatten();
        blocks.any(|block| block["type"] == kind)
    };
    has_block(answer, "tool_use")
        && has_block(results, "tool_result")
        && !is_thinking(&answer["content"][0])
}

/// Removes thinking from the last answer, as required when thinking is off.
fn drop_thinking(messages: &mut [Value]) {
    if let [.., answer, _] = messages
        && let Some(blocks) = answer["content"].as_array_mut()
    {
        blocks.retain(|block| !is_thinking(block));
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// The blocks of a model's turn. Trailing thinking is dropped: it was cut off, and the vendor
/// rejects it.
fn blocks(messages: &[Vec<AssistantPart<'_>>]) -> Vec<Value> {
    let mut blocks: Vec<Value> = messages.iter().flatten().filter_map(block).collect();
    while blocks.last().is_some_and(is_thinking) {
        blocks.pop();
    }
    blocks
}

fn block(part: &AssistantPart<'_>) -> Option<Value> {
    match part {
        AssistantPart::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        AssistantPart::Thinking {
            text, signature, ..
        } => {
            let signature = signature.filter(|signature| !signature.is_empty())?;
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        AssistantPart::ToolUse {
            id, name, input, ..
        } => {
            let empty = Map::new();
            let input = input.as_object().unwrap_or(&empty);
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        }
        AssistantPart::Opaque(provider_data) => opaque_block(provider_data),
    }
}

/// A block that [`super::block`] stored as provider data, as it was received.
fn opaque_block(provider_data: &Value) -> Option<Value> {
    if let Some(data) = provider_data.get("redacted_thinking") {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    provider_data.get("block").cloned()
}

fn result(outcome: &ToolOutcome<'_>) -> Value {
    let mut result = json!({"type": "tool_result", "tool_use_id": outcome.id});
    let content = outcome.text();
    if !content.trim().is_empty() {
        result["content"] = content.into();
    }
    if outcome.is_error {
        result["is_error"] = true.into();
    }
    result
}

fn tool(tool: &ToolSpec) -> Value {
    let mut definition = json!({"name": tool.name});
    if !tool.description.is_empty() {
        definition["description"] = tool.description.clone().into();
    }
    definition["input_schema"] = object_schema(&tool.input_schema);
    definition
}

/// The input schema; the vendor requires `type: object`.
fn object_schema(schema: &Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    Value::Object(schema)
}
