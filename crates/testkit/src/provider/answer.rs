//! One scripted answer: a message, raw bytes or an error response, with the faults to inject.
//! Faults may be combined.

use std::time::Duration;

use super::error::ProviderError;
use super::message::ModelMessage;
use super::responses::ErrorForm;

#[derive(Clone, Debug)]
pub(crate) enum AnswerKind {
    /// A message in the caller's format.
    Message(ModelMessage),
    /// These bytes as an event stream.
    Raw(Vec<u8>),
    /// A status and the provider's own error body.
    Refusal {
        trouble: ProviderError,
        wait: Option<Duration>,
    },
    /// A status and an HTML body, as a proxy sends it.
    Page { status: u16, body: String },
}

/// A change at frame `at`: a frame is inserted before it, or it is damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameEdit {
    pub(crate) at: usize,
    pub(crate) kind: EditKind,
}

/// What a [`FrameEdit`] does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EditKind {
    /// Sends an error event and ends the stream.
    Error(ProviderError, ErrorForm),
    /// Removes the second half of the frame's JSON.
    Malformed,
    /// Inserts an event of an unknown type.
    Unknown,
    /// Inserts an event of an unknown type with this many bytes of data.
    Huge(usize),
}

/// The line ending of a server-sent event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    Lf,
    CrLf,
    /// Rare, but allowed by the standard.
    Cr,
}

impl LineEnding {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// Where the connection is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CutPoint {
    /// After this many bytes of the body.
    Bytes(usize),
    /// In the middle of this frame.
    Frame(usize),
    /// After the first byte of the first multi-byte character.
    Character,
}

/// The faults of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerFaults {
    pub(crate) head_delay: Duration,
    pub(crate) head_stall: bool,
    pub(crate) frame_delay: Duration,
    pub(crate) stall_at: Option<usize>,
    pub(crate) cut: Option<CutPoint>,
    pub(crate) reset: bool,
    pub(crate) endless: bool,
    pub(crate) no_end: bool,
    pub(crate) edits: Vec<FrameEdit>,
    pub(crate) unknown_fields: bool,
    pub(crate) line_end: Option<LineEnding>,
    pub(crate) bom: bool,
    pub(crate) comments: bool,
    pub(crate) drip: Option<Duration>,
}

/// A scripted answer with its headers and faults.
#[derive(Clone, Debug)]
pub struct ProviderAnswer {
    pub(crate) kind: AnswerKind,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) faults: AnswerFaults,
}

impl From<ModelMessage> for ProviderAnswer {
    fn from(message: ModelMessage) -> Self {
        Self::message(message)
    }
}

impl ProviderAnswer {
    /// A message in the format of the request.
    pub fn message(message: ModelMessage) -> Self {
        Self::of(AnswerKind::Message(message))
    }

