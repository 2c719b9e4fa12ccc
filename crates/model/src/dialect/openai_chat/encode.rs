//! Writes a [`ModelRequest`](crate::ModelRequest) for the Chat Completions API: a message per turn
//! and a message per tool result, directly after the calls. No field for reasoning is common to all
//! servers: a server gets its reasoning back in the fields in which it sent it.

use serde_json::{Map, Value, json};

use super::reasoning::{CONTENT, DETAILS};
use super::tool_calls::EXTRA;
use crate::dialect::conversation::{
    AssistantPart, ConversationTurn, ToolOutcome, VendorConversation, conversation,
};
use crate::dialect::{EncodeInput, apply_extra, insert_some, joined, tool_list};
use crate::request::ToolSpec;

/// Name of the provider whose newer models reject `max_tokens`; compatible servers know only that
/// field.
const OPENAI: &str = "openai";

/// Builds the request body.
pub(super) fn body(input: &EncodeInput<'_>) -> Value {
    let VendorConversation { system, turns } = conversation(input.provider, input.request);
    let params = input.params;
    let mut messages = Vec::with_capacity(turns.len() + 1);
    let system = joined(&system);
    messages.extend(system.map(|text| json!({"role": "system", "content": text})));
    for turn in &turns {
        match turn {
            ConversationTurn::User { results, texts } => {
                messages.extend(results.iter().map(result));
                let text = joined(texts);
                messages.extend(text.map(|text| json!({"role": "user", "content": text})));
            }
            ConversationTurn::Assistant(answers) => messages.extend(assistant(answers)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), input.model.into());
    body.insert("messages".into(), messages.into());
    insert_some(&mut body, "tools", tool_list(input.request, tool));
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    let max_tokens_field = match input.provider {
        OPENAI => "max_completion_tokens",
        _ => "max_tokens",
    };
    insert_some(&mut body, max_tokens_field, params.max_tokens);
    insert_some(&mut body, "temperature", params.temperature);
    insert_some(&mut body, "reasoning_effort", params.effort.clone());
    apply_extra(&mut body, &params.extra);
    Value::Object(body)
}

/// Reasoning that the server expects back, as [`super::reasoning`] stored it.
#[derive(Default)]
struct SentReasoning<'a> {
    /// Text for the `reasoning_content` field; `None` if the server has no such field.
    texts: Option<Vec<&'a str>>,
    details: Vec<&'a Value>,
}

impl<'a> SentReasoning<'a> {
    fn push(&mut self, text: &'a str, provider_data: Option<&'a Value>) {
        let Some(provider_data) = provider_data else {
            return;
        };
        if provider_data.get(CONTENT).is_some() {
            let texts = self.texts.get_or_insert_default();
            texts.extend((!text.is_empty()).then_some(text));
        }
        let details = provider_data.get(DETAILS).and_then(Value::as_array);
        self.details.extend(details.into_iter().flatten());
    }
}

/// The message of a model's turn; `None` if nothing can be sent.
fn assistant(messages: &[Vec<AssistantPart<'_>>]) -> Option<Value> {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    let mut reasoning = SentReasoning::default();
    for part in messages.iter().flatten() {
        match part {
            AssistantPart::Text { text, .. } => texts.push(*text),
            AssistantPart::ToolUse {
                id,
                name,
                input,
                provider_data,
                ..
            } => tool_calls.push(call(id, name, input, *provider_data)),
            AssistantPart::Thinking {
                text,
                provider_data,
                ..
            } => reasoning.push(text, *provider_data),
            AssistantPart::Opaque(provider_data) => reasoning.push("", Some(provider_data)),
        }
    }
    let content = joined(&texts);
    if tool_calls.is_empty() && content.is_none() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !reasoning.details.is_empty() {
        message[DETAILS] = json!(reasoning.details);
    }
    if !tool_calls.is_empty() {
        // Without calls, servers reject the field that they sent themselves.
        if let Some(texts) = reasoning.texts {
            message[CONTENT] = texts.join("\n\n").into();
        }
        message["tool_calls"] = tool_calls.into();
    }
    Some(message)
}

/// A tool call, with the server-specific fields that it came with.
fn call(id: &str, name: &str, input: &Value, provider_data: Option<&Value>) -> Value {
    let function = json!({"name": name, "arguments": input.to_string()});
    let mut call = json!({"id": id, "type": "function", "function": function});
    let extra = provider_data.and_then(|provider_data| provider_data.get(EXTRA)?.as_object());
    for (name, value) in extra.into_iter().flatten() {
        if call.get(name).is_none() {
            call[name] = value.clone();
        }
    }
    call
}

fn result(outcome: &ToolOutcome<'_>) -> Value {
    json!({"role": "tool", "tool_call_id": outcome.id, "content": outcome.text_with_error()})
}

fn tool(tool: &ToolSpec) -> Value {
    let mut function = json!({"name": tool.name});
    if !tool.description.is_empty() {
        function["description"] = tool.description.clone().into();
    }
    // Without this field the function has no parameters.
    if tool.input_schema.is_object() {
        function["parameters"] = tool.input_schema.clone();
    }
    json!({"type": "function", "function": function})
}
