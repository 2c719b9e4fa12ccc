//! The bytes of a chat stream, read strictly: a block that is not written exactly as the contract
//! says is an error, also where a browser would accept it. [`SseReader`] finds the end of a block
//! and its fields; the block must have the very bytes that these fields are written with.
//!
//! ```text
//! retry: 1234              on the first block, and there alone
//! id: evt_…-0              a frame: three lines in this order
//! event: text
//! data: {"event_type":"text",…}
//!
//! : ka                     a comment that keeps the line open
//!
//! data: [DONE]             the sentinel; not one byte after it
//!
//! ```

use std::str::FromStr as _;

use serde_json::{Map, Value};
use turnwire_dial::{SseBlock, SseError, SseLimits, SseReader};
use turnwire_wire::pc3::FrameCursor;

/// The largest block that is read: the hard limit of a frame.
const LIMITS: SseLimits = SseLimits::per_event(16 << 20);

/// A stream that is not written as the contract says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}: {text:?}")]
pub struct Garbled {
    pub why: &'static str,
    pub text: String,
}

fn garbled(why: &'static str, text: impl Into<String>) -> Garbled {
    Garbled {
        why,
        text: text.into(),
    }
}

/// One block, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// As it came, with its blank line.
    pub text: String,
    pub said: Said,
}

/// What a block says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A frame: its id, its type and its fields.
    Frame(FrameCursor, String, Map<String, Value>),
    /// Nothing; the line is kept open.
    Pause,
    Done,
}

impl Block {
    /// Reads a block; `first` if it is the connection's first.
    pub fn read(text: &str, first: bool) -> Result<Self, Garbled> {
        let mut reader = SseReader::new(LIMITS);
        let mut input = text.as_bytes();
        let fields = reader.next_block(&mut input);
        let fields = fields.map_err(|error| unreadable(error, text))?;
        let fields = fields.filter(|_| input.is_empty());
        let fields = fields.ok_or_else(|| garbled("a block without its blank line", text))?;
        Self::from_fields(text, &fields, first)
    }

    fn from_fields(text: &str, fields: &SseBlock<'_>, first: bool) -> Result<Self, Garbled> {
        if text.contains(['\r', '\0', '\u{feff}']) {
            return Err(garbled("a character that ends or spoils a line", text));
        }
        let lines = match (first, fields.retry_ms) {
            (true, Some(ms)) => text.strip_prefix(&format!("retry: {ms}\n")),
            (true, None) => None,
            (false, None) => Some(text),
            (false, Some(_)) => return Err(garbled("a retry that is not the first line", text)),
        };
        let lines =
            lines.ok_or_else(|| garbled("a stream that does not begin with its retry", text))?;
        let said = match lines {
            ": ka\n\n" => Said::Pause,
            "data: [DONE]\n\n" => Said::Done,
            lines => frame(fields, lines).map_err(|why| garbled(why, text))?,
        };
        Ok(Self {
            text: text.to_owned(),
            said,
        })
    }

    /// The id of a frame.
    pub fn id(&self) -> Option<FrameCursor> {
        match &self.said {
            Said::Frame(id, ..) => Some(*id),
            Said::Pause | Said::Done => None,
        }
    }

    /// The type of a frame; empty for what is none.
    pub fn event(&self) -> &str {
        match &self.said {
            Said::Frame(_, event, _) => event,
            Said::Pause | Said::Done => "",
        }
    }

    /// A field of a frame; null if it is not there.
    pub fn field(&self, name: &str) -> &Value {
        match &self.said {
            Said::Frame(_, _, data) => data.get(name).unwrap_or(&Value::Null),
            Said::Pause | Said::Done => &Value::Null,
        }
    }

    /// Whether it is a frame that ends the turn.
    pub fn is_terminal(&self) -> bool {
        match self.event() {
            "completed" | "cancelled" => true,
            "error" => self.field("is_final") != &Value::Bool(false),
            _ => false,
        }
    }

