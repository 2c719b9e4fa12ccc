//! Writes a [`Request`] for the Responses API.
//!
//! The vendor stores nothing: every request carries the whole conversation and the provider data.
//! Items are sent without their ids, because a server looks an id up and rejects unknown ones.
//! Reasoning is sent only before the item that it led to: the vendor rejects lone reasoning, and a
//! cancel or a failure may have left nothing after it.

use serde_json::{Map, Value, json};

use super::provider_data::{ITEM_ID, REFUSAL};
use crate::dialect::conversation::{
    AssistantPart, ConversationTurn, ToolOutcome, VendorConversation, conversation, result_text,
};
use crate::dialect::{ModelParams, apply_extra};
use crate::request::{ModelRequest, ToolSpec};

/// Builds the request body.
pub(super) fn body(
    provider: &str,
    model: &str,
    request: &ModelRequest,
    params: &ModelParams,
) -> Value {
    let VendorConversation { system, turns } = conversation(provider, request);
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    if !system.is_empty() {
        body.insert("instructions".into(), system.join("\n\n").into());
    }
    let mut input = InputItems {
        is_stored: params.extra.get("store") == Some(&Value::Bool(true)),
        items: Vec::new(),
    };
    for turn in &turns {
        input.add(turn);
    }
    body.insert("input".into(), Value::Array(input.items));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(tool).collect();
        body.insert("tools".into(), Value::Array(tools));
    }
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    insert_params(params, &mut body);
    apply_extra(&mut body, &params.extra);
    Value::Object(body)
}

fn insert_params(params: &ModelParams, body: &mut Map<String, Value>) {
    if let Some(max) = params.max_tokens {
        body.insert("max_output_tokens".into(), max.into());
    }
    if let Some(temperature) = params.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(effort) = &params.effort {
        let reasoning = json!({"effort": effort, "summary": "auto"});
        body.insert("reasoning".into(), reasoning);
    }
    // Models without reasoning reject this field.
    if params.effort.is_some() || params.extra.contains_key("reasoning") {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.input_schema,
        // Strict functions accept only a part of JSON Schema.
        "strict": false,
    })
}

/// An item that [`super::provider_data`] stored.
enum StoredItem {
    /// Reasoning, sent only with the item after it.
    Reasoning(Value),
    /// An item that is not decoded, such as a hosted tool of the vendor.
    Other(Value),
}

/// Collects the `input` items of the request, one [`ConversationTurn`] after the other.
struct InputItems {
    is_stored: bool,
    items: Vec<Value>,
}

impl InputItems {
    fn add(&mut self, turn: &ConversationTurn<'_>) {
        match turn {
            ConversationTurn::User { results, texts } => {
                self.items.extend(results.iter().map(output));
                self.push_user_text(texts);
            }
            ConversationTurn::Assistant(messages) => {
                messages.iter().for_each(|parts| self.push_message(parts));
            }
        }
    }

    /// Appends the user's text.
    fn push_user_text(&mut self, texts: &[&str]) {
        let part = |text: &&str| json!({"type": "input_text", "text": text});
        let content: Vec<Value> = texts.iter().map(part).collect();
        if !content.is_empty() {
            let item = json!({"type": "message", "role": "user", "content": content});
            self.items.push(item);
        }
    }

