//! A request as Messages wants it: turns that alternate, the results of a message's tools first in
//! the turn behind it, thinking only with its seal and never last.

use serde_json::{Map, Value, json};

use crate::dialect::thread::{Outcome, Part, Thread, Turn, plain, thread};
use crate::dialect::{Params, overlay};
use crate::request::{Request, ToolSpec};

/// Tokens of an answer if nobody says how many: the vendor wants a number.
const MAX_TOKENS: u32 = 4096;

/// The same where the model thinks as hard as it sees fit: its thinking is a part of the answer, and
/// would leave little of the other number.
const MAX_TOKENS_WITH_EFFORT: u32 = 16_384;

/// The fewest tokens the vendor lets a model think with.
const THINKING_TOKENS_MIN: u32 = 1024;

/// The body of a request.
pub(super) fn body(provider: &str, model: &str, request: &Request, params: &Params) -> Value {
    let Thread { system, turns } = thread(provider, request);
    let mut messages = alternating(turns.iter().filter_map(message).collect());
    let mut thinking = thinking(params);
    if budget(params).is_some() && is_begun_without_thinking(&messages) {
        thinking = None;
        drop_thinking(&mut messages);
    }
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("max_tokens".into(), max_tokens(params).into());
    if !system.is_empty() {
        body.insert("system".into(), system.join("\n\n").into());
    }
    body.insert("messages".into(), messages.into());
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".into(), tools.into());
    }
    body.insert("stream".into(), true.into());
    if let Some(temperature) = temperature(params) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(thinking) = thinking {
        body.insert("thinking".into(), thinking);
    }
    if let Some(effort) = &params.effort {
        body.insert("output_config".into(), json!({"effort": effort}));
    }
    overlay(&mut body, &params.extra);
    Value::Object(body)
}

/// The temperature that is sent: a model that thinks takes none.
pub(super) fn temperature(params: &Params) -> Option<f64> {
    let thinks = params.effort.is_some() || budget(params).is_some();
    params.temperature.filter(|_| !thinks)
}

/// Tokens to think with, if any.
fn budget(params: &Params) -> Option<u32> {
    let given = params.thinking_tokens.filter(|tokens| *tokens > 0)?;
    Some(given.max(THINKING_TOKENS_MIN))
}

/// What the model may write in all; thinking is a part of it, so it has to be more than that.
fn max_tokens(params: &Params) -> u32 {
    let is_adaptive = params.effort.is_some() && params.thinking_tokens.is_none();
    let usual = match is_adaptive {
        true => MAX_TOKENS_WITH_EFFORT,
        false => MAX_TOKENS,
    };
    let answer = params.max_tokens.unwrap_or(usual);
    match budget(params) {
        Some(budget) if budget >= answer => budget.saturating_add(answer),
        Some(_) | None => answer,
    }
}

/// How it thinks: with so many tokens, not at all, or as hard as the effort says.
fn thinking(params: &Params) -> Option<Value> {
    if let Some(budget) = budget(params) {
        return Some(json!({"type": "enabled", "budget_tokens": budget}));
    }
    if params.thinking_tokens.is_some() {
        return Some(json!({"type": "disabled"}));
    }
    let adaptive = || json!({"type": "adaptive"});
    params.effort.as_ref().map(|_| adaptive())
}

fn message(turn: &Turn<'_>) -> Option<Value> {
    let (role, content) = match turn {
        Turn::User { results, words } => {
            let results = results.iter().map(result);
            let words = words
                .iter()
                .map(|text| json!({"type": "text", "text": text}));
            ("user", results.chain(words).collect())
        }
        Turn::Assistant(said) => ("assistant", blocks(said)),
    };
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}

/// Turns alternate, but one of which nothing can be sent may have stood between two of a side.
fn alternating(messages: Vec<Value>) -> Vec<Value> {
    let mut woven: Vec<Value> = Vec::with_capacity(messages.len());
    for mut message in messages {
        match woven.last_mut() {
            Some(last) if last["role"] == message["role"] => {
                if let (Value::Array(before), Value::Array(more)) =
                    (&mut last["content"], &mut message["content"])
                {
                    before.append(more);
                }
            }
            Some(_) | None => woven.push(message),
        }
    }
    woven
}

/// Whether the last answer asks for tools, has their results, and does not begin with thinking: one
/// of another provider, or of a time when the model did not think. The vendor then refuses to think
/// with a budget until the tools are done with.
fn is_begun_without_thinking(messages: &[Value]) -> bool {
    let is_of = |block: &Value, kind: &str| block["type"] == kind;
    let [.., answer, results] = messages else {
        return false;
    };
    let (Some(said), Some(heard)) = (answer["content"].as_array(), results["content"].as_array())
    else {
        return false;
    };
    said.iter().any(|block| is_of(block, "tool_use"))
        && heard.iter().any(|block| is_of(block, "tool_result"))
        && !said.first().is_some_and(is_thinking)
}

/// Takes thinking out of the last answer: a model that does not think is not shown any there.
fn drop_thinking(messages: &mut [Value]) {
    if let [.., answer, _] = messages
        && let Some(said) = answer["content"].as_array_mut()
    {
        said.retain(|block| !is_thinking(block));
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// A model's blocks. Thinking that nothing follows is refused, and was cut off in any case.
fn blocks(said: &[Vec<Part<'_>>]) -> Vec<Value> {
    let mut blocks: Vec<Value> = said.iter().flatten().filter_map(block).collect();
    while blocks.last().is_some_and(is_thinking) {
        blocks.pop();
    }
    blocks
}

fn block(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        Part::Thinking {
            text, signature, ..
        } => {
            let signature = signature.filter(|signature| !signature.is_empty())?;
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        Part::Use {
            id, name, input, ..
        } => {
            let nothing = Value::Object(Map::new());
            let input = if input.is_object() { input } else { &nothing };
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        }
        Part::Sealed(kept) => sealed(kept),
    }
}

/// What the decoder kept, as it came.
fn sealed(kept: &Value) -> Option<Value> {
    if let Some(data) = kept.get("redacted_thinking") {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    kept.get("block").cloned()
}

fn result(outcome: &Outcome<'_>) -> Value {
    let mut result = json!({"type": "tool_result", "tool_use_id": outcome.id});
    let content = plain(outcome.content);
    if !content.trim().is_empty() {
        result["content"] = content.into();
    }
    if outcome.is_error {
        result["is_error"] = true.into();
    }
    result
}

fn tool(tool: &ToolSpec) -> Value {
    let mut told = json!({"name": tool.name});
    if !tool.description.is_empty() {
        told["description"] = tool.description.clone().into();
    }
    told["input_schema"] = object_schema(&tool.input_schema);
    told
}

/// The schema, which the vendor wants to be one of an object.
fn object_schema(schema: &Value) -> Value {
    let mut schema = match schema {
        Value::Object(schema) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    Value::Object(schema)
}
