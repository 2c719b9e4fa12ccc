//! Words that servers write in more than one way: a string, a list of parts, one part, or nothing;
//! and a tool's arguments, which are a string or, with some, the object itself.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// What a delta says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Words.
    pub(super) text: String,
    /// Reasoning that stands among them as parts of its own.
    pub(super) thinking: String,
}

/// A tool's arguments, raw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments(pub(super) String);

/// How deep words may lie in lists and parts; those that are known lie five deep.
const PARTS_DEEP_MAX: u32 = 6;

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(Loose)? {
            Found::Text(text) => Ok(Self {
                text,
                thinking: String::new(),
            }),
            Found::Other(value) => {
                let mut words = Self::default();
                words.gather(&value, false, PARTS_DEEP_MAX);
                Ok(words)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(Loose)? {
            Found::Text(text) => Ok(Self(text)),
            Found::Other(value @ Value::Object(_)) => Ok(Self(value.to_string())),
            Found::Other(_) => Ok(Self::default()),
        }
    }
}

impl Words {
    /// Takes the words of a part and of the parts in it.
    fn gather(&mut self, value: &Value, thinks: bool, deep: u32) {
        if deep == 0 {
            return;
        }
        match value {
            Value::String(text) if thinks => self.thinking.push_str(text),
            Value::String(text) => self.text.push_str(text),
            Value::Array(parts) => {
                for part in parts {
                    self.gather(part, thinks, deep - 1);
                }
            }
            Value::Object(part) => {
                let kind = part.get("type").and_then(Value::as_str);
                let thinks = thinks || matches!(kind, Some("thinking" | "reasoning"));
                let inside = ["text", "thinking", "refusal", "content"];
                if let Some(inside) = inside.iter().find_map(|name| part.get(*name)) {
                    self.gather(inside, thinks, deep - 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

enum Found {
    Text(String),
    Other(Value),
}

struct Loose;

impl<'de> Visitor<'de> for Loose {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words")
    }

    fn visit_str<E>(self, text: &str) -> Result<Found, E> {
        Ok(Found::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Found, E> {
        Ok(Found::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Other(Value::Null))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Other(Value::Null))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Other(Value::Null))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Other(Value::Null))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Found, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(Found::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Found, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Found::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(json: &str) -> (String, String) {
        let words: Words = serde_json::from_str(json).expect("words");
        (words.text, words.thinking)
    }

    #[test]
    fn words_come_as_a_string_as_parts_or_not_at_all() {
        assert_eq!(words(r#""a\nb""#), ("a\nb".into(), String::new()));
        let parts = r#"[{"type":"text","text":"a"},{"type":"image_url"},"b",7,null,
            {"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"text":"c"}]"#;
        assert_eq!(words(parts), ("abc".into(), "hm".into()));
        assert_eq!(words(r#"{"type":"text","text":"a"}"#).0, "a");
        for nothing in ["null", "7", "-7", "0.5", "true", "[]", "{}", "\"\""] {
            assert_eq!(words(nothing), (String::new(), String::new()));
        }
    }

    #[test]
    fn parts_that_lie_too_deep_say_nothing() {
        let deep =
            |lists: usize| words(&format!("{}\"a\"{}", "[".repeat(lists), "]".repeat(lists)));
        assert_eq!(deep(5).0, "a");
        assert_eq!(deep(6).0, "");
    }

    #[test]
    fn arguments_come_as_a_string_or_as_an_object() {
        let read = |json: &str| {
            let arguments: Arguments = serde_json::from_str(json).expect("arguments");
            arguments.0
        };
        assert_eq!(read(r#""{\"a\"""#), r#"{"a""#);
        assert_eq!(read(r#"{"b": [1], "a": 2}"#), r#"{"b":[1],"a":2}"#);
        assert_eq!(read("null"), "");
        assert_eq!(read("[1]"), "");
    }
}
