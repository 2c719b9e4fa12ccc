//! The message of a turn: a string, or a list of content blocks (only text so far).
//!
//! Blocks stay JSON until they are checked, so that a block type that no model supports is
//! distinguished from an invalid block.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_event::ContentBlock;

/// The `message` of a request, before it is checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MessageInput {
    /// One plain text block.
    Text(String),
    /// Content blocks that are not checked yet.
    Blocks(Vec<Value>),
}

/// The reason why a message is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContent {
    /// The message has no block, or a block has no visible text.
    #[error("message is empty")]
    Empty,
    /// The type of a block is not supported.
    #[error("message[{index}] is a {kind:?} block; only \"text\" blocks are taken")]
    Unsupported {
        /// The index of the block.
        index: usize,
        /// The type of the block, cut to 64 characters.
        kind: String,
    },
    /// A block is not a valid content block.
    #[error("message[{at}] is not a content block: {reason}")]
    Invalid {
        /// The index of the block.
        at: usize,
        /// The rule that the block violates.
        reason: &'static str,
    },
    /// A block has an unknown field.
    #[error("message[{at}] has an unknown field {field:?}")]
    UnknownField {
        /// The index of the block.
        at: usize,
        /// The name of the field, cut to 64 characters.
        field: String,
    },
}

impl MessageInput {
    /// Checks the message and returns its blocks, or the [`InvalidContent`] of the first invalid one.
    pub fn content(self) -> Result<Vec<ContentBlock>, InvalidContent> {
        let blocks = match self {
            Self::Text(text) => vec![ContentBlock::text(text)],
            Self::Blocks(blocks) => blocks
                .into_iter()
                .enumerate()
                .map(|(at, block)| check_block(at, block))
                .collect::<Result<_, _>>()?,
        };
        let is_blank = |block: &ContentBlock| block.as_text().is_some_and(|t| t.trim().is_empty());
        if blocks.is_empty() || blocks.iter().any(is_blank) {
            return Err(InvalidContent::Empty);
        }
        Ok(blocks)
    }
}

fn check_block(at: usize, block: Value) -> Result<ContentBlock, InvalidContent> {
    let invalid = |why| InvalidContent::Invalid { at, reason: why };
    let Value::Object(mut fields) = block else {
        return Err(invalid("it is no object"));
    };
    match fields.remove("type") {
        Some(Value::String(kind)) if kind == "text" => {}
        Some(Value::String(kind)) => {
            let kind = kind.chars().take(64).collect();
            return Err(InvalidContent::Unsupported { index: at, kind });
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
            Err(InvalidContent::UnknownField { at, field })
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for MessageInput {
    fn schema_name() -> Cow<'static, str> {
        "Input".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // A blank text is not a message.
        let non_blank = serde_json::json!({ "type": "string", "pattern": "\\S" });
        json_schema!({
            "description": "The message of the user: a text, or a list of text blocks.",
            "anyOf": [
                non_blank,
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": { "type": { "const": "text" }, "text": non_blank },
                        "required": ["type", "text"],
                        "additionalProperties": false,
                    },
                },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for MessageInput {
    // Written by hand: the error of a derived untagged enum does not name the expected types.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InputVisitor;

        impl<'de> Visitor<'de> for InputVisitor {
            type Value = MessageInput;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a list of content blocks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MessageInput, E> {
                Ok(MessageInput::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<MessageInput, E> {
                Ok(MessageInput::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MessageInput, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(MessageInput::Blocks(blocks))
            }
        }

        deserializer.deserialize_any(InputVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(message: Value) -> Result<Vec<ContentBlock>, InvalidContent> {
        serde_json::from_value::<MessageInput>(message)
            .expect("an input")
            .content()
    }

    #[test]
    fn message_is_a_string_or_text_blocks() {
        let hi = Ok(vec![ContentBlock::text("hi")]);
        assert_eq!(content(json!("hi")), hi);
        assert_eq!(content(json!([{"type": "text", "text": "hi"}])), hi);
        let error = serde_json::from_value::<MessageInput>(json!(5)).expect_err("a number");
        assert_eq!(
            error.to_string(),
            "invalid type: integer `5`, expected a string or a list of content blocks"
        );
    }

    #[test]
    fn unsupported_blocks_differ_from_invalid_blocks() {
        let unsupported = |kind: &str| {
            Err(InvalidContent::Unsupported {
                index: 1,
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
            assert_eq!(
                content(message),
                Err(InvalidContent::Invalid { at: 0, reason: why })
            );
        }
        assert_eq!(
            content(json!([{"type": "text", "text": "a", "cache": true}])),
            Err(InvalidContent::UnknownField {
                at: 0,
                field: "cache".into()
            })
        );
    }

    #[test]
    fn blank_message_is_rejected() {
        let blank = json!([{"type": "text", "text": "a"}, {"type": "text", "text": ""}]);
        for message in [json!(""), json!(" \n"), json!([]), blank] {
            assert_eq!(content(message), Err(InvalidContent::Empty));
        }
    }
}