    /// A text message with one delta per piece.
    pub fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::message(ModelMessage::text(pieces))
    }

    /// Raw bytes of an event stream, for example a recorded one. Frames are counted by their
    /// blank lines; only faults that need no knowledge of the frames apply.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(AnswerKind::Raw(bytes.into()))
    }

    /// The provider's own error response.
    pub fn refuse(trouble: ProviderError) -> Self {
        Self::of(AnswerKind::Refusal {
            trouble,
            wait: None,
        })
    }

    /// A rate limit error with the time to wait: Anthropic in `retry-after`,
    /// OpenAI in `retry-after-ms` and `retry-after`, Google in the body.
    pub fn rate_limited(wait: Duration) -> Self {
        Self::of(AnswerKind::Refusal {
            trouble: ProviderError::RateLimited,
            wait: Some(wait),
        })
    }

    /// An HTML error page, as a proxy sends it.
    pub fn page(status: u16, body: &str) -> Self {
        Self::of(AnswerKind::Page {
            status,
            body: body.to_owned(),
        })
    }

    fn of(kind: AnswerKind) -> Self {
        Self {
            kind,
            headers: Vec::new(),
            faults: AnswerFaults::default(),
        }
    }

    fn edit(mut self, at: usize, kind: EditKind) -> Self {
        self.faults.edits.push(FrameEdit { at, kind });
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Delays the response head.
    #[must_use]
    pub fn head_after(mut self, delay: Duration) -> Self {
        self.faults.head_delay = delay;
        self
    }

    /// Sends nothing, not even the head, until [`release`](super::FakeProvider::release).
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.faults.head_stall = true;
        self
    }

    /// Pauses between two frames.
    #[must_use]
    pub fn frames_every(mut self, pause: Duration) -> Self {
        self.faults.frame_delay = pause;
        self
    }

    /// Stalls before this frame until [`release`](super::FakeProvider::release), which
    /// may never come. Frames count from zero, inserted ones included.
    #[must_use]
    pub fn stall_at(mut self, frame: usize) -> Self {
        self.faults.stall_at = Some(frame);
        self
    }

    /// Ends the connection after `bytes` bytes of the body, without an end of the HTTP message.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.faults.cut = Some(CutPoint::Bytes(bytes));
        self
    }

    /// Ends the connection in the middle of this frame.
    #[must_use]
    pub fn cut_inside(mut self, frame: usize) -> Self {
        self.faults.cut = Some(CutPoint::Frame(frame));
        self
    }

    /// Ends the connection inside the first multi-byte character.
    #[must_use]
    pub fn cut_inside_character(mut self) -> Self {
        self.faults.cut = Some(CutPoint::Character);
        self
    }

    /// Makes a cut a TCP reset.
    #[must_use]
    pub fn with_reset(mut self) -> Self {
        self.faults.reset = true;
        self
    }

    /// Ends the HTTP message properly but not the stream: no `message_stop`, no
    /// `finish_reason` and `[DONE]`, no `response.completed`, no `finishReason`.
    #[must_use]
    pub fn without_end(mut self) -> Self {
        self.faults.no_end = true;
        self
    }

    /// Repeats the first text delta as fast as the socket accepts it until the caller leaves.
    /// Responses repeats its sequence number with it.
    #[must_use]
    pub fn endless(mut self) -> Self {
        self.faults.endless = true;
        self
    }

    /// Sends the provider's own error event before this frame, and ends the stream.
    #[must_use]
    pub fn error_at(self, frame: usize, trouble: ProviderError) -> Self {
        self.edit(frame, EditKind::Error(trouble, ErrorForm::Event))
    }

    /// Sends an error before this frame in one of the forms of Responses.
    #[must_use]
    pub fn error_as(self, frame: usize, trouble: ProviderError, form: ErrorForm) -> Self {
        self.edit(frame, EditKind::Error(trouble, form))
    }

    /// Truncates the JSON of this frame.
    #[must_use]
    pub fn malformed_at(self, frame: usize) -> Self {
        self.edit(frame, EditKind::Malformed)
    }

    /// Inserts an event of an unknown type before this frame.
    #[must_use]
    pub fn unknown_at(self, frame: usize) -> Self {
        self.edit(frame, EditKind::Unknown)
    }

    /// Inserts an event of an unknown type with `bytes` bytes before this frame.
    #[must_use]
    pub fn huge_at(self, frame: usize, bytes: usize) -> Self {
        self.edit(frame, EditKind::Huge(bytes))
    }

    /// Adds unknown fields to every frame, at several depths.
    #[must_use]
    pub fn with_unknown_fields(mut self) -> Self {
        self.faults.unknown_fields = true;
        self
    }

    /// Replaces the provider's line ending.
    #[must_use]
    pub fn line_end(mut self, end: LineEnding) -> Self {
        self.faults.line_end = Some(end);
        self
    }

    /// Starts the stream with a byte order mark.
    #[must_use]
    pub fn with_bom(mut self) -> Self {
        self.faults.bom = true;
        self
    }

    /// Adds comment lines before, between and inside the frames.
    #[must_use]
    pub fn with_comments(mut self) -> Self {
        self.faults.comments = true;
        self
    }

    /// Sends every byte as its own chunk and packet.
    #[must_use]
    pub fn byte_by_byte(self) -> Self {
        self.drip(Duration::ZERO)
    }

    /// Sends one byte per `interval`.
    #[must_use]
    pub fn drip(mut self, interval: Duration) -> Self {
        self.faults.drip = Some(interval);
        self
    }
}
