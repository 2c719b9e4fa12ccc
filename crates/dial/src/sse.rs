//! Server-sent events out of the bytes of a response body, which arrive in chunks cut anywhere.
//!
//! ```text
//! bytes ─▶ lines (LF, CRLF or CR) ─▶ fields ─▶ an empty line ends the block ─▶ SseBlock, SseEvent
//! ```
//! [`SseReader`] follows the WHATWG rules for parsing an event stream and reads every byte once.
//! Between two chunks it keeps the incomplete line and the fields of the incomplete block, in
//! buffers that are reused; [`SseLimits`] bounds both. Fields after the last empty line of a stream
//! are discarded. Unlike a browser the reader rejects fields that are not UTF-8.

/// The UTF-8 byte order mark.
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The largest sizes that an [`SseReader`] accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseLimits {
    /// Bytes of one line without its end, comments included.
    pub line_bytes_max: usize,
    /// Bytes that one block retains: its `event`, `id` and `data` and the line being read.
    /// Comments and unknown fields count only while their line is read.
    pub event_bytes_max: usize,
    /// Bytes of the stream in total.
    pub stream_bytes_max: u64,
}

impl SseLimits {
    /// Limits one event to `event_bytes_max`; a line may be as long, and the stream has no limit.
    pub const fn per_event(event_bytes_max: usize) -> Self {
        Self {
            line_bytes_max: event_bytes_max,
            event_bytes_max,
            stream_bytes_max: u64::MAX,
        }
    }
}

/// Why an [`SseReader`] cannot read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line exceeds [`SseLimits::line_bytes_max`].
    #[error("a line is larger than {max_bytes} bytes")]
    LineTooLarge {
        /// The limit that the line exceeds.
        max_bytes: usize,
    },
    /// An event exceeds [`SseLimits::event_bytes_max`].
    #[error("an event is larger than {max_bytes} bytes")]
    EventTooLarge {
        /// The limit that the event exceeds.
        max_bytes: usize,
    },
    /// The stream exceeds [`SseLimits::stream_bytes_max`].
    #[error("the stream is larger than {max_bytes} bytes")]
    StreamTooLarge {
        /// The limit that the stream exceeds.
        max_bytes: u64,
    },
    /// A field is not UTF-8.
    #[error("a field is not UTF-8")]
    Utf8,
}

/// The fields between two empty lines. A block of comments alone has no field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SseBlock<'a> {
    /// The event type; `None` if the field is missing or empty.
    pub event: Option<&'a str>,
    /// The data lines, joined with LF. A browser dispatches no event without one.
    pub data: Option<&'a str>,
    /// The event id of this block. An id that contains NUL is ignored.
    pub id: Option<&'a str>,
    /// The reconnection time in milliseconds. A value other than ASCII digits is ignored.
    pub retry_ms: Option<u64>,
}

/// A block with data, as far as a reader needs it that never resumes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event type; `None` if the field is missing or empty.
    pub event: Option<&'a str>,
    /// The data lines, joined with LF.
    pub data: &'a str,
}

/// Parses one stream. After an [`SseError`] the rest of the stream cannot be parsed.
#[derive(Debug)]
pub struct SseReader {
    limits: SseLimits,
    /// Bytes consumed so far.
    stream_bytes: u64,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    fields: BlockFields,
    /// Bytes of the byte order mark that have arrived; `None` after the start of the stream.
    bom: Option<usize>,
    /// The last line ended with CR: an LF that follows belongs to the same line end.
    after_cr: bool,
    /// `fields` belong to a block that has been returned.
    returned: bool,
}

/// The fields of the block being read.
#[derive(Debug, Default)]
struct BlockFields {
    event: Vec<u8>,
    /// An LF follows each data line; empty if the block has none.
    data: Vec<u8>,
    id: Vec<u8>,
    has_id: bool,
    retry_ms: Option<u64>,
}

