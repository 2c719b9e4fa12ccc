//! The message of a turn: a string, or a list of content blocks (only text so far).
//!
//! Blocks are checked while they are read, and only their texts are kept. Nothing is kept of a list
//! that has too many blocks or an invalid one.

pub(super) mod integer;
mod metadata;

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use turnwire_event::ContentBlock;

pub use metadata::{METADATA_READ_BYTES_MAX, MetadataInput};

/// The most blocks that are kept while a message is read. Servers may be set to accept fewer.
pub const BLOCKS_READ_MAX: usize = 10_000;

/// The most characters of a client's text in an [`InvalidContent`].
const ECHO_CHARS_MAX: usize = 64;

/// The `message` of a request, before it is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageInput {
    /// One plain text block.
    Text(String),
    /// The texts of text blocks, at most [`BLOCKS_READ_MAX`].
    Blocks(Vec<String>),
    /// Blocks that no server accepts.
    Invalid(InvalidContent),
}

/// The reason why a message is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContent {
    /// The message has no block, or a block has no visible text.
    #[error("message is empty")]
    Empty,
    /// The message has more blocks than the server accepts.
    #[error("message has {count} blocks")]
    TooManyBlocks {
        /// The number of blocks.
        count: usize,
    },
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
    /// The number of blocks that the request has; 0 if one of them is invalid.
    pub fn block_count(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::Blocks(texts) => texts.len(),
            Self::Invalid(InvalidContent::TooManyBlocks { count }) => *count,
            Self::Invalid(_) => 0,
        }
    }

    /// Checks the message and returns its blocks, or the [`InvalidContent`] of the first invalid one.
    pub fn content(self) -> Result<Vec<ContentBlock>, InvalidContent> {
        let texts = match self {
            Self::Text(text) => vec![text],
            Self::Blocks(texts) => texts,
            Self::Invalid(invalid) => return Err(invalid),
        };
        if texts.is_empty() || texts.iter().any(|text| text.trim().is_empty()) {
            return Err(InvalidContent::Empty);
        }
        Ok(texts.into_iter().map(ContentBlock::text).collect())
    }
}

impl Serialize for MessageInput {
    /// Writes the message as a request has it; null for [`MessageInput::Invalid`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum InputBlock<'a> {
            Text { text: &'a str },
        }
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Blocks(texts) => {
                serializer.collect_seq(texts.iter().map(|text| InputBlock::Text { text }))
            }
            Self::Invalid(_) => serializer.serialize_none(),
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
                    "maxItems": BLOCKS_READ_MAX,
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
        deserializer.deserialize_any(InputVisitor)
    }
}

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
        let mut texts = Vec::new();
        while let Some(block) = seq.next_element::<BlockFields>()? {
            match block.text(texts.len()) {
                Ok(text) if texts.len() < BLOCKS_READ_MAX => texts.push(text),
                Ok(_) => {
                    let count = texts.len() + 1 + skip_rest(&mut seq)?;
                    let invalid = InvalidContent::TooManyBlocks { count };
                    return Ok(MessageInput::Invalid(invalid));
                }
                Err(invalid) => {
                    skip_rest(&mut seq)?;
                    return Ok(MessageInput::Invalid(invalid));
                }
            }
        }
        Ok(MessageInput::Blocks(texts))
    }
}

/// Skips the remaining elements and returns their number.
fn skip_rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<usize, A::Error> {
    let mut count = 0;
    while seq.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// The visits of values without parts, all with the same result.
macro_rules! visit_scalars_as {
    ($result:expr) => {
        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($result)
        }
    };
}

/// An element of the list, reduced to what its check needs. A block type that no model supports is
/// distinguished from an invalid block.
enum BlockFields {
    Object {
        kind: StringField,
        text: StringField,
        /// The first field that no block has, cut.
        unknown: Option<String>,
    },
    /// A value that cannot be a block.
    NotObject,
}

