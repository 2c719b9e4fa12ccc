//! The lines of a cassette file, as they are written and read.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use turnwire_event::code::LlmErrorClass;

use super::VERSION;
use super::call::{Call, Chunk, Ending, Head};
use super::salt::Salt;
use crate::delta::{Again, ModelError};

/// The longest time that is read: a day, far above any call.
const MS_MAX: u64 = 86_400_000;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line<'a> {
    /// The first line of a file.
    Cassette {
        version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        salt: Option<Cow<'a, str>>,
    },
    /// A call begins.
    Call(Opening<'a>),
    /// Bytes came.
    Chunk(Piece<'a>),
    /// The call is over.
    End(Closing),
}

/// What was asked, and the head of the answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening<'a> {
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

/// Bytes: text where they are text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Piece<'a> {
    ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<Cow<'a, str>>,
}

/// How and when it was over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Closing {
    ms: u64,
    how: How,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<LlmErrorClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<Retry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again_after_ms: Option<u64>,
}

/// How a call was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    End,
    Cut,
    Closed,
}

/// Whether it may go well another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Retry {
    Never,
    Soon,
    After,
}

/// The first line of a file.
pub(super) fn header(salt: &Salt) -> Vec<u8> {
    let mut out = Vec::new();
    let line = Line::Cassette {
        version: VERSION,
        salt: salt.written().map(Cow::Borrowed),
    };
    put(&mut out, &line);
    out
}

/// The salt that a whole line says, if it is the first of a file.
pub(super) fn salt(written: &[u8]) -> Option<Salt> {
    let written = written.strip_suffix(b"\n")?;
    match serde_json::from_slice(written).ok()? {
        Line::Cassette {
            version: VERSION,
            salt: Some(salt),
        } => Salt::read(&salt).ok(),
        Line::Cassette {
            version: VERSION,
            salt: None,
        } => Some(Salt::default()),
        Line::Cassette { .. } | Line::Call(_) | Line::Chunk(_) | Line::End(_) => None,
    }
}

/// All lines of a call.
pub(super) fn lines(call: &Call) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, &head(call));
    for chunk in &call.chunks {
        put(&mut out, &said(chunk));
    }
    put(&mut out, &end(call.ended_after, call.ending));
    out
}

fn put(out: &mut Vec<u8>, line: &Line<'_>) {
    let text = serde_json::to_string(line).expect("lines are plain data");
    // Whoever reads the file takes this character for bytes that were no text.
    let text = text.replace('\u{fffd}', "\\ufffd");
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

fn head(call: &Call) -> Line<'_> {
    Line::Call(Opening {
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

fn said(chunk: &Chunk) -> Line<'_> {
    let (text, base64) = match std::str::from_utf8(&chunk.bytes) {
        Ok(text) => (Some(Cow::Borrowed(text)), None),
        Err(_) => (None, Some(Cow::Owned(STANDARD.encode(&chunk.bytes)))),
    };
    Line::Chunk(Piece {
        ms: millis(chunk.after),
        text,
        base64,
    })
}

fn end(after: Duration, ending: Ending) -> Line<'static> {
    let (how, error) = match ending {
        Ending::End => (How::End, None),
        Ending::Cut(error) => (How::Cut, Some(error)),
        Ending::Closed => (How::Closed, None),
    };
    let again = error.map(|error| match error.again {
        Again::Never => (Retry::Never, None),
        Again::Soon => (Retry::Soon, None),
        Again::After(wait) => (Retry::After, Some(millis(wait))),
    });
    Line::End(Closing {
        ms: millis(after),
        how,
        class: error.map(|error| error.class),
        again: again.map(|(retry, _)| retry),
        again_after_ms: again.and_then(|(_, wait)| wait),
    })
}

/// Whole milliseconds: timers are no finer.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A time that is written; what is longer than a day is a day.
fn time(ms: u64) -> Duration {
    Duration::from_millis(ms.min(MS_MAX))
}

impl Opening<'_> {
    /// The call, as far as its head.
    pub(super) fn call(self, salt: Salt) -> Call {
        let head = |status| Head {
            after: time(self.ms.unwrap_or_default()),
            status,
            retry_after: self.retry_after_ms.map(time),
            events: self.events.unwrap_or(true),
        };
        Call {
            answer: self.status.map(head),
            provider: self.provider.into_owned(),
            dialect: self.dialect.into_owned(),
            model: self.model.into_owned(),
            agent: self.agent.into_owned(),
            call: self.call,
            salt,
            words_sha256: self.words_sha256.into_owned(),
            body_sha256: self.body_sha256.into_owned(),
            chunks: Vec::new(),
            ended_after: Duration::ZERO,
            ending: Ending::Closed,
        }
    }
}

impl Piece<'_> {
    /// The chunk.
    pub(super) fn chunk(self) -> Result<Chunk, &'static str> {
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => Bytes::from(text.into_owned()),
            (None, Some(coded)) => match STANDARD.decode(&*coded) {
                Ok(bytes) => bytes.into(),
                Err(_) => return Err("`base64` is not base64"),
            },
            (None, None) | (Some(_), Some(_)) => {
                return Err("a chunk has `text` or `base64`, one of them");
            }
        };
        let after = time(self.ms);
        Ok(Chunk { after, bytes })
    }
}

impl Closing {
    /// When it was over.
    pub(super) fn after(self) -> Duration {
        time(self.ms)
    }

    /// How.
    pub(super) fn ending(self) -> Result<Ending, &'static str> {
        match (self.how, self.class) {
            (How::End, None) => Ok(Ending::End),
            (How::Closed, None) => Ok(Ending::Closed),
            (How::Cut, Some(class)) => {
                let again = match (self.again, self.again_after_ms) {
                    (Some(Retry::After), Some(ms)) => Again::After(time(ms)),
                    (Some(Retry::Soon | Retry::After), _) => Again::Soon,
                    (Some(Retry::Never) | None, _) => Again::Never,
                };
                Ok(Ending::Cut(ModelError::new(class, again).at("recorded")))
            }
            (How::Cut, None) => Err("a call that was cut has a `class`, such as `transport`"),
            (How::End | How::Closed, Some(_)) => Err("only a call that was cut has a `class`"),
        }
    }
}
