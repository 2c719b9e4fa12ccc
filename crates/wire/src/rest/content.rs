//! What a person says in a turn: a string, or a list of content blocks (only words so far).
//!
//! Blocks are kept as JSON until they are checked, so that a block no model here takes is told
//! apart from one that makes no sense.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_event::ContentBlock;

/// The `message` of a turn, as it was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Input {
    /// Words.
    Text(String),
    /// Content blocks, not yet checked.
    Blocks(Vec<Value>),
}

/// Why a message was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadContent {
    /// Nothing is said.
    #[error("message is empty")]
    Empty,
    /// A block of a kind that no model here takes.
    #[error("message[{at}] is a {kind:?} block; only \"text\" blocks are taken")]
    Unsupported {
        /// Which block.
        at: usize,
        /// Its type.
        kind: String,
    },
    /// A block that is not one.
    #[error("message[{at}] is not a content block: {why}")]
    Invalid {
        /// Which block.
        at: usize,
        /// Why.
        why: &'static str,
    },
    /// A block with a field that it does not have.
    #[error("message[{at}] has an unknown field {field:?}")]
    UnknownField {
        /// Which block.
        at: usize,
        /// The field.
        field: String,
    },
}

impl Input {
    /// The blocks, checked.
    pub fn content(self) -> Result<Vec<ContentBlock>, BadContent> {
        let blocks = match self {
            Self::Text(text) => vec![ContentBlock::text(text)],
            Self::Blocks(blocks) => blocks
                .into_iter()
                .enumerate()
                .map(|(at, block)| read(at, block))
                .collect::<Result<_, _>>()?,
        };
        let silent = |block: &ContentBlock| block.as_text().is_some_and(|t| t.trim().is_empty());
        if blocks.is_empty() || blocks.iter().any(silent) {
            return Err(BadContent::Empty);
        }
        Ok(blocks)
    }
}

fn read(at: usize, block: Value) -> Result<ContentBlock, BadContent> {
    let invalid = |why| BadContent::Invalid { at, why };
    let Value::Object(mut fields) = block else {
        return Err(invalid("it is no object"));
    };
    match fields.remove("type") {
        Some(Value::String(kind)) if kind == "text" => {}
        Some(Value::String(kind)) => {
            let kind = kind.chars().take(64).collect();
            return Err(BadContent::Unsupported { at, kind });
        }
        Some(_) | None => return Err(invalid("type must be a string")),
    }
    let Some(Value::String(text)) = fields.remove("text") else {
        return Err(invalid("text must be a string"));
    };
    match fields.into_iter().next() {
        None => Ok(ContentBlock::Text { text }),
        Some((field, _)) => {
            let field = field.chars().take(64).collect();
            Err(BadContent::UnknownField { at, field })
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Input {
    fn schema_name() -> Cow<'static, str> {
        "Input".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Something must be said: a text that is blank is no message.
        let said = serde_json::json!({ "type": "string", "pattern": "\\S" });
        json_schema!({
            "description": "What a person says: words, or a list of text blocks.",
            "anyOf": [
                said,
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": { "type": { "const": "text" }, "text": said },
                        "required": ["type", "text"],
                        "additionalProperties": false,
                    },
                },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for Input {
    // By hand, because an untagged enum would answer a wrong type with a riddle.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Input;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a list of content blocks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Input, E> {
                Ok(Input::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Input, E> {
                Ok(Input::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Input, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Input::Blocks(blocks))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(message: Value) -> Result<Vec<ContentBlock>, BadContent> {
        serde_json::from_value::<Input>(message)
            .expect("an input")
            .content()
    }

    #[test]
    fn a_message_is_a_string_or_text_blocks() {
        let hi = Ok(vec![ContentBlock::text("hi")]);
        assert_eq!(content(json!("hi")), hi);
        assert_eq!(content(json!([{"type": "text", "text": "hi"}])), hi);
        let wrong = serde_json::from_value::<Input>(json!(5)).expect_err("a number");
        assert_eq!(
            wrong.to_string(),
            "invalid type: integer `5`, expected a string or a list of content blocks"
        );
    }

    #[test]
    fn what_no_model_takes_is_told_apart_from_what_makes_no_sense() {
        let unsupported = |kind: &str| {
            Err(BadContent::Unsupported {
                at: 1,
                kind: kind.into(),
            })
        };
        let text = json!({"type": "text", "text": "see"});
        for kind in ["thinking", "tool_use", "tool_result", "data", "image"] {
            let message = json!([text, {"type": kind, "source": {}}]);
            assert_eq!(content(message), unsupported(kind));
        }
        for (message, why) in [
            (json!(["hi"]), "it is no object"),
            (json!([{}]), "type must be a string"),
            (json!([{"type": "text"}]), "text must be a string"),
            (
                json!([{"type": "text", "text": null}]),
                "text must be a string",
            ),
        ] {
            assert_eq!(content(message), Err(BadContent::Invalid { at: 0, why }));
        }
        assert_eq!(
            content(json!([{"type": "text", "text": "a", "cache": true}])),
            Err(BadContent::UnknownField {
                at: 0,
                field: "cache".into()
            })
        );
    }

    #[test]
    fn nothing_said_is_refused() {
        let blank = json!([{"type": "text", "text": "a"}, {"type": "text", "text": ""}]);
        for message in [json!(""), json!(" \n"), json!([]), blank] {
            assert_eq!(content(message), Err(BadContent::Empty));
        }
    }
}
