//! The events of a Responses stream: one struct with the fields of all events, since they share
//! them, and the objects nested in it. Unlisted fields are skipped.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::lenient::{LenientCount, OptionalStr};

/// One event of the stream, of any type.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: OptionalStr<'a>,
    /// Index of the item in the answer; some servers omit it.
    pub(super) output_index: Option<LenientCount>,
    /// Id of the item; identifies it if there is no index.
    #[serde(borrow, default)]
    pub(super) item_id: OptionalStr<'a>,
    /// Index of the part of a message or of raw reasoning.
    pub(super) content_index: Option<LenientCount>,
    /// Index of the part of a reasoning summary.
    pub(super) summary_index: Option<LenientCount>,
    /// New text, or a fragment of a call's arguments.
    #[serde(borrow, default)]
    pub(super) delta: OptionalStr<'a>,
    /// Full text of a part that is done.
    #[serde(borrow, default)]
    pub(super) text: OptionalStr<'a>,
    /// Full text of a refusal that is done.
    #[serde(borrow, default)]
    pub(super) refusal: OptionalStr<'a>,
    /// Full arguments of a call that is done.
    #[serde(borrow, default)]
    pub(super) arguments: OptionalStr<'a>,
    /// An item that was added or is done.
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    /// The response object, at the start and the end of the answer.
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    /// The error, from servers that send it as an object.
    pub(super) error: Option<Value>,
    /// The error code, from servers that put it into the event itself.
    pub(super) code: Option<Value>,
}

/// An item of an answer: a message, reasoning, a function call or another kind.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesItem<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: OptionalStr<'a>,
    #[serde(borrow, default)]
    pub(super) id: OptionalStr<'a>,
    /// Id that the output of a call refers to.
    #[serde(borrow, default)]
    pub(super) call_id: OptionalStr<'a>,
    /// Name of the called function.
    #[serde(borrow, default)]
    pub(super) name: OptionalStr<'a>,
    /// Full arguments of a call.
    #[serde(borrow, default)]
    pub(super) arguments: OptionalStr<'a>,
    /// Progress, such as `completed` or `incomplete`.
    #[serde(borrow, default)]
    pub(super) status: OptionalStr<'a>,
    /// Parts of a message or of raw reasoning.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// Parts of a reasoning summary.
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
}

/// The elements of a list; empty if it is missing or malformed.
pub(super) fn list<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Vec<T> {
    let list = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    list.unwrap_or_default()
}

/// A part of a message or of reasoning.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesPart<'a> {
    #[serde(borrow, default)]
    pub(super) text: OptionalStr<'a>,
    /// Text of a refusal.
    #[serde(borrow, default)]
    pub(super) refusal: OptionalStr<'a>,
}

/// The response object, sent at the start and at the end.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ResponseObject<'a> {
    #[serde(borrow, default)]
    pub(super) id: OptionalStr<'a>,
    /// Progress, such as `completed` or `incomplete`.
    #[serde(borrow, default)]
    pub(super) status: OptionalStr<'a>,
    /// Why the answer failed.
    pub(super) error: Option<Value>,
    /// Why the answer is incomplete.
    #[serde(borrow)]
    pub(super) incomplete_details: Option<IncompleteDetails<'a>>,
    /// All items; read only if no item was streamed.
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    pub(super) usage: Option<ResponsesUsage>,
}

/// Why an answer is incomplete.
#[derive(Debug, Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    pub(super) reason: OptionalStr<'a>,
}

/// Token counts at the end of the answer.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct ResponsesUsage {
    /// Input tokens, cached ones included.
    pub(super) input_tokens: Option<LenientCount>,
    /// How many input tokens were cached or written to the cache.
    pub(super) input_tokens_details: Option<ResponsesInputDetails>,
    /// All output tokens, reasoning included.
    pub(super) output_tokens: Option<LenientCount>,
    /// How many output tokens were reasoning.
    pub(super) output_tokens_details: Option<ResponsesOutputDetails>,
    pub(super) total_tokens: Option<LenientCount>,
}

/// Details of the input tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct ResponsesInputDetails {
    /// Tokens served from the cache.
    pub(super) cached_tokens: Option<LenientCount>,
    /// Tokens written to the cache.
    pub(super) cache_write_tokens: Option<LenientCount>,
}

/// Details of the output tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct ResponsesOutputDetails {
    pub(super) reasoning_tokens: Option<LenientCount>,
}