impl BlockFields {
    /// The text of the block with the index `at`.
    fn text(self, at: usize) -> Result<String, InvalidContent> {
        let invalid = |reason| InvalidContent::Invalid { at, reason };
        let Self::Object {
            kind,
            text,
            unknown,
        } = self
        else {
            return Err(invalid("it is no object"));
        };
        let kind = kind.0.ok_or_else(|| invalid("type must be a string"))?;
        if kind != "text" {
            let kind = kind.chars().take(ECHO_CHARS_MAX).collect();
            return Err(InvalidContent::Unsupported { index: at, kind });
        }
        let text = text.0.ok_or_else(|| invalid("text must be a string"))?;
        match unknown {
            None => Ok(text),
            Some(field) => Err(InvalidContent::UnknownField { at, field }),
        }
    }
}

impl<'de> Deserialize<'de> for BlockFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = BlockFields;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a content block")
    }

    visit_scalars_as!(BlockFields::NotObject);

    fn visit_str<E: de::Error>(self, _: &str) -> Result<BlockFields, E> {
        Ok(BlockFields::NotObject)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BlockFields, A::Error> {
        skip_rest(&mut seq)?;
        Ok(BlockFields::NotObject)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BlockFields, A::Error> {
        let (mut kind, mut text, mut unknown) = (StringField(None), StringField(None), None);
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "type" => kind = map.next_value()?,
                "text" => text = map.next_value()?,
                _ => {
                    unknown = unknown.or_else(|| Some(name.chars().take(ECHO_CHARS_MAX).collect()));
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(BlockFields::Object {
            kind,
            text,
            unknown,
        })
    }
}

/// The value of a field if it is a string.
struct StringField(Option<String>);

impl<'de> Deserialize<'de> for StringField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StringVisitor)
    }
}

struct StringVisitor;

impl<'de> Visitor<'de> for StringVisitor {
    type Value = StringField;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    visit_scalars_as!(StringField(None));

    fn visit_str<E: de::Error>(self, text: &str) -> Result<StringField, E> {
        Ok(StringField(Some(text.to_owned())))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<StringField, E> {
        Ok(StringField(Some(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<StringField, A::Error> {
        skip_rest(&mut seq)?;
        Ok(StringField(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StringField, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(StringField(None))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn content(message: Value) -> Result<Vec<ContentBlock>, InvalidContent> {
        serde_json::from_value::<MessageInput>(message)
            .expect("an input")
            .content()
    }

    /// The JSON of a message of `count` blocks.
    fn message_of(count: usize) -> String {
        let blocks = vec![r#"{"type":"text","text":"a"}"#; count];
        format!("[{}]", blocks.join(","))
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
            (json!([[1, {}]]), "it is no object"),
            (json!([{}]), "type must be a string"),
            (json!([{"type": {"text": "text"}}]), "type must be a string"),
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

    #[test]
    fn blocks_are_bounded_while_they_are_read() {
        let read =
            |count| serde_json::from_str::<MessageInput>(&message_of(count)).expect("blocks");
        for count in [0, 3, BLOCKS_READ_MAX, BLOCKS_READ_MAX + 1, 38_001] {
            let input = read(count);
            assert_eq!(input.block_count(), count);
            if count > BLOCKS_READ_MAX {
                let invalid = InvalidContent::TooManyBlocks { count };
                assert_eq!(
                    input,
                    MessageInput::Invalid(invalid.clone()),
                    "nothing is kept"
                );
                assert_eq!(input.content(), Err(invalid));
            }
        }
        let invalid = format!("[7,{}", &message_of(38_001)[1..]);
        let input: MessageInput = serde_json::from_str(&invalid).expect("blocks");
        assert_eq!(input.block_count(), 0);
        assert!(matches!(input, MessageInput::Invalid(_)), "nothing is kept");
    }

    #[test]
    fn message_is_written_as_it_was_read() {
        for message in [
            json!("hi"),
            json!([{"type": "text", "text": "hi"}]),
            json!([]),
        ] {
            let input: MessageInput = serde_json::from_value(message.clone()).expect("an input");
            assert_eq!(serde_json::to_value(input).expect("plain data"), message);
        }
    }
}
