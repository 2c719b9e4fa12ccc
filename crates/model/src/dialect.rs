//! How vendors speak: a request in their words, their frames in ours. Pure: no I/O, no clock.
//!
//! ```text
//! Request ─▶ encode ─▶ body ─▶ (network or cassette) ─▶ frames ─▶ Decoder::step ─▶ Delta
//! ```
//! Each dialect is a folder: `chunk` has the vendor's wire as types that tolerate what they do not
//! know, `normalize` makes our deltas of them, `encode` writes the request. What several of them
//! need stands beside them: `thread` is the conversation as vendors want it, `trouble` says what
//! their errors mean, `loose` reads numbers that are not quite numbers, `lent` strings that may not
//! be there.

pub(crate) mod loose;
pub(crate) mod thread;
pub(crate) mod trouble;
mod lent;
pub mod anthropic;
pub mod openai_chat;
pub mod openai_responses;
pub mod gemini;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_dial::SseEvent;
use turnwire_event::Usage;

use crate::delta::{Delta, ModelError};
use crate::request::Request;

/// One server-sent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its name, where it has one.
    pub event: Option<&'a str>,
    /// Its data, lines joined.
    pub data: &'a str,
}

impl<'a> From<SseEvent<'a>> for Frame<'a> {
    fn from(event: SseEvent<'a>) -> Self {
        let SseEvent { event, data } = event;
        Self { event, data }
    }
}

/// What a model is asked to keep to, where the operator says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// Tokens of one answer, at most.
    pub max_tokens: Option<u32>,
    /// How freely it speaks.
    pub temperature: Option<f64>,
    /// Tokens it may think with; a vendor that thinks by effort is not told.
    pub thinking_tokens: Option<u32>,
    /// How hard it thinks, in the vendor's word.
    pub effort: Option<String>,
    /// Fields put into the request as they are, over those above.
    pub extra: Map<String, Value>,
}

impl Params {
    /// These where they say something, `base` where they do not; extra fields one by one.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
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

/// A request in a vendor's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// What is put behind the base address, with a leading `/`, and with its query.
    pub path: String,
    /// The body.
    pub body: Value,
}

/// What came instead of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The HTTP status.
    pub status: u16,
    /// When to try again, by the headers.
    pub retry_after: Option<Duration>,
    /// The body, or the beginning of it.
    pub body: &'a [u8],
}

/// One answer, frame by frame. Keeps state by the vendor's own indices.
pub trait Decoder: Send {
    /// Takes one frame; what it says goes to `out`, in order. `Delta::Stop` is the last, and frames
    /// after it say nothing. Its usage has no cost: prices are not the vendor's word.
    fn step(&mut self, frame: Frame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// The stream is over. Without its proper end it broke; an end that only the end of the stream
    /// completes goes to `out`.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;

    /// What the vendor has said so far of what the call uses up, for a call that fails: some say
    /// what they read with their first frame. Nothing where it has not said anything.
    fn usage_so_far(&self) -> Usage {
        Usage::default()
    }

    /// Of the tokens read, those the vendor put into its cache: some charge more for them.
    fn cache_written_tokens(&self) -> u64 {
        0
    }
}

/// One vendor's way of speaking.
pub trait Dialect: Send + Sync {
    /// What pack files call it.
    fn name(&self) -> &'static str;

    /// Headers of every request, in lower case; the key's header is among them. Whoever sends them
    /// never logs them.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Headers that depend on what a model is asked to keep to. They take the place of those of
    /// the same name above; the operator's own take the place of both.
    fn headers_for(&self, _params: &Params) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The request. `provider` is the name the operator gave it: of what was said, only that
    /// provider's own kept words go back to it. `model` is the vendor's name of the model.
    fn encode(&self, provider: &str, model: &str, request: &Request, params: &Params) -> Encoded;

    /// What reads the answer to it.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// What an answer that is no stream means.
    fn refused(&self, refused: Refused<'_>) -> ModelError;
}

/// The fields of a request that `extra` may not touch: without them it is not the conversation
/// that was asked for, or its answer is no stream.
const OURS: [&str; 5] = ["model", "messages", "input", "contents", "stream"];

/// Lays the operator's own fields over a request. A field that is `null` is taken out: some
/// servers refuse fields that others want.
pub(crate) fn overlay(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        if OURS.contains(&name.as_str()) {
            continue;
        }
        if value.is_null() {
            body.shift_remove(name);
        } else {
            body.insert(name.clone(), value.clone());
        }
    }
}
