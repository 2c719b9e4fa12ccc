//! The bytes of a chat stream, read strictly: what is not written exactly as the contract says is
//! an error, also where a browser would be kind.
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
use turnwire_wire::pc3::Cursor;

/// The largest block that is waited for: the hard limit of a frame.
const BLOCK_MAX: usize = 16 << 20;

/// A stream that is not written as the contract says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}: {text:?}")]
pub struct Garbled {
    /// What is wrong.
    pub why: &'static str,
    /// Where.
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
    /// What it says.
    pub said: Said,
}

/// What a block says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A frame: its id, its type and its fields.
    Frame(Cursor, String, Map<String, Value>),
    /// Nothing; the line is kept open.
    Pause,
    /// Nothing follows.
    Done,
}

impl Block {
    /// Reads a block; `first` if it is the connection's first.
    pub fn read(text: &str, first: bool) -> Result<Self, Garbled> {
        let lines = text.strip_suffix("\n\n");
        let lines = lines.ok_or_else(|| garbled("a block without its blank line", text))?;
        if text.contains(['\r', '\0', '\u{feff}']) {
            return Err(garbled("a character that ends or spoils a line", text));
        }
        let mut lines: Vec<&str> = lines.split('\n').collect();
        let retry = lines.first().and_then(|line| line.strip_prefix("retry: "));
        match (first, retry) {
            (true, Some(ms)) if ms.bytes().all(|b| b.is_ascii_digit()) && !ms.is_empty() => {
                lines.remove(0);
            }
            (true, _) => return Err(garbled("a stream that does not begin with its retry", text)),
            (false, Some(_)) => return Err(garbled("a retry that is not the first line", text)),
            (false, None) => {}
        }
        let said = match lines[..] {
            [": ka"] => Said::Pause,
            ["data: [DONE]"] => Said::Done,
            [id, event, data] => frame(id, event, data).map_err(|why| garbled(why, text))?,
            _ => return Err(garbled("neither a frame, nor a comment, nor the end", text)),
        };
        Ok(Self {
            text: text.to_owned(),
            said,
        })
    }

    /// The id of a frame.
    pub fn id(&self) -> Option<Cursor> {
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

fn frame(id: &str, event: &str, data: &str) -> Result<Said, &'static str> {
    let id = id.strip_prefix("id: ").ok_or("no id")?;
    let id = Cursor::from_str(id).map_err(|_| "an id that is no cursor")?;
    id.frame.ok_or("an id without the number of its frame")?;
    let event = event.strip_prefix("event: ").ok_or("no event")?;
    let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
    if event.is_empty() || !event.bytes().all(plain) {
        return Err("an event whose type is no word");
    }
    let data = data.strip_prefix("data: ").ok_or("no data")?;
    let data: Map<String, Value> =
        serde_json::from_str(data).map_err(|_| "data that is no JSON object")?;
    if data.get("event_type").and_then(Value::as_str) != Some(event) {
        return Err("an event with two names");
    }
    Ok(Said::Frame(id, event.to_owned(), data))
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
#[derive(Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
    /// Up to where no block ends.
    looked: usize,
    begun: bool,
    done: bool,
}

impl Parser {
    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next block, if it is whole.
    pub fn take(&mut self) -> Result<Option<Block>, Garbled> {
        if self.done && !self.bytes.is_empty() {
            let text = String::from_utf8_lossy(&self.bytes).into_owned();
            return Err(garbled("bytes after the sentinel", text));
        }
        let fresh = &self.bytes[self.looked..];
        let Some(end) = fresh.windows(2).position(|two| two == b"\n\n") else {
            self.looked = self.bytes.len().saturating_sub(1);
            if self.bytes.len() > BLOCK_MAX {
                return Err(garbled("a block without end", ""));
            }
            return Ok(None);
        };
        let end = self.looked + end + 2;
        let block: Vec<u8> = self.bytes.drain(..end).collect();
        self.looked = 0;
        let text = String::from_utf8(block)
            .map_err(|bad| garbled("no UTF-8", String::from_utf8_lossy(bad.as_bytes())))?;
        let block = Block::read(&text, !self.begun)?;
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
