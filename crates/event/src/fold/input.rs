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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // S3-072
    #[test]
    fn input_is_an_object_or_empty() {
        assert_eq!(read_input(r#"{"a": [1]}"#), Some(json!({"a": [1]})));
        assert_eq!(read_input(" \n"), Some(json!({})));
        for broken in ["{\"a\": ", "[1]", "7", "null", "{} {}"] {
            assert_eq!(read_input(broken), None, "{broken}");
            assert_eq!(parse_input(broken), json!({}), "{broken}");
        }
        assert_eq!(parse_input(r#"{"a": 1}"#), json!({"a": 1}));
    }

    #[test]
    fn input_nests_up_to_its_limit() {
        // Arrays and objects in turn, `levels` of them.
        let nested = |levels: usize| {
            let inner = (1..levels).fold("0".to_owned(), |inner, level| match level % 2 {
                0 => format!("{{\"a\":{inner}}}"),
                _ => format!("[{inner},0]"),
            });
            format!("{{\"a\":{inner},\"b\":0}}")
        };
        assert!(read_input(&nested(INPUT_DEPTH_MAX)).is_some());
        assert!(read_input(&nested(INPUT_DEPTH_MAX + 1)).is_none());
        assert_eq!(parse_input(&nested(INPUT_DEPTH_MAX + 1)), json!({}));
    }
}
