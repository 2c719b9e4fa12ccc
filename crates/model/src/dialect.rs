//! The vendors' APIs: [`VendorDialect::encode`] writes a [`ModelRequest`] as a vendor's JSON body,
//! and a [`StreamDecoder`] translates the vendor's stream into [`Delta`]s. Pure: no I/O, no clock.
//!
//! ```text
//! ModelRequest ─▶ encode ─▶ body ─▶ (network or cassette) ─▶ events ─▶ step ─▶ Delta
//! ```
//! Each dialect is a folder: `chunk` has the types of the vendor's stream, which tolerate unknown
//! fields; `decode` translates them into deltas; `encode` writes the request. Shared parts:
//! `conversation` (the message history in the form that vendors accept), `error_class` (what
//! vendors' errors mean), `answer_ending` (why an answer ended), `block_order` (blocks in the order of
//! the vendor's indices), `lenient` (JSON values that
//! servers write in several ways).

mod lenient;
mod answer_ending;
mod block_order;
mod conversation;
mod error_class;
pub mod anthropic;
pub mod openai_chat;
pub mod openai_responses;
pub mod gemini;

use std::collections::VecDeque;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use turnwire_event::TokenUsage;

pub use turnwire_dial::SseEvent;

use crate::delta::{Delta, ModelError};
use crate::request::{ModelRequest, ToolSpec};
use lenient::{LenientCount, OptionalStr};

/// Deltas that are decoded and not yet delivered, in order.
pub type DeltaQueue = VecDeque<Delta>;

/// The result of a decoding step.
pub type DecodeResult<T = ()> = Result<T, ModelError>;

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

/// The input of [`VendorDialect::encode`].
#[derive(Clone, Copy, Debug)]
pub struct EncodeInput<'a> {
    /// The operator's name of the provider: only provider data that came from it is sent back.
    pub provider: &'a str,
    /// The vendor's name of the model.
    pub model: &'a str,
    /// The call to encode.
    pub request: &'a ModelRequest,
    /// Parameters that the operator sets for the model.
    pub params: &'a ModelParams,
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
    fn step(&mut self, frame: SseEvent<'_>, out: &mut DeltaQueue) -> DecodeResult;

    /// Called when the body has ended. Returns an error if the answer is incomplete; a dialect
    /// whose answers end with the body appends [`Delta::Stop`] to `out`.
    fn end(&mut self, out: &mut DeltaQueue) -> DecodeResult;

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
    /// [`VendorDialect::headers`]; the operator's own headers replace both.
    fn headers_for(&self, _params: &ModelParams) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Writes the body and path of a request in the vendor's format.
    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest;

    /// A decoder for the stream of one answer.
    fn decoder(&self) -> Box<dyn StreamDecoder>;

    /// Classifies a response that is not a stream.
    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        error_class::classify_response(response)
    }
}

/// Largest accepted response id in bytes. Vendors' ids are below 100.
const RESPONSE_ID_BYTES_MAX: usize = 512;

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

/// Numbers the blocks of an answer, and collects its deltas while a frame is decoded.
#[derive(Debug, Default)]
struct BlockWriter {
    /// Number of the next block.
    next: u32,
    out: DeltaQueue,
}

impl BlockWriter {
    /// Opens the next block and returns its number.
    fn open(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// The header with an API key that most vendors accept.
fn bearer_header(key: Option<&str>) -> Vec<(&'static str, String)> {
    let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
    bearer.into_iter().collect()
}

/// Sets `name` in a request body if there is a value.
fn insert_some(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    body.extend(value.map(|value| (name.to_owned(), value.into())));
}

/// Several texts as the paragraphs of one; `None` if there is no text.
fn joined(texts: &[&str]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The request's tools in the vendor's form; `None` if it has no tools.
fn tool_list(request: &ModelRequest, tool: fn(&ToolSpec) -> Value) -> Option<Vec<Value>> {
    let tools = &request.tools;
    (!tools.is_empty()).then(|| tools.iter().map(tool).collect())
}

/// Reads JSON of a stream; a mistake in it fails the answer.
fn read_json<'a, T: Deserialize<'a>>(json: &'a str) -> DecodeResult<T> {
    serde_json::from_str(json).map_err(|_| ModelError::malformed())
}

/// The delta for a response id; `None` if the id is missing or too long.
fn started(id: OptionalStr<'_>) -> Option<Delta> {
    let id = id.into_non_empty();
    let response_id = id.filter(|id| id.len() <= RESPONSE_ID_BYTES_MAX)?;
    Some(Delta::Started { response_id })
}

/// Token counts without a cost; `total` is the sum unless the vendor counts differently.
fn token_usage(input_tokens: u64, output_tokens: u64, total: Option<LenientCount>) -> TokenUsage {
    let sum = input_tokens.saturating_add(output_tokens);
    TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens: total.map_or(sum, |total| total.0),
        ..TokenUsage::default()
    }
}
