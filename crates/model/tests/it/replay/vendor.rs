//! What a test knows of a vendor: its own words for the conversation, and how it streams them.

use serde_json::Value;
use turnwire_model::Dialect;

/// A result in a request: of which call, what, and whether it is an error.
pub(crate) type Result = (String, Value, bool);

/// A vendor.
pub(crate) trait Vendor {
    /// What the operator calls it.
    fn name(&self) -> &'static str;

    /// How it speaks.
    fn dialect(&self) -> &'static dyn Dialect;

    /// What the model says in the conversation, in the vendor's words.
    fn turns(&self) -> Vec<Value>;

    /// What of that is only for the vendor.
    fn seals(&self) -> &'static [&'static str];

    /// Of a turn, what has to be in the next request.
    fn sent(&self, turn: &Value) -> Value {
        turn.clone()
    }

    /// The turn as a stream.
    fn stream(&self, turn: &Value) -> String;

    /// The model's turns in a request.
    fn turns_in(&self, body: &Value) -> Vec<Value>;

    /// The tools' results in a request.
    fn results_in(&self, body: &Value) -> Vec<Result>;

    /// The calls of a turn, as results refer to them.
    fn calls(&self, turn: &Value) -> Vec<String>;
}

/// Frames with names.
pub(crate) fn named(events: &[Value]) -> String {
    let frame = |event: &Value| {
        let name = event["type"].as_str().expect("a type");
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(frame).collect()
}

/// Frames without names.
pub(crate) fn unnamed(chunks: &[Value]) -> String {
    let frame = |chunk: &Value| format!("data: {chunk}\n\n");
    chunks.iter().map(frame).collect()
}

/// A list in a value.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string in a value.
pub(crate) fn string(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// Words in two pieces, cut in the middle.
pub(crate) fn halves(words: &str) -> [&str; 2] {
    let middle = words.len() / 2;
    let at = (middle..=words.len()).find(|at| words.is_char_boundary(*at));
    let (first, second) = words.split_at(at.unwrap_or(words.len()));
    [first, second]
}

/// What a result says where there is no field for an error.
pub(crate) fn told(output: &str) -> (Value, bool) {
    let value: Value = serde_json::from_str(output).expect("JSON");
    match value.get("error") {
        Some(error) => (error.clone(), true),
        None => (value, false),
    }
}