impl SseReader {
    /// A reader at the start of a stream.
    pub fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            stream_bytes: 0,
            line: Vec::new(),
            fields: BlockFields::default(),
            bom: Some(0),
            after_cr: false,
            returned: false,
        }
    }

    /// Consumes the front of `input` up to the end of the next block, with or without data.
    /// Returns `None` when `input` is used up before; the rest of `input` is for the next call.
    pub fn next_block(&mut self, input: &mut &[u8]) -> Result<Option<SseBlock<'_>>, SseError> {
        match self.read_block(input)? {
            true => self.block().map(Some),
            false => Ok(None),
        }
    }

    /// Like [`SseReader::next_block`] for blocks with data; the others are skipped.
    pub fn next_event(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent<'_>>, SseError> {
        while self.read_block(input)? {
            if !self.fields.data.is_empty() {
                return self.event().map(Some);
            }
        }
        Ok(None)
    }

    /// Reads lines until an empty one; false when `input` is used up before.
    fn read_block(&mut self, input: &mut &[u8]) -> Result<bool, SseError> {
        if std::mem::take(&mut self.returned) {
            self.fields.clear();
        }
        let available = input.len();
        let ended = self.read_lines(input);
        self.stream_bytes += (available - input.len()) as u64;
        let max_bytes = self.limits.stream_bytes_max;
        if self.stream_bytes > max_bytes {
            return Err(SseError::StreamTooLarge { max_bytes });
        }
        ended
    }

    fn read_lines(&mut self, input: &mut &[u8]) -> Result<bool, SseError> {
        self.skip_bom(input);
        while !input.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(tail) = input.strip_prefix(b"\n")
            {
                *input = tail;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                self.check_room(input.len())?;
                self.line.extend_from_slice(input);
                *input = &[];
                break;
            };
            let (line_end, tail) = input.split_at(end);
            self.after_cr = tail.first() == Some(&b'\r');
            *input = tail.get(1..).unwrap_or_default();
            self.check_room(line_end.len())?;
            if self.end_line(line_end) {
                self.returned = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends the current line with `line_end`. True if the line is empty.
    fn end_line(&mut self, line_end: &[u8]) -> bool {
        if self.line.is_empty() {
            self.fields.set(line_end);
            return line_end.is_empty();
        }
        self.line.extend_from_slice(line_end);
        self.fields.set(&self.line);
        self.line.clear();
        false
    }

    fn block(&self) -> Result<SseBlock<'_>, SseError> {
        let fields = &self.fields;
        Ok(SseBlock {
            event: fields.event()?,
            data: match fields.data.is_empty() {
                true => None,
                false => Some(fields.data()?),
            },
            id: match fields.has_id {
                true => Some(utf8(&fields.id)?),
                false => None,
            },
            retry_ms: fields.retry_ms,
        })
    }

    fn event(&self) -> Result<SseEvent<'_>, SseError> {
        Ok(SseEvent {
            event: self.fields.event()?,
            data: self.fields.data()?,
        })
    }

    /// Fails if `bytes` more of the current line exceed a limit.
    fn check_room(&self, bytes: usize) -> Result<(), SseError> {
        let line_bytes = self.line.len() + bytes;
        if line_bytes + self.fields.len() > self.limits.event_bytes_max {
            let max_bytes = self.limits.event_bytes_max;
            return Err(SseError::EventTooLarge { max_bytes });
        }
        if line_bytes > self.limits.line_bytes_max {
            let max_bytes = self.limits.line_bytes_max;
            return Err(SseError::LineTooLarge { max_bytes });
        }
        Ok(())
    }

    /// Skips a byte order mark at the start of the stream. An incomplete one is part of the first
    /// line.
    fn skip_bom(&mut self, input: &mut &[u8]) {
        while let (Some(arrived), Some((&first, tail))) = (self.bom, input.split_first()) {
            if first != BOM[arrived] {
                self.line.extend_from_slice(&BOM[..arrived]);
                self.bom = None;
            } else {
                *input = tail;
                self.bom = (arrived + 1 < BOM.len()).then_some(arrived + 1);
            }
        }
    }
}

impl BlockFields {
    /// Applies one line. Comments, unknown fields and the empty line change nothing.
    fn set(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(value);
                self.has_id = true;
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                self.retry_ms = digits.parse().ok().or(self.retry_ms);
            }
            _ => {}
        }
    }

    fn event(&self) -> Result<Option<&str>, SseError> {
        let event = utf8(&self.event)?;
        Ok((!event.is_empty()).then_some(event))
    }

    /// The data lines without the last LF.
    fn data(&self) -> Result<&str, SseError> {
        utf8(self.data.strip_suffix(b"\n").unwrap_or(&self.data))
    }

    fn len(&self) -> usize {
        self.event.len() + self.data.len() + self.id.len()
    }

    fn clear(&mut self) {
        self.event.clear();
        self.data.clear();
        self.id.clear();
        self.has_id = false;
        self.retry_ms = None;
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, SseError> {
    std::str::from_utf8(bytes).map_err(|_| SseError::Utf8)
}

#[cfg(test)]
mod tests;
