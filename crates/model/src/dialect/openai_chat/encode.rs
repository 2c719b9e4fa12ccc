//! A request as Chat Completions wants it: a message per turn, a message per tool result, right
//! behind the calls. Reasoning is not sent: there is no field for it that all servers take.

use serde_json::{Map, Value, json};

use crate::dialect::thread::{Outcome, Part, Thread, Turn, plain, thread};
use crate::dialect::{Params, overlay};
use crate::request::{Request, ToolSpec};

/// What stands between two texts of one side.
const BETWEEN: &str = "\n\n";

/// The provider whose newer models refuse `max_tokens`; compatible servers know only that.
const VENDOR: &str = "openai";

/// The body of a request.
pub(super) fn body(provider: &str, model: &str, request: &Request, params: &Params) -> Value {
    let Thread { system, turns } = thread(provider, request);
    let mut messages = Vec::with_capacity(turns.len() + 1);
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system.join(BETWEEN)}));
    }
    for turn in &turns {
        match turn {
            Turn::User { results, words } => {
                messages.extend(results.iter().map(result));
                if !words.is_empty() {
                    messages.push(json!({"role": "user", "content": words.join(BETWEEN)}));
                }
            }
            Turn::Assistant(said) => messages.extend(assistant(said)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages.into());
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".into(), tools.into());
    }
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    if let Some(max_tokens) = params.max_tokens {
        let name = match provider {
            VENDOR => "max_completion_tokens",
            _ => "max_tokens",
        };
        body.insert(name.into(), max_tokens.into());
    }
    if let Some(temperature) = params.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(effort) = &params.effort {
        body.insert("reasoning_effort".into(), effort.clone().into());
    }
    overlay(&mut body, &params.extra);
    Value::Object(body)
}

/// The model's turn; none if it has nothing that can be sent.
fn assistant(said: &[Vec<Part<'_>>]) -> Option<Value> {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for part in said.iter().flatten() {
        match part {
            Part::Text { text, .. } => texts.push(*text),
            Part::Use {
                id, name, input, ..
            } => {
                let function = json!({"name": name, "arguments": input.to_string()});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            Part::Thinking { .. } | Part::Sealed(_) => {}
        }
    }
    let content = match texts.is_empty() {
        true => Value::Null,
        false => texts.join(BETWEEN).into(),
    };
    if calls.is_empty() {
        return (!content.is_null()).then(|| json!({"role": "assistant", "content": content}));
    }
    Some(json!({"role": "assistant", "content": content, "tool_calls": calls}))
}

/// A result. There is no field for an error, so it is said in the content.
fn result(outcome: &Outcome<'_>) -> Value {
    let content = match outcome.is_error {
        true => json!({"error": outcome.content}).to_string(),
        false => plain(outcome.content),
    };
    json!({"role": "tool", "tool_call_id": outcome.id, "content": content})
}

fn tool(tool: &ToolSpec) -> Value {
    let mut function = json!({"name": tool.name});
    if !tool.description.is_empty() {
        function["description"] = tool.description.clone().into();
    }
    // Left out, it means a function without parameters.
    if tool.input_schema.is_object() {
        function["parameters"] = tool.input_schema.clone();
    }
    json!({"type": "function", "function": function})
}
