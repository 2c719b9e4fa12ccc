//! A request as Chat Completions wants it: a message per turn, a message per tool result, right
//! behind the calls. There is no field for reasoning that all servers take: a server gets it back in
//! the fields in which it came from that very server.

use serde_json::{Map, Value, json};

use super::calls::EXTRA;
use super::reasoning::{CONTENT, DETAILS};
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

/// What a server wants back of its own reasoning.
#[derive(Default)]
struct Thoughts<'a> {
    /// Those that go back as words, if the server has a field for them.
    words: Option<Vec<&'a str>>,
    details: Vec<&'a Value>,
}

impl<'a> Thoughts<'a> {
    fn take(&mut self, text: &'a str, kept: Option<&'a Value>) {
        let Some(kept) = kept else { return };
        if kept.get(CONTENT).is_some() {
            let words = self.words.get_or_insert_default();
            words.extend((!text.is_empty()).then_some(text));
        }
        let details = kept.get(DETAILS).and_then(Value::as_array);
        self.details.extend(details.into_iter().flatten());
    }
}

/// The model's turn; none if it has nothing that can be sent.
fn assistant(said: &[Vec<Part<'_>>]) -> Option<Value> {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = Thoughts::default();
    for part in said.iter().flatten() {
        match part {
            Part::Text { text, .. } => texts.push(*text),
            Part::Use {
                id,
                name,
                input,
                kept,
                ..
            } => calls.push(call(id, name, input, *kept)),
            Part::Thinking { text, kept, .. } => thoughts.take(text, *kept),
            Part::Sealed(kept) => thoughts.take("", Some(kept)),
        }
    }
    let content = match texts.is_empty() {
        true => Value::Null,
        false => texts.join(BETWEEN).into(),
    };
    if calls.is_empty() && content.is_null() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !thoughts.details.is_empty() {
        message[DETAILS] = json!(thoughts.details);
    }
    if !calls.is_empty() {
        // Without calls, servers have refused the field that they gave.
        if let Some(words) = thoughts.words {
            message[CONTENT] = words.join(BETWEEN).into();
        }
        message["tool_calls"] = calls.into();
    }
    Some(message)
}

/// A call, with the fields that the server put on it itself.
fn call(id: &str, name: &str, input: &Value, kept: Option<&Value>) -> Value {
    let function = json!({"name": name, "arguments": input.to_string()});
    let mut call = json!({"id": id, "type": "function", "function": function});
    let extra = kept.and_then(|kept| kept.get(EXTRA)?.as_object());
    for (name, value) in extra.into_iter().flatten() {
        if call.get(name).is_none() {
            call[name] = value.clone();
        }
    }
    call
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
