//! A tool's input as a model wrote it: raw text that should be an object.

use serde_json::{Map, Value};

/// How deep a tool's input may nest: rows wrap it a few levels deeper, and a row must be readable.
const INPUT_DEPTH_MAX: usize = 64;

/// A raw tool input, if it is an object that can be kept; none at all counts as `{}`.
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

/// What of a raw tool input parses as an object, else `{}` (S3-072).
pub fn parse_input(raw: &str) -> Value {
    read_input(raw).unwrap_or_else(|| Value::Object(Map::new()))
}
