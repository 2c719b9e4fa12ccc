//! Parses a tool's input as a model wrote it: raw text that should be a JSON object.

use serde_json::{Map, Value};

/// The nesting limit of a tool's input: rows wrap it a few levels deeper, and a row must stay readable.
const INPUT_DEPTH_MAX: usize = 64;

/// Parses a raw tool input; `None` if it is not an object or nests too deeply. Empty text is `{}`.
pub fn read_input(raw: &str) -> Option<Value> {
    if raw.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    let value: Value = serde_json::from_str(raw).ok()?;
    (value.is_object() && depth(&value) <= INPUT_DEPTH_MAX).then_some(value)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Parses a raw tool input, or returns `{}` if it is not a valid object (S3-072).
pub fn parse_input(raw: &str) -> Value {
    read_input(raw).unwrap_or_else(|| Value::Object(Map::new()))
}
