//! Text that servers write in more than one way: a string, a list of parts, one part, or null; and
//! a tool call's arguments, which are a string or, from some servers, the object itself.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The text of a delta.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChatText {
    pub(super) text: String,
    /// Reasoning parts that stand among the text parts.
    pub(super) thinking: String,
}

/// Arguments of a tool call as raw JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallArguments(pub(super) String);

/// Largest nesting of lists and parts; known servers nest five deep.
const PART_DEPTH_MAX: u32 = 6;

impl<'de> Deserialize<'de> for ChatText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = Self::default();
        match Value::deserialize(deserializer)? {
            Value::String(whole) => text.text = whole,
            parts => text.append_part(&parts, false, PART_DEPTH_MAX),
        }
        Ok(text)
    }
}

impl<'de> Deserialize<'de> for CallArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            object @ Value::Object(_) => Ok(Self(object.to_string())),
            _ => Ok(Self::default()),
        }
    }
}

impl ChatText {
    /// Appends the text of a part and of the parts nested in it.
    fn append_part(&mut self, value: &Value, is_thinking: bool, depth: u32) {
        if depth == 0 {
            return;
        }
        match value {
            Value::String(text) if is_thinking => self.thinking.push_str(text),
            Value::String(text) => self.text.push_str(text),
            Value::Array(parts) => {
                for part in parts {
                    self.append_part(part, is_thinking, depth - 1);
                }
            }
            Value::Object(part) => {
                let kind = part.get("type").and_then(Value::as_str);
                let is_thinking = is_thinking || matches!(kind, Some("thinking" | "reasoning"));
                let nested = ["text", "thinking", "refusal", "content"];
                if let Some(nested) = nested.iter().find_map(|name| part.get(*name)) {
                    self.append_part(nested, is_thinking, depth - 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> (String, String) {
        let parsed: ChatText = serde_json::from_str(json).expect("text");
        (parsed.text, parsed.thinking)
    }

    #[test]
    fn text_is_a_string_parts_or_missing() {
        assert_eq!(parse(r#""a\nb""#), ("a\nb".into(), String::new()));
        let parts = r#"[{"type":"text","text":"a"},{"type":"image_url"},"b",7,null,
            {"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"text":"c"}]"#;
        assert_eq!(parse(parts), ("abc".into(), "hm".into()));
        assert_eq!(parse(r#"{"type":"text","text":"a"}"#).0, "a");
        for empty in ["null", "7", "-7", "0.5", "true", "[]", "{}", "\"\""] {
            assert_eq!(parse(empty), (String::new(), String::new()));
        }
    }

    #[test]
    fn parts_nested_too_deep_are_ignored() {
        let depth =
            |lists: usize| parse(&format!("{}\"a\"{}", "[".repeat(lists), "]".repeat(lists)));
        assert_eq!(depth(5).0, "a");
        assert_eq!(depth(6).0, "");
    }

    #[test]
    fn arguments_are_a_string_or_an_object() {
        let read = |json: &str| {
            let arguments: CallArguments = serde_json::from_str(json).expect("arguments");
            arguments.0
        };
        assert_eq!(read(r#""{\"a\"""#), r#"{"a""#);
        assert_eq!(read(r#"{"b": [1], "a": 2}"#), r#"{"b":[1],"a":2}"#);
        assert_eq!(read("null"), "");
        assert_eq!(read("[1]"), "");
    }
}
