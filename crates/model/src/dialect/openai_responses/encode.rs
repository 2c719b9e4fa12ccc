//! Writes a [`ModelRequest`](crate::ModelRequest) for the Responses API.
//!
//! The vendor stores nothing: every request carries the whole conversation and the provider data.
//! Items are sent without their ids, because a server looks an id up and rejects unknown ones.
//! Reasoning is sent only before the item that it led to: the vendor rejects lone reasoning, and a
//! cancel or a failure may have left nothing after it.

use serde_json::{Map, Value, json};

use super::provider_data::{ITEM_ID, REFUSAL};
use crate::dialect::conversation::{
    AssistantPart, ConversationTurn, ToolOutcome, VendorConversation, conversation,
};
use crate::dialect::{EncodeInput, apply_extra, insert_some, joined, tool_list};
use crate::request::ToolSpec;

/// Builds the request body.
pub(super) fn body(input: &EncodeInput<'_>) -> Value {
    let VendorConversation { system, turns } = conversation(input.provider, input.request);
    let params = input.params;
    let mut body = Map::new();
    body.insert("model".into(), input.model.into());
    insert_some(&mut body, "instructions", joined(&system));
    let mut items = InputItems {
        is_stored: params.extra.get("store") == Some(&Value::Bool(true)),
        items: Vec::new(),
    };
    turns.iter().for_each(|turn| items.add(turn));
    body.insert("input".into(), Value::Array(items.items));
    insert_some(&mut body, "tools", tool_list(input.request, tool));
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    insert_some(&mut body, "max_output_tokens", params.max_tokens);
    insert_some(&mut body, "temperature", params.temperature);
    let reasoning = params.effort.as_ref();
    let reasoning = reasoning.map(|effort| json!({"effort": effort, "summary": "auto"}));
    insert_some(&mut body, "reasoning", reasoning);
    // Models without reasoning reject this field.
    if params.effort.is_some() || params.extra.contains_key("reasoning") {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    apply_extra(&mut body, &params.extra);
    Value::Object(body)
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
                let part = |text: &&str| json!({"type": "input_text", "text": text});
                let content: Vec<Value> = texts.iter().map(part).collect();
                if !content.is_empty() {
                    let item = json!({"type": "message", "role": "user", "content": content});
                    self.items.push(item);
                }
            }
            ConversationTurn::Assistant(messages) => {
                messages.iter().for_each(|parts| self.push_message(parts));
            }
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
        let mut item = fields(provider_data);
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
        let mut item = fields(provider_data);
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

/// A copy of an item's stored fields.
fn fields(provider_data: Option<&Value>) -> Map<String, Value> {
    let fields = provider_data.and_then(Value::as_object);
    fields.cloned().unwrap_or_default()
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

fn output(outcome: &ToolOutcome<'_>) -> Value {
    let text = outcome.text_with_error();
    json!({"type": "function_call_output", "call_id": outcome.id, "output": text})
}
