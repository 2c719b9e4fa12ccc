//! Text that servers write in more than one way: a string, a list of parts, one part, or null; and
//! a tool call's arguments, which are a string or, from some servers, the object itself.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
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
        match deserializer.deserialize_any(TextOrJsonVisitor)? {
            TextOrJson::Text(text) => Ok(Self {
                text,
                thinking: String::new(),
            }),
            TextOrJson::Json(value) => {
                let mut text = Self::default();
                text.append_part(&value, false, PART_DEPTH_MAX);
                Ok(text)
            }
        }
    }
}

impl<'de> Deserialize<'de> for CallArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrJsonVisitor)? {
            TextOrJson::Text(text) => Ok(Self(text)),
            TextOrJson::Json(value @ Value::Object(_)) => Ok(Self(value.to_string())),
            TextOrJson::Json(_) => Ok(Self::default()),
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

enum TextOrJson {
    Text(String),
    Json(Value),
}

struct TextOrJsonVisitor;

impl<'de> Visitor<'de> for TextOrJsonVisitor {
    type Value = TextOrJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E>(self, text: &str) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Text(text))
    }

    fn visit_unit<E>(self) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Json(Value::Null))
    }

    fn visit_bool<E>(self, _: bool) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Json(Value::Null))
    }

    fn visit_i64<E>(self, _: i64) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Json(Value::Null))
    }

    fn visit_u64<E>(self, _: u64) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Json(Value::Null))
    }

    fn visit_f64<E>(self, _: f64) -> Result<TextOrJson, E> {
        Ok(TextOrJson::Json(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<TextOrJson, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(TextOrJson::Json)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOrJson, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(TextOrJson::Json)
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