    /// The block without the `retry:` line that a first one has.
    pub fn frame_text(&self) -> &str {
        match self.text.strip_prefix("retry: ") {
            None => &self.text,
            Some(rest) => rest.split_once('\n').map_or(rest, |(_, block)| block),
        }
    }
}

/// The frame with these `fields`, which must be written as `lines`.
fn frame(fields: &SseBlock<'_>, lines: &str) -> Result<Said, &'static str> {
    let id = fields.id.ok_or("no id")?;
    let event = fields.event.ok_or("no event")?;
    let data = fields.data.ok_or("no data")?;
    if lines != format!("id: {id}\nevent: {event}\ndata: {data}\n\n") {
        return Err("not the three lines of a frame");
    }
    let id = FrameCursor::from_str(id).map_err(|_| "an id that is no cursor")?;
    id.frame.ok_or("an id without the number of its frame")?;
    let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
    if !event.bytes().all(plain) {
        return Err("an event whose type is no word");
    }
    let data: Map<String, Value> =
        serde_json::from_str(data).map_err(|_| "data that is no JSON object")?;
    if data.get("event_type").and_then(Value::as_str) != Some(event) {
        return Err("an event with two names");
    }
    Ok(Said::Frame(id, event.to_owned(), data))
}

fn unreadable(error: SseError, text: &str) -> Garbled {
    match error {
        SseError::Utf8 => garbled("no UTF-8", text),
        SseError::LineTooLarge { .. }
        | SseError::EventTooLarge { .. }
        | SseError::StreamTooLarge { .. } => garbled("a block without end", ""),
    }
}

/// Whether a piece of a block that was cut could have become one.
pub fn begins(tail: &[u8], first: bool) -> bool {
    const STARTS: [&[u8]; 3] = [b"id: evt_", b": ka\n\n", b"data: [DONE]\n\n"];
    let starts = |rest: &[u8]| {
        STARTS.iter().any(|start| {
            let both = start.len().min(rest.len());
            rest[..both] == start[..both] && (rest.len() < start.len() || start.starts_with(b"id"))
        })
    };
    if !first {
        return starts(tail);
    }
    match tail.iter().position(|&b| b == b'\n') {
        Some(end) => tail.starts_with(b"retry: ") && starts(&tail[end + 1..]),
        None => b"retry: ".starts_with(tail) || tail.starts_with(b"retry: "),
    }
}

/// Takes bytes as they come, in pieces that end anywhere, and gives blocks.
#[derive(Debug)]
pub struct Parser {
    reader: SseReader,
    /// From the start of the block that is being read.
    bytes: Vec<u8>,
    /// How many of `bytes` the reader has consumed.
    consumed: usize,
    begun: bool,
    done: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            reader: SseReader::new(LIMITS),
            bytes: Vec::new(),
            consumed: 0,
            begun: false,
            done: false,
        }
    }
}

impl Parser {
    /// Appends received bytes, from which [`take`](Self::take) reads blocks.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next block, if it is whole.
    pub fn take(&mut self) -> Result<Option<Block>, Garbled> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.done && !self.bytes.is_empty() {
            return Err(garbled("bytes after the sentinel", text(&self.bytes)));
        }
        let mut input = &self.bytes[self.consumed..];
        let fields = self.reader.next_block(&mut input);
        self.consumed = self.bytes.len() - input.len();
        let bytes = &self.bytes[..self.consumed];
        let Some(fields) = fields.map_err(|error| unreadable(error, &text(bytes)))? else {
            return Ok(None);
        };
        let utf8 = std::str::from_utf8(bytes);
        let utf8 = utf8.map_err(|_| unreadable(SseError::Utf8, &text(bytes)))?;
        let block = Block::from_fields(utf8, &fields, !self.begun)?;
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
        self.begun = true;
        self.done = block.said == Said::Done;
        Ok(Some(block))
    }

    /// Whether the sentinel has come.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// What has come of a block that is not whole.
    pub fn tail(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
