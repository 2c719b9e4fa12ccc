//! A request in Gemini's words: contents of two roles, calls and their responses as parts, and
//! every seal on the part it came with.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::dialect::thread::{Outcome, Part, Thread, Turn, thread};
use crate::dialect::{Params, overlay};
use crate::request::{Request, ToolSpec};

/// The seal of a call that came without one: another model made it, or an older one of the same
/// provider. Models from the third generation on refuse the first call of a turn without a seal, and
/// take this in its place.
const UNSEALED: &str = "skip_thought_signature_validator";

/// What stands behind the base address. A model that is named with its collection keeps it.
pub(super) fn path(model: &str) -> String {
    let collection = if model.contains('/') { "" } else { "models/" };
    let model = utf8_percent_encode(model, RESERVED);
    format!("/v1beta/{collection}{model}:streamGenerateContent?alt=sse")
}

/// The characters of a model's name that are percent-encoded: in a path they would ask for
/// something else.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':')
    .remove(b'@');

/// The body of a request.
pub(super) fn body(provider: &str, model: &str, request: &Request, params: &Params) -> Value {
    let Thread { system, turns } = thread(provider, request);
    let mut body = Map::new();
    if !system.is_empty() {
        let parts = [json!({"text": system.join("\n\n")})];
        body.insert("systemInstruction".into(), json!({"parts": parts}));
    }
    let mut contents = Contents {
        needs_seals: needs_seals(model),
        ids: HashSet::new(),
        list: Vec::new(),
    };
    for turn in &turns {
        contents.add(turn);
    }
    body.insert("contents".into(), Value::Array(contents.list));
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        let tools = [json!({"functionDeclarations": declarations})];
        body.insert("tools".into(), json!(tools));
    }
    let config = config(params);
    if !config.is_empty() {
        body.insert("generationConfig".into(), Value::Object(config));
    }
    let extra = merged(&body, &params.extra);
    overlay(&mut body, &extra);
    Value::Object(body)
}

/// The operator's fields; those that are objects on both sides are put together.
fn merged(body: &Map<String, Value>, extra: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = extra.clone();
    for (name, value) in &mut merged {
        if let (Some(Value::Object(ours)), Value::Object(theirs)) = (body.get(name), value) {
            let mut both = ours.clone();
            both.append(theirs);
            *theirs = both;
        }
    }
    merged
}

fn declaration(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        // `parameters` would be the vendor's own kind of schema.
        "parametersJsonSchema": spec.input_schema,
    })
}

fn config(params: &Params) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(max) = params.max_tokens {
        config.insert("maxOutputTokens".into(), max.into());
    }
    if let Some(temperature) = params.temperature {
        config.insert("temperature".into(), temperature.into());
    }
    // A model takes a level or a budget, never both.
    let thinking = match (&params.effort, params.thinking_tokens) {
        (Some(level), _) => Some(json!({"includeThoughts": true, "thinkingLevel": level})),
        (None, Some(0)) => Some(json!({"thinkingBudget": 0})),
        (None, Some(budget)) => Some(json!({"includeThoughts": true, "thinkingBudget": budget})),
        (None, None) => None,
    };
    if let Some(thinking) = thinking {
        config.insert("thinkingConfig".into(), thinking);
    }
    config
}

/// Whether a model refuses calls without a seal. The first two generations do not, and do not
/// know the seal that stands for none.
fn needs_seals(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let old = ["gemini-1", "gemini-2", "gemma"];
    !old.iter().any(|old| name.starts_with(old))
}

/// The conversation.
struct Contents {
    needs_seals: bool,
    /// The ids that the vendor itself gave to calls.
    ids: HashSet<String>,
    list: Vec<Value>,
}

impl Contents {
    fn add(&mut self, turn: &Turn<'_>) {
        match turn {
            // Responses stand alone: the vendor counts them against the calls before.
            Turn::User { results, words } => {
                let responses = results.iter().map(|outcome| self.response(outcome));
                let responses = responses.collect();
                self.push("user", responses);
                let words = words.iter().map(|text| json!({"text": text})).collect();
                self.push("user", words);
            }
            Turn::Assistant(said) => {
                let parts = self.spoken(said);
                self.push("model", parts);
            }
        }
    }

    fn push(&mut self, role: &str, parts: Vec<Value>) {
        if !parts.is_empty() {
            self.list.push(json!({"role": role, "parts": parts}));
        }
    }

    fn spoken(&mut self, said: &[Vec<Part<'_>>]) -> Vec<Value> {
        let mut parts = Vec::new();
        let mut is_first_call = true;
        for part in said.iter().flatten() {
            match part {
                Part::Text { text, kept } => parts.push(sealed(json!({"text": text}), *kept)),
                Part::Thinking { text, kept, .. } => {
                    parts.push(sealed(json!({"text": text, "thought": true}), *kept));
                }
                Part::Sealed(kept) => parts.extend(whole(kept)),
                Part::Use {
                    id,
                    name,
                    input,
                    kept,
                    ..
                } => {
                    let call = self.call(id, name, input, *kept);
                    let mut call = sealed(json!({"functionCall": call}), *kept);
                    if is_first_call && self.needs_seals && call.get(SEAL).is_none() {
                        call[SEAL] = UNSEALED.into();
                    }
                    is_first_call = false;
                    parts.push(call);
                }
            }
        }
        parts
    }

    fn call(&mut self, id: &str, name: &str, input: &Value, kept: Option<&Value>) -> Value {
        let nothing = Value::Object(Map::new());
        let args = if input.is_object() { input } else { &nothing };
        let mut call = json!({"name": name, "args": args});
        if kept.is_some_and(|kept| kept["id"] == id) {
            self.ids.insert(id.to_owned());
            call["id"] = id.into();
        }
        call
    }

    /// What a tool gave. The vendor wants an object, and has a name for what went well in it and
    /// one for what did not.
    fn response(&self, outcome: &Outcome<'_>) -> Value {
        let key = if outcome.is_error { "error" } else { "output" };
        let mut response = json!({"name": outcome.name, "response": {key: outcome.content}});
        if self.ids.contains(&outcome.id) {
            response["id"] = outcome.id.clone().into();
        }
        json!({"functionResponse": response})
    }
}

const SEAL: &str = "thoughtSignature";

/// The part with the seal it came with.
fn sealed(mut part: Value, kept: Option<&Value>) -> Value {
    if let Some(seal) = kept.and_then(|kept| kept.get(SEAL)) {
        part[SEAL] = seal.clone();
    }
    part
}

/// A part of which nothing but what is kept is known: one that nobody reads here, or a seal alone.
fn whole(kept: &Value) -> Option<Value> {
    if let Some(part) = kept.get("part") {
        return Some(part.clone());
    }
    kept.get(SEAL).map(|seal| json!({"text": "", SEAL: seal}))
}
