//! Server-sent events out of bytes that come in any pieces.
//!
//! ```text
//! bytes ─▶ lines (LF, CRLF or CR) ─▶ fields ─▶ an empty line ends the frame ─▶ Frame
//! ```
//! Every byte is looked at once. The only things kept between two pieces are the line that is not
//! whole yet and the fields of the frame that is not whole yet; both live in buffers that are used
//! again, and together they are never larger than one frame may be. What stands behind the last
//! empty line when the stream ends is no frame.

use crate::dialect::Frame;

/// Bytes of one frame, unless someone says otherwise: an answer of a hundred thousand tokens in
/// one frame still fits, and a sender that never ends one does not fill the memory.
pub const FRAME_BYTES_MAX: usize = 4 * 1_048_576;

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Bytes that are no stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A frame has more bytes than it may.
    #[error("a frame is larger than {max_bytes} bytes")]
    TooLarge {
        /// What it may have.
        max_bytes: usize,
    },
    /// A frame is not UTF-8.
    #[error("a frame is not UTF-8")]
    Utf8,
}

/// Reads one stream. After an error there is nothing sensible to read any more.
#[derive(Debug)]
pub struct Sse {
    max_bytes: usize,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    event: Vec<u8>,
    /// Data lines joined, a line feed behind each.
    data: Vec<u8>,
    /// Bytes of the mark that have come; `None` once the stream's beginning is past.
    mark: Option<usize>,
    /// The last line ended with a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// What is in `event` and `data` was given out.
    given: bool,
}

impl Default for Sse {
    fn default() -> Self {
        Self::new(FRAME_BYTES_MAX)
    }
}

impl Sse {
    /// A reader of a new stream whose frames have at most `max_bytes` bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
            mark: Some(0),
            after_cr: false,
            given: false,
        }
    }

    /// Takes bytes off the front of `input` until a frame is whole; none when `input` is used up
    /// and the frame is not whole yet. What is left of `input` is for the next call.
    pub fn pull(&mut self, input: &mut &[u8]) -> Result<Option<Frame<'_>>, SseError> {
        if self.given {
            self.forget();
        }
        self.skip_mark(input);
        while !input.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(rest) = input.strip_prefix(b"\n")
            {
                *input = rest;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                self.check(input.len())?;
                self.line.extend_from_slice(input);
                *input = &[];
                break;
            };
            let (line, rest) = input.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            self.check(line.len())?;
            if self.take_line(line) && self.whole() {
                return self.frame().map(Some);
            }
        }
        Ok(None)
    }

    /// Takes a whole line, of which `end` is what came last. True if it is empty.
    fn take_line(&mut self, end: &[u8]) -> bool {
        if self.line.is_empty() {
            field(end, &mut self.event, &mut self.data);
            return end.is_empty();
        }
        self.line.extend_from_slice(end);
        field(&self.line, &mut self.event, &mut self.data);
        self.line.clear();
        false
    }

    /// An empty line has come: whether there is a frame before it. Without data there is none.
    fn whole(&mut self) -> bool {
        self.given = true;
        let whole = !self.data.is_empty();
        if !whole {
            self.forget();
        }
        whole
    }

    fn frame(&self) -> Result<Frame<'_>, SseError> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| SseError::Utf8);
        let data = self.data.strip_suffix(b"\n").unwrap_or(&self.data);
        let event = text(&self.event)?;
        Ok(Frame {
            event: (!event.is_empty()).then_some(event),
            data: text(data)?,
        })
    }

    fn forget(&mut self) {
        self.event.clear();
        self.data.clear();
        self.given = false;
    }

    /// Whether `more` bytes still fit into the frame.
    fn check(&self, more: usize) -> Result<(), SseError> {
        let held = self.line.len() + self.event.len() + self.data.len();
        if held + more > self.max_bytes {
            let max_bytes = self.max_bytes;
            return Err(SseError::TooLarge { max_bytes });
        }
        Ok(())
    }

    /// A byte order mark at the beginning of the stream says nothing. One that was only begun is
    /// part of the first line.
    fn skip_mark(&mut self, input: &mut &[u8]) {
        while let (Some(seen), Some((&first, rest))) = (self.mark, input.split_first()) {
            if first != MARK[seen] {
                self.line.extend_from_slice(&MARK[..seen]);
                self.mark = None;
            } else {
                *input = rest;
                self.mark = (seen + 1 < MARK.len()).then_some(seen + 1);
            }
        }
    }
}

/// Takes what a line says. Comments, `id`, `retry` and unknown fields say nothing here.
fn field(line: &[u8], event: &mut Vec<u8>, data: &mut Vec<u8>) {
    let (name, value) = match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, &[][..]),
    };
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match name {
        b"data" => {
            data.extend_from_slice(value);
            data.push(b'\n');
        }
        b"event" => {
            event.clear();
            event.extend_from_slice(value);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
