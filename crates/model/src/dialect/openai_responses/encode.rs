//! A request in the words of OpenAI's Responses.
//!
//! Nothing is stored at the vendor's: the whole conversation goes with every request, and with it
//! what the vendor wants back. Items that are not stored are sent without their ids, because a
//! server looks an id up and refuses what it does not find. Reasoning is sent only before what it led
//! to: the vendor refuses it alone, and a cancel or a failure may have left nothing behind it.

use serde_json::{Map, Value, json};

use super::sealed::{ITEM_ID, REFUSAL};
use crate::dialect::thread::{Outcome, Part, Thread, Turn, plain, thread};
use crate::dialect::{Params, overlay};
use crate::request::{Request, ToolSpec};

/// The body of a request.
pub(super) fn body(provider: &str, model: &str, request: &Request, params: &Params) -> Value {
    let Thread { system, turns } = thread(provider, request);
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    if !system.is_empty() {
        body.insert("instructions".into(), system.join("\n\n").into());
    }
    let mut input = Input {
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
    wishes(params, &mut body);
    overlay(&mut body, &params.extra);
    Value::Object(body)
}

fn wishes(params: &Params, body: &mut Map<String, Value>) {
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
    // Models that do not reason refuse to be asked for it.
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
        // Strict functions allow only a part of JSON Schema.
        "strict": false,
    })
}

/// An item that is kept as a whole.
enum Whole {
    /// Reasoning, which belongs to what comes next.
    Reasoning(Value),
    /// What is not read here, such as a tool of the vendor's own.
    Other(Value),
}

/// The conversation as items.
struct Input {
    is_stored: bool,
    items: Vec<Value>,
}

impl Input {
    fn add(&mut self, turn: &Turn<'_>) {
        match turn {
            Turn::User { results, words } => {
                self.items.extend(results.iter().map(output));
                self.heard(words);
            }
            Turn::Assistant(said) => said.iter().for_each(|parts| self.spoken(parts)),
        }
    }

    /// What the model was told.
    fn heard(&mut self, words: &[&str]) {
        let part = |text: &&str| json!({"type": "input_text", "text": text});
        let content: Vec<Value> = words.iter().map(part).collect();
        if !content.is_empty() {
            let item = json!({"type": "message", "role": "user", "content": content});
            self.items.push(item);
        }
    }

    /// What the model said itself, in one message.
    fn spoken(&mut self, parts: &[Part<'_>]) {
        // The message that the words before belong to; words of two are not put together.
        let mut open: Option<Option<&Value>> = None;
        // Reasoning of which it is not known yet whether something follows.
        let mut held: Vec<Value> = Vec::new();
        for part in parts {
            match part {
                Part::Text { text, kept } => {
                    let id = kept.and_then(|kept| kept.get("id"));
                    if open != Some(id) {
                        self.items.append(&mut held);
                        self.items.push(self.message(*kept));
                        open = Some(id);
                    }
                    self.append(words(text, *kept));
                }
                Part::Thinking { kept: None, .. } => {}
                Part::Thinking {
                    kept: Some(kept), ..
                }
                | Part::Sealed(kept) => match self.whole(kept) {
                    Some(Whole::Reasoning(item)) => {
                        open = None;
                        held.push(item);
                    }
                    Some(Whole::Other(item)) => {
                        open = None;
                        self.items.append(&mut held);
                        self.items.push(item);
                    }
                    None => {}
                },
                Part::Use {
                    id,
                    name,
                    input,
                    kept,
                    ..
                } => {
                    open = None;
                    self.items.append(&mut held);
                    self.items.push(self.call(id, name, input, *kept));
                }
            }
        }
    }

    /// An item that is kept as a whole; none if it cannot be sent.
    fn whole(&self, kept: &Value) -> Option<Whole> {
        match kept["type"].as_str() {
            // These are told by their blocks.
            None | Some("message" | "function_call") => None,
            Some("reasoning") if !self.is_stored && !is_readable(kept) => None,
            Some("reasoning") => {
                let item = Value::Object(self.without_id(Some(kept)));
                Some(Whole::Reasoning(item))
            }
            Some(_) => Some(Whole::Other(kept.clone())),
        }
    }

    fn without_id(&self, kept: Option<&Value>) -> Map<String, Value> {
        let mut item = kept.and_then(Value::as_object).cloned().unwrap_or_default();
        if !self.is_stored {
            item.shift_remove("id");
        }
        item
    }

    fn message(&self, kept: Option<&Value>) -> Value {
        let mut item = self.without_id(kept);
        item.shift_remove(REFUSAL);
        item.insert("type".into(), "message".into());
        item.insert("role".into(), "assistant".into());
        // Whoever has an id has a status.
        if item.contains_key("id") {
            item.insert("status".into(), "completed".into());
        }
        item.insert("content".into(), Value::Array(Vec::new()));
        Value::Object(item)
    }

    /// Puts a part into the message that is open.
    fn append(&mut self, part: Value) {
        let content = self.items.last_mut().map(|item| &mut item["content"]);
        if let Some(Value::Array(parts)) = content {
            parts.push(part);
        }
    }

    fn call(&self, id: &str, name: &str, input: &Value, kept: Option<&Value>) -> Value {
        let mut item = kept.and_then(Value::as_object).cloned().unwrap_or_default();
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

/// A part of a message of the model.
fn words(text: &str, kept: Option<&Value>) -> Value {
    if kept.is_some_and(|kept| kept.get(REFUSAL).is_some()) {
        return json!({"type": "refusal", "refusal": text});
    }
    json!({"type": "output_text", "text": text})
}

/// Whether a server that has stored nothing can read the reasoning.
fn is_readable(kept: &Value) -> bool {
    let sealed = kept["encrypted_content"].as_str();
    let open = kept["content"].as_array();
    sealed.is_some_and(|sealed| !sealed.is_empty()) || open.is_some_and(|open| !open.is_empty())
}

/// What a tool gave. There is no field for an error, so the words say it.
fn output(outcome: &Outcome<'_>) -> Value {
    let said = match outcome.is_error {
        true => json!({"error": outcome.content}).to_string(),
        false => plain(outcome.content),
    };
    json!({"type": "function_call_output", "call_id": outcome.id, "output": said})
}
