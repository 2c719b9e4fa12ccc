//! Writes a [`ModelRequest`](crate::ModelRequest) for the Gemini API: contents of two roles,
//! function calls and responses as parts, and every thought signature on the part that it came
//! with.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::dialect::conversation::{
    AssistantPart, ConversationTurn, ToolOutcome, VendorConversation, conversation,
};
use crate::dialect::{EncodeInput, ModelParams, apply_extra, insert_some, joined, tool_list};
use crate::request::ToolSpec;

/// Signature for a call that has none because another model or an older one made it. Models of the
/// third generation and later reject the first call of a turn without a signature, and accept this
/// one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The URL path. A model name with a `/` already has its collection.
pub(super) fn path(model: &str) -> String {
    let collection = if model.contains('/') { "" } else { "models/" };
    let model = utf8_percent_encode(model, RESERVED);
    format!("/v1beta/{collection}{model}:streamGenerateContent?alt=sse")
}

/// The characters of a model's name that are percent-encoded, because they have a meaning in a
/// path.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':')
    .remove(b'@');

/// Builds the request body.
pub(super) fn body(input: &EncodeInput<'_>) -> Value {
    let VendorConversation { system, turns } = conversation(input.provider, input.request);
    let params = input.params;
    let mut body = Map::new();
    let instruction = joined(&system).map(|text| json!({"parts": [{"text": text}]}));
    insert_some(&mut body, "systemInstruction", instruction);
    let mut contents = ContentsBuilder {
        needs_signature: needs_signature(input.model),
        ids: HashSet::new(),
        list: Vec::new(),
    };
    turns.iter().for_each(|turn| contents.add(turn));
    body.insert("contents".into(), Value::Array(contents.list));
    let declarations = tool_list(input.request, declaration);
    let tools = declarations.map(|list| json!([{"functionDeclarations": list}]));
    insert_some(&mut body, "tools", tools);
    let config = Some(config(params)).filter(|config| !config.is_empty());
    insert_some(&mut body, "generationConfig", config);
    let extra = merged(&body, &params.extra);
    apply_extra(&mut body, &extra);
    Value::Object(body)
}

/// The operator's extra fields, merged with the body's own where both are objects.
fn merged(body: &Map<String, Value>, extra: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = extra.clone();
    for (name, value) in &mut merged {
        if let (Some(Value::Object(own)), Value::Object(extra_fields)) = (body.get(name), value) {
            let mut merged_fields = own.clone();
            merged_fields.append(extra_fields);
            *extra_fields = merged_fields;
        }
    }
    merged
}

fn declaration(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        // `parameters` would be the vendor's own schema format.
        "parametersJsonSchema": spec.input_schema,
    })
}

fn config(params: &ModelParams) -> Map<String, Value> {
    let mut config = Map::new();
    insert_some(&mut config, "maxOutputTokens", params.max_tokens);
    insert_some(&mut config, "temperature", params.temperature);
    // A model takes a level or a budget, never both.
    let thinking = match (&params.effort, params.thinking_tokens) {
        (Some(level), _) => Some(json!({"includeThoughts": true, "thinkingLevel": level})),
        (None, Some(0)) => Some(json!({"thinkingBudget": 0})),
        (None, Some(budget)) => Some(json!({"includeThoughts": true, "thinkingBudget": budget})),
        (None, None) => None,
    };
    insert_some(&mut config, "thinkingConfig", thinking);
    config
}

/// True if the model rejects calls without a signature. The first two generations accept them and
/// do not know [`NO_SIGNATURE`].
fn needs_signature(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let unsigned = ["gemini-1", "gemini-2", "gemma"];
    !unsigned.iter().any(|unsigned| name.starts_with(unsigned))
}

/// Collects the `contents` of the request, one [`ConversationTurn`] after the other.
struct ContentsBuilder {
    needs_signature: bool,
    /// Ids that the vendor assigned to calls.
    ids: HashSet<String>,
    list: Vec<Value>,
}

impl ContentsBuilder {
    fn add(&mut self, turn: &ConversationTurn<'_>) {
        match turn {
            // Function responses have a content of their own: the vendor counts them against the
            // calls before.
            ConversationTurn::User { results, texts } => {
                let responses = results.iter().map(|outcome| self.response(outcome));
                self.push("user", responses.collect());
                let texts = texts.iter().map(|text| json!({"text": text}));
                self.push("user", texts.collect());
            }
            ConversationTurn::Assistant(messages) => {
                let parts = self.assistant_parts(messages);
                self.push("model", parts);
            }
        }
    }

    fn push(&mut self, role: &str, parts: Vec<Value>) {
        if !parts.is_empty() {
            self.list.push(json!({"role": role, "parts": parts}));
        }
    }

    fn assistant_parts(&mut self, messages: &[Vec<AssistantPart<'_>>]) -> Vec<Value> {
        let mut parts = Vec::new();
        let mut is_first_call = true;
        for part in messages.iter().flatten() {
            match part {
                AssistantPart::Text {
                    text,
                    provider_data,
                } => parts.push(with_signature(json!({"text": text}), *provider_data)),
                AssistantPart::Thinking {
                    text,
                    provider_data,
                    ..
                } => {
                    let part = json!({"text": text, "thought": true});
                    parts.push(with_signature(part, *provider_data));
                }
                AssistantPart::Opaque(provider_data) => parts.extend(opaque_part(provider_data)),
                AssistantPart::ToolUse {
                    id,
                    name,
                    input,
                    provider_data,
                    ..
                } => {
                    let call = self.call(id, name, input, *provider_data);
                    let mut call = with_signature(json!({"functionCall": call}), *provider_data);
                    if is_first_call && self.needs_signature && call.get(SIGNATURE).is_none() {
                        call[SIGNATURE] = NO_SIGNATURE.into();
                    }
                    is_first_call = false;
                    parts.push(call);
                }
            }
        }
        parts
    }

    fn call(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        provider_data: Option<&Value>,
    ) -> Value {
        let empty = Map::new();
        let args = input.as_object().unwrap_or(&empty);
        let mut call = json!({"name": name, "args": args});
        if provider_data.is_some_and(|provider_data| provider_data["id"] == id) {
            self.ids.insert(id.to_owned());
            call["id"] = id.into();
        }
        call
    }

    /// The result of a tool. The vendor expects an object with `output` or `error`.
    fn response(&self, outcome: &ToolOutcome<'_>) -> Value {
        let key = if outcome.is_error { "error" } else { "output" };
        let mut response = json!({"name": outcome.name, "response": {key: outcome.content}});
        if self.ids.contains(&outcome.id) {
            response["id"] = outcome.id.clone().into();
        }
        json!({"functionResponse": response})
    }
}

const SIGNATURE: &str = "thoughtSignature";

/// Adds the signature that the part came with.
fn with_signature(mut part: Value, provider_data: Option<&Value>) -> Value {
    if let Some(signature) = provider_data.and_then(|provider_data| provider_data.get(SIGNATURE)) {
        part[SIGNATURE] = signature.clone();
    }
    part
}

/// A part known only from provider data: a kind that is not decoded, or a lone signature.
fn opaque_part(provider_data: &Value) -> Option<Value> {
    if let Some(part) = provider_data.get("part") {
        return Some(part.clone());
    }
    provider_data
        .get(SIGNATURE)
        .map(|signature| json!({"text": "", SIGNATURE: signature}))
}
