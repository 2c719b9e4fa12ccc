//! The lines of a cassette file: their JSON types, writing and reading. One JSON object per line;
//! unknown fields are rejected.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use turnwire_event::code::LlmErrorClass;

use super::VERSION;
use super::recorded_call::{CallEnding, RecordedCall, RecordedChunk, ResponseHead};
use super::salt::CassetteSalt;
use crate::delta::{ModelError, RetryHint};

/// Longest accepted time: a day, far above any call.
const MS_MAX: u64 = 86_400_000;

/// One line of a cassette file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum CassetteLine<'a> {
    /// The header, the first line of a file.
    Cassette {
        version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        salt: Option<Cow<'a, str>>,
    },
    /// The start of a call.
    Call(CallLine<'a>),
    /// Bytes of the response body.
    Chunk(ChunkLine<'a>),
    /// The end of a call.
    End(EndLine),
}

/// A request as digests, and the head of its response.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallLine<'a> {
    provider: Cow<'a, str>,
    dialect: Cow<'a, str>,
    model: Cow<'a, str>,
    agent: Cow<'a, str>,
    call: u32,
    words_sha256: Cow<'a, str>,
    body_sha256: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// Bytes of the body: as text if they are UTF-8, else as base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChunkLine<'a> {
    ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<Cow<'a, str>>,
}

/// How and when a call ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    ms: u64,
    how: EndKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<LlmErrorClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<RetryKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again_after_ms: Option<u64>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EndKind {
    End,
    Cut,
    Closed,
}

/// Whether a failed call may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RetryKind {
    Never,
    Soon,
    After,
}

/// The header, the first line of a file.
pub(super) fn header(salt: &CassetteSalt) -> Vec<u8> {
    let mut out = Vec::new();
    let line = CassetteLine::Cassette {
        version: VERSION,
        salt: salt.as_written().map(Cow::Borrowed),
    };
    push_line(&mut out, &line);
    out
}

/// The salt of a header line; `None` if the line is not a complete header.
pub(super) fn salt(bytes: &[u8]) -> Option<CassetteSalt> {
    let bytes = bytes.strip_suffix(b"\n")?;
    match serde_json::from_slice(bytes).ok()? {
        CassetteLine::Cassette {
            version: VERSION,
            salt,
        } => CassetteSalt::parse(salt.as_deref()).ok(),
        _ => None,
    }
}

/// All lines of a [`RecordedCall`].
pub(super) fn lines(call: &RecordedCall) -> Vec<u8> {
    let mut out = Vec::new();
    push_line(&mut out, &call_line(call));
    for chunk in &call.chunks {
        push_line(&mut out, &chunk_line(chunk));
    }
    push_line(&mut out, &end_line(call.ended_after, call.ending.clone()));
    out
}

fn push_line(out: &mut Vec<u8>, line: &CassetteLine<'_>) {
    let text = serde_json::to_string(line).expect("lines are plain data");
    // The replacement character usually stands for invalid bytes, so it is escaped.
    let text = text.replace('\u{fffd}', "\\ufffd");
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

fn call_line(call: &RecordedCall) -> CassetteLine<'_> {
    CassetteLine::Call(CallLine {
        provider: Cow::Borrowed(&call.provider),
        dialect: Cow::Borrowed(&call.dialect),
        model: Cow::Borrowed(&call.model),
        agent: Cow::Borrowed(&call.agent),
        call: call.call,
        words_sha256: Cow::Borrowed(&call.words_sha256),
        body_sha256: Cow::Borrowed(&call.body_sha256),
        status: call.answer.map(|head| head.status),
        ms: call.answer.map(|head| millis(head.after)),
        events: call.answer.map(|head| head.events),
        retry_after_ms: call.answer.and_then(|head| head.retry_after).map(millis),
    })
}

