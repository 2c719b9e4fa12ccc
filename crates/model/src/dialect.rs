//! The vendors' APIs: [`Dialect::encode`] writes a [`Request`] as a vendor's JSON body, and a
//! [`StreamDecoder`] translates the vendor's stream into [`Delta`]s. Pure: no I/O, no clock.
//!
//! ```text
//! Request ─▶ encode ─▶ body ─▶ (network or cassette) ─▶ frames ─▶ Decoder::step ─▶ Delta
//! ```
//! Each dialect is a folder: `chunk` has the types of the vendor's stream, which tolerate unknown
//! fields; `decode` translates them into deltas; `encode` writes the request. Shared parts:
//! `conversation` (the message history in the form that vendors accept), `error_class` (what
//! vendors' errors mean), `lenient` and `optional_str` (JSON values that servers write in several
//! ways).

mod lenient;
mod optional_str;
mod conversation;
mod error_class;
pub mod anthropic;
pub mod openai_chat;
pub mod openai_responses;
pub mod gemini;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_dial::SseEvent;
use turnwire_event::TokenUsage;

use crate::delta::{Delta, ModelError};
use crate::request::ModelRequest;

/// One server-sent event of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// Value of the `event` field; `None` if the event has no such field.
    pub event: Option<&'a str>,
    /// Values of all `data` fields, joined with line feeds.
    pub data: &'a str,
}

impl<'a> From<SseEvent<'a>> for SseFrame<'a> {
    fn from(event: SseEvent<'a>) -> Self {
        let SseEvent { event, data } = event;
        Self { event, data }
    }
}

/// Sampling and reasoning parameters that the operator sets for a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelParams {
    /// Upper limit of output tokens; `None` leaves it to the vendor or the dialect.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, in the vendor's range.
    pub temperature: Option<f64>,
    /// Token budget for reasoning; ignored by vendors that take only an effort.
    pub thinking_tokens: Option<u32>,
    /// Reasoning effort, in the vendor's own words.
    pub effort: Option<String>,
    /// Extra fields of the request body. They override the fields above; `null` removes a field.
    pub extra: Map<String, Value>,
}

impl ModelParams {
    /// Takes each unset parameter from `base`; extra fields are merged by name.
    #[must_use]
    pub fn with_defaults(&self, base: &Self) -> Self {
        let mut extra = base.extra.clone();
        extra.extend(self.extra.clone());
        Self {
            max_tokens: self.max_tokens.or(base.max_tokens),
            temperature: self.temperature.or(base.temperature),
            thinking_tokens: self.thinking_tokens.or(base.thinking_tokens),
            effort: self.effort.clone().or_else(|| base.effort.clone()),
            extra,
        }
    }
}

/// A request in a vendor's format.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedRequest {
    /// Path and query that follow the provider's base URL; starts with `/`.
    pub path: String,
    /// JSON body of the `POST` request.
    pub body: Value,
}

/// A response that is not a stream: an error status and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorResponse<'a> {
    /// HTTP status code of the response.
    pub status: u16,
    /// Delay before a retry, from the response headers; `None` if they name none.
    pub retry_after: Option<Duration>,
    /// The body or its first bytes.
    pub body: &'a [u8],
}

/// Decodes the stream of one answer, frame by frame. Keeps state by the vendor's own block indices.
pub trait StreamDecoder: Send {
    /// Decodes one frame and appends the resulting deltas to `out`, in order. [`Delta::Stop`] is
    /// the last delta; later frames are ignored. Its usage has no cost: prices are added by the
    /// caller.
    fn step(&mut self, frame: SseFrame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// Called when the body has ended. Returns an error if the answer is incomplete; a dialect
    /// whose answers end with the body appends [`Delta::Stop`] to `out`.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// Usage reported so far, for a call that fails: some vendors report input tokens in their
    /// first frame. All zero if nothing was reported.
    fn usage_so_far(&self) -> TokenUsage {
        TokenUsage::default()
    }

    /// Number of input tokens that the vendor wrote to its cache: some vendors charge more for
    /// them.
    fn cache_written_tokens(&self) -> u64 {
        0
    }
}

/// The API of one vendor.
pub trait VendorDialect: Send + Sync {
    /// Name of the dialect in pack files and cassettes.
    fn name(&self) -> &'static str;

    /// Headers of every request, in lower case, including the header with the API key. Callers
    /// never log them.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Headers that depend on `params`. They replace headers of the same name from
    /// [`Dialect::headers`]; the operator's own headers replace both.
    fn headers_for(&self, _params: &ModelParams) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Writes the request. `provider` is the operator's name of the provider: only provider data
    /// that came from it is sent back. `model` is the vendor's model name.
    fn encode(
        &self,
        provider: &str,
        model: &str,
        request: &ModelRequest,
        params: &ModelParams,
    ) -> EncodedRequest;

    /// A decoder for the stream of one answer.
    fn decoder(&self) -> Box<dyn StreamDecoder>;

    /// Classifies a response that is not a stream.
    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError;
}

/// Fields that `extra` cannot override: they carry the conversation and make the answer a stream.
const RESERVED_FIELDS: [&str; 5] = ["model", "messages", "input", "contents", "stream"];

/// Sets the operator's extra fields in a request body. A `null` value removes the field: some
/// servers reject fields that others require.
pub(crate) fn apply_extra(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        if RESERVED_FIELDS.contains(&name.as_str()) {
            continue;
        }
        if value.is_null() {
            body.shift_remove(name);
        } else {
            body.insert(name.clone(), value.clone());
        }
    }
}
