//! The wire of Gemini as types: every frame is a whole response object with what is new in it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::lent::Words;
use crate::dialect::loose::Count;

/// One frame.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    /// What is new, by candidate; only the first is asked for.
    #[serde(borrow, default)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    /// Whether the request was let in.
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<Feedback<'a>>,
    /// Tokens so far.
    #[serde(default)]
    pub(super) usage_metadata: Option<Usage>,
    /// The answer's id, the same in every frame.
    #[serde(borrow, default)]
    pub(super) response_id: Words<'a>,
    /// What went wrong instead.
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// What is new of one candidate.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    /// Which candidate; the first has none or 0.
    #[serde(default)]
    pub(super) index: Option<Count>,
    /// What it says.
    #[serde(borrow, default)]
    pub(super) content: Option<Content<'a>>,
    /// Why it ended, once it has.
    #[serde(borrow, default)]
    pub(super) finish_reason: Words<'a>,
}

/// What a candidate says.
#[derive(Debug, Deserialize)]
pub(super) struct Content<'a> {
    /// Piece by piece.
    #[serde(borrow, default)]
    pub(super) parts: Option<Vec<Part<'a>>>,
}

/// A piece: words, a thought, a call, or what else there may be.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    /// Its words.
    pub(super) text: Words<'a>,
    /// Whether they are a thought.
    pub(super) is_thought: bool,
    /// The vendor's seal.
    pub(super) signature: Words<'a>,
    /// A call.
    pub(super) call: Option<Call<'a>>,
    /// All other fields, unread.
    pub(super) rest: Vec<(String, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part<'de>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a part")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut part = Part::default();
        while let Some(name) = map.next_key::<Words<'de>>()? {
            match name.as_str() {
                "text" => part.text = map.next_value()?,
                "thought" => part.is_thought = map.next_value::<Option<bool>>()? == Some(true),
                "thoughtSignature" => part.signature = map.next_value()?,
                "functionCall" => part.call = map.next_value()?,
                other => {
                    let name = other.to_owned();
                    part.rest.push((name, map.next_value()?));
                }
            }
        }
        Ok(part)
    }
}

/// A call of a function, whole.
#[derive(Debug, Deserialize)]
pub(super) struct Call<'a> {
    /// The vendor's id of it; older models give none.
    #[serde(borrow, default)]
    pub(super) id: Words<'a>,
    /// Which function.
    #[serde(borrow, default)]
    pub(super) name: Words<'a>,
    /// With what.
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
}

/// Whether the request was let in.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Feedback<'a> {
    /// Why it was not.
    #[serde(borrow, default)]
    pub(super) block_reason: Words<'a>,
}

/// Tokens so far; a later count takes the place of an earlier one.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    /// Read, with those from a cache.
    #[serde(default)]
    pub(super) prompt_token_count: Option<Count>,
    /// Read besides: what the vendor's own tools gave.
    #[serde(default)]
    pub(super) tool_use_prompt_token_count: Option<Count>,
    /// Of those read, from a cache.
    #[serde(default)]
    pub(super) cached_content_token_count: Option<Count>,
    /// Written, without thoughts.
    #[serde(default)]
    pub(super) candidates_token_count: Option<Count>,
    /// Thought.
    #[serde(default)]
    pub(super) thoughts_token_count: Option<Count>,
    /// All.
    #[serde(default)]
    pub(super) total_token_count: Option<Count>,
}