fn chunk_line(chunk: &RecordedChunk) -> CassetteLine<'_> {
    let (text, base64) = match std::str::from_utf8(&chunk.bytes) {
        Ok(text) => (Some(Cow::Borrowed(text)), None),
        Err(_) => (None, Some(Cow::Owned(STANDARD.encode(&chunk.bytes)))),
    };
    CassetteLine::Chunk(ChunkLine {
        ms: millis(chunk.after),
        text,
        base64,
    })
}

fn end_line(after: Duration, ending: CallEnding) -> CassetteLine<'static> {
    let (how, error) = match ending {
        CallEnding::End => (EndKind::End, None),
        CallEnding::Cut(error) => (EndKind::Cut, Some(error)),
        CallEnding::Closed => (EndKind::Closed, None),
    };
    let again = error.as_ref().map(|error| match error.retry {
        RetryHint::Never => (RetryKind::Never, None),
        RetryHint::Backoff => (RetryKind::Soon, None),
        RetryHint::After(wait) => (RetryKind::After, Some(millis(wait))),
    });
    CassetteLine::End(EndLine {
        ms: millis(after),
        how,
        class: error.as_ref().map(|error| error.class),
        again: again.map(|(retry, _)| retry),
        again_after_ms: again.and_then(|(_, wait)| wait),
    })
}

/// Whole milliseconds, the resolution of the timers.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A time read from a file, at most [`MS_MAX`].
fn time(ms: u64) -> Duration {
    Duration::from_millis(ms.min(MS_MAX))
}

impl CallLine<'_> {
    /// The [`RecordedCall`] with its [`ResponseHead`].
    pub(super) fn into_call(self, salt: CassetteSalt) -> RecordedCall {
        let head = |status| ResponseHead {
            after: time(self.ms.unwrap_or_default()),
            status,
            retry_after: self.retry_after_ms.map(time),
            events: self.events.unwrap_or(true),
        };
        RecordedCall {
            answer: self.status.map(head),
            provider: self.provider.into_owned(),
            dialect: self.dialect.into_owned(),
            model: self.model.into_owned(),
            agent: self.agent.into_owned(),
            call: self.call,
            salt,
            words_sha256: self.words_sha256.into_owned(),
            body_sha256: self.body_sha256.into_owned(),
            ..RecordedCall::default()
        }
    }
}

impl ChunkLine<'_> {
    pub(super) fn into_chunk(self) -> Result<RecordedChunk, &'static str> {
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => Bytes::from(text.into_owned()),
            (None, Some(coded)) => match STANDARD.decode(&*coded) {
                Ok(bytes) => bytes.into(),
                Err(_) => return Err("`base64` is not base64"),
            },
            (None, None) | (Some(_), Some(_)) => {
                return Err("a chunk has either `text` or `base64`");
            }
        };
        let after = time(self.ms);
        Ok(RecordedChunk { after, bytes })
    }
}

impl EndLine {
    /// When and how the call ended.
    pub(super) fn ending(self) -> Result<(Duration, CallEnding), &'static str> {
        let ending = match (self.how, self.class) {
            (EndKind::End, None) => CallEnding::End,
            (EndKind::Closed, None) => CallEnding::Closed,
            (EndKind::Cut, Some(class)) => {
                let again = match (self.again, self.again_after_ms) {
                    (Some(RetryKind::After), Some(ms)) => RetryHint::After(time(ms)),
                    (Some(RetryKind::Soon | RetryKind::After), _) => RetryHint::Backoff,
                    (Some(RetryKind::Never) | None, _) => RetryHint::Never,
                };
                CallEnding::Cut(ModelError::new(class, again).with_location("recorded"))
            }
            (EndKind::Cut, None) => {
                return Err("a call with `how: cut` has a `class`, such as `transport`");
            }
            (EndKind::End | EndKind::Closed, Some(_)) => {
                return Err("only a call with `how: cut` has a `class`");
            }
        };
        Ok((time(self.ms), ending))
    }
}