    /// Appends one message of the model.
    fn push_message(&mut self, parts: &[AssistantPart<'_>]) {
        // Id of the open message item; text of two messages is not merged.
        let mut open_message: Option<Option<&Value>> = None;
        // Reasoning that waits for an item after it.
        let mut pending_reasoning: Vec<Value> = Vec::new();
        for part in parts {
            match part {
                AssistantPart::Text {
                    text,
                    provider_data,
                } => {
                    let id = provider_data.and_then(|provider_data| provider_data.get("id"));
                    if open_message != Some(id) {
                        self.items.append(&mut pending_reasoning);
                        self.items.push(self.message(*provider_data));
                        open_message = Some(id);
                    }
                    self.append_part(text_part(text, *provider_data));
                }
                AssistantPart::Thinking {
                    provider_data: None,
                    ..
                } => {}
                AssistantPart::Thinking {
                    provider_data: Some(provider_data),
                    ..
                }
                | AssistantPart::Opaque(provider_data) => match self.stored_item(provider_data) {
                    Some(StoredItem::Reasoning(item)) => {
                        open_message = None;
                        pending_reasoning.push(item);
                    }
                    Some(StoredItem::Other(item)) => {
                        open_message = None;
                        self.items.append(&mut pending_reasoning);
                        self.items.push(item);
                    }
                    None => {}
                },
                AssistantPart::ToolUse {
                    id,
                    name,
                    input,
                    provider_data,
                    ..
                } => {
                    open_message = None;
                    self.items.append(&mut pending_reasoning);
                    self.items.push(self.call(id, name, input, *provider_data));
                }
            }
        }
    }

    /// The stored item; `None` if it cannot be sent.
    fn stored_item(&self, provider_data: &Value) -> Option<StoredItem> {
        match provider_data["type"].as_str() {
            // These items are built from their blocks.
            None | Some("message" | "function_call") => None,
            Some("reasoning") if !self.is_stored && !is_readable(provider_data) => None,
            Some("reasoning") => {
                let item = Value::Object(self.without_id(Some(provider_data)));
                Some(StoredItem::Reasoning(item))
            }
            Some(_) => Some(StoredItem::Other(provider_data.clone())),
        }
    }

    fn without_id(&self, provider_data: Option<&Value>) -> Map<String, Value> {
        let mut item = provider_data
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if !self.is_stored {
            item.shift_remove("id");
        }
        item
    }

    fn message(&self, provider_data: Option<&Value>) -> Value {
        let mut item = self.without_id(provider_data);
        item.shift_remove(REFUSAL);
        item.insert("type".into(), "message".into());
        item.insert("role".into(), "assistant".into());
        // An item with an id needs a status.
        if item.contains_key("id") {
            item.insert("status".into(), "completed".into());
        }
        item.insert("content".into(), Value::Array(Vec::new()));
        Value::Object(item)
    }

    /// Appends a part to the open message item.
    fn append_part(&mut self, part: Value) {
        let content = self.items.last_mut().map(|item| &mut item["content"]);
        if let Some(Value::Array(parts)) = content {
            parts.push(part);
        }
    }

    fn call(&self, id: &str, name: &str, input: &Value, provider_data: Option<&Value>) -> Value {
        let mut item = provider_data
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        item.shift_remove("id");
        let item_id = item.shift_remove(ITEM_ID).filter(|_| self.is_stored);
        item.extend(item_id.map(|id| ("id".to_owned(), id)));
        item.insert("type".into(), "function_call".into());
        item.insert("call_id".into(), id.into());
        item.insert("name".into(), name.into());
        item.insert("arguments".into(), input.to_string().into());
        Value::Object(item)
    }
}

/// A part of a message item.
fn text_part(text: &str, provider_data: Option<&Value>) -> Value {
    if provider_data.is_some_and(|provider_data| provider_data.get(REFUSAL).is_some()) {
        return json!({"type": "refusal", "refusal": text});
    }
    json!({"type": "output_text", "text": text})
}

/// True if a server that stores nothing can read the reasoning.
fn is_readable(provider_data: &Value) -> bool {
    let encrypted = provider_data["encrypted_content"].as_str();
    let content = provider_data["content"].as_array();
    encrypted.is_some_and(|encrypted| !encrypted.is_empty())
        || content.is_some_and(|content| !content.is_empty())
}

/// The output of a tool. The API has no error field, so an error is marked in the text.
fn output(outcome: &ToolOutcome<'_>) -> Value {
    let text = match outcome.is_error {
        true => json!({"error": outcome.content}).to_string(),
        false => result_text(outcome.content),
    };
    json!({"type": "function_call_output", "call_id": outcome.id, "output": text})
}
