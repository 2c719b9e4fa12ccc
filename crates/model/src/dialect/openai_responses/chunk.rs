//! The wire of OpenAI's Responses as types: one event with the fields of all events, since they
//! share them, and the objects inside it. What is not listed here is skipped unread.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::lent::Words;
use crate::dialect::loose::Count;

/// One event of the stream, whatever its type.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    /// Which event.
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Words<'a>,
    /// The place of the item in the answer; some servers leave it out.
    #[serde(default)]
    pub(super) output_index: Option<Count>,
    /// The item's id; where there is no place, this tells items apart.
    #[serde(borrow, default)]
    pub(super) item_id: Words<'a>,
    /// The part of a message, or of open reasoning.
    #[serde(default)]
    pub(super) content_index: Option<Count>,
    /// The part of a summary of reasoning.
    #[serde(default)]
    pub(super) summary_index: Option<Count>,
    /// New words, or more of a call's arguments.
    #[serde(borrow, default)]
    pub(super) delta: Words<'a>,
    /// All words of a part that is done.
    #[serde(borrow, default)]
    pub(super) text: Words<'a>,
    /// All words of a refusal that is done.
    #[serde(borrow, default)]
    pub(super) refusal: Words<'a>,
    /// All arguments of a call that is done.
    #[serde(borrow, default)]
    pub(super) arguments: Words<'a>,
    /// An item that begins or is done.
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    /// The answer as a whole, at its begin and at its end.
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    /// What went wrong, where it is told as an object.
    #[serde(default)]
    pub(super) error: Option<Value>,
    /// What went wrong, where it is told in the event itself.
    #[serde(default)]
    pub(super) code: Option<Value>,
}

/// An item of an answer: a message, reasoning, a call, or what else there may be.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    /// Which kind.
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Words<'a>,
    /// Its id.
    #[serde(borrow, default)]
    pub(super) id: Words<'a>,
    /// What the output of a call refers to.
    #[serde(borrow, default)]
    pub(super) call_id: Words<'a>,
    /// The function of a call.
    #[serde(borrow, default)]
    pub(super) name: Words<'a>,
    /// All arguments of a call.
    #[serde(borrow, default)]
    pub(super) arguments: Words<'a>,
    /// How far it is.
    #[serde(borrow, default)]
    pub(super) status: Words<'a>,
    /// The parts of a message, or open reasoning.
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    /// The parts of a summary of reasoning.
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
}

impl<'a> Item<'a> {
    /// The parts of a message, or open reasoning.
    pub(super) fn content(&self) -> Vec<Part<'a>> {
        self.content.map(parts).unwrap_or_default()
    }

    /// The parts of a summary of reasoning.
    pub(super) fn summary(&self) -> Vec<Part<'a>> {
        self.summary.map(parts).unwrap_or_default()
    }
}

fn parts(raw: &RawValue) -> Vec<Part<'_>> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// A part of a message or of reasoning.
#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    /// Its words.
    #[serde(borrow, default)]
    pub(super) text: Words<'a>,
    /// Its words, if the model refuses.
    #[serde(borrow, default)]
    pub(super) refusal: Words<'a>,
}

/// The fields of an item as they came, unread.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The answer as a whole.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    /// Its id.
    #[serde(borrow, default)]
    pub(super) id: Words<'a>,
    /// How far it is.
    #[serde(borrow, default)]
    pub(super) status: Words<'a>,
    /// Why it failed.
    #[serde(default)]
    pub(super) error: Option<Value>,
    /// Why it is not whole.
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
    /// Every item; only read if none of them came before.
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    /// What it cost.
    #[serde(default)]
    pub(super) usage: Option<Usage>,
}

impl<'a> Response<'a> {
    /// Every item.
    pub(super) fn items(&self) -> Vec<&'a RawValue> {
        let read = |raw: &'a RawValue| serde_json::from_str(raw.get()).ok();
        self.output.and_then(read).unwrap_or_default()
    }
}

/// Why an answer is not whole.
#[derive(Debug, Deserialize)]
pub(super) struct Incomplete<'a> {
    /// In one word.
    #[serde(borrow, default)]
    pub(super) reason: Words<'a>,
}

/// Tokens, as counted at the end.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Usage {
    /// Read, all of them.
    #[serde(default)]
    pub(super) input_tokens: Option<Count>,
    /// Of those, what of it has to do with the cache.
    #[serde(default)]
    pub(super) input_tokens_details: Option<InputDetails>,
    /// Written, with reasoning.
    #[serde(default)]
    pub(super) output_tokens: Option<Count>,
    /// Of those, reasoning.
    #[serde(default)]
    pub(super) output_tokens_details: Option<OutputDetails>,
    /// Both.
    #[serde(default)]
    pub(super) total_tokens: Option<Count>,
}

/// Of the tokens read.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct InputDetails {
    /// From the cache.
    #[serde(default)]
    pub(super) cached_tokens: Option<Count>,
    /// Into the cache.
    #[serde(default)]
    pub(super) cache_write_tokens: Option<Count>,
}

/// Of the tokens written.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct OutputDetails {
    /// Of reasoning.
    #[serde(default)]
    pub(super) reasoning_tokens: Option<Count>,
}
