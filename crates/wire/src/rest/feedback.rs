//! `/sessions/{id}/feedback`: a person's rating of a message or a turn.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Number;
#[cfg(feature = "schema")]
use turnwire_event::MessageId;
use turnwire_event::Position;

#[cfg(feature = "schema")]
use super::turn::TurnName;

/// The longest rating, in characters: a word, a number or a few stars.
pub const RATING_CHARS_MAX: usize = 64;

/// The longest comment, in characters: a page of text.
pub const COMMENT_CHARS_MAX: usize = 8_192;

/// A rating in the scale of the client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Rating {
    /// A word such as `up`.
    Word(String),
    /// A number such as `5`.
    Number(Number),
}

impl fmt::Display for Rating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// `POST /sessions/{id}/feedback`; exactly one of the two ids is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackRequest {
    /// The rated message, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The rated turn, by turn id or response id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// A word or a number in the scale of the client.
    pub rating: Rating,
    /// A comment in free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

#[cfg(feature = "schema")]
impl JsonSchema for FeedbackRequest {
    fn schema_name() -> Cow<'static, str> {
        "Feedback".into()
    }

    /// Feedback on a message or on a turn, never on both or neither.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rating = generator.subschema_for::<Rating>();
        let on = |title: &str, field: &str, id: Schema, other: &str| {
            json_schema!({
                "title": title,
                "type": "object",
                "required": [field, "rating"],
                "properties": {
                    field: id,
                    other: { "type": "null" },
                    "rating": rating,
                    "comment": {
                        "description": "A comment in free text.",
                        "type": ["string", "null"],
                        "maxLength": COMMENT_CHARS_MAX,
                    },
                },
                "additionalProperties": false,
            })
        };
        let message = generator.subschema_for::<MessageId>();
        let turn = generator.subschema_for::<TurnName>();
        json_schema!({
            "description": "A rating of a message or of a turn.",
            "oneOf": [
                on("MessageFeedback", "message_id", message, "turn_id"),
                on("TurnFeedback", "turn_id", turn, "message_id"),
            ],
        })
    }
}

/// 202 of `POST /sessions/{id}/feedback`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackAccepted {
    /// The position of the event in the log.
    pub position: Position,
}

#[cfg(feature = "schema")]
impl JsonSchema for Rating {
    fn schema_name() -> Cow<'static, str> {
        "Rating".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A rating in the client's own scale: a word or a number.",
            "anyOf": [
                { "type": "string", "minLength": 1, "maxLength": RATING_CHARS_MAX },
                { "type": "number" },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for Rating {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RatingVisitor;

        impl Visitor<'_> for RatingVisitor {
            type Value = Rating;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Rating, E> {
                Ok(Rating::Word(word.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Rating, E> {
                Ok(Rating::Number(number.into()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Rating, E> {
                Ok(Rating::Number(number.into()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Rating, E> {
                Number::from_f64(number)
                    .map(Rating::Number)
                    .ok_or_else(|| E::custom("a rating must be finite"))
            }
        }

        deserializer.deserialize_any(RatingVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn rating_is_a_word_or_a_number() {
        for (json, text) in [
            ("\"up\"", "up"),
            ("5", "5"),
            ("-1", "-1"),
            ("0.5", "0.5"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            let rating: Rating = serde_json::from_str(json).expect("a rating");
            assert_eq!(rating.to_string(), text);
            assert_eq!(serde_json::to_string(&rating).expect("plain data"), json);
        }
        for json in ["null", "true", "[1]", "{}"] {
            let error = serde_json::from_str::<Rating>(json).expect_err("no rating");
            assert!(
                error.to_string().contains("expected a string or a number"),
                "{error}"
            );
        }
    }
}
