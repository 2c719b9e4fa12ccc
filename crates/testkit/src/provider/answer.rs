//! One answer of a script: a message, bytes as they are, or a refusal, and everything that goes
//! wrong with it. Faults may be combined.

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
    /// A status and a body that no provider would send.
    Page { status: u16, body: String },
}

/// A frame that is put before the `at`th of the answer, or spoils it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameEdit {
    pub(crate) at: usize,
    pub(crate) what: EditKind,
}

/// What an edit does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EditKind {
    /// The stream fails here and ends.
    Error(ProviderError, ErrorForm),
    /// This frame's JSON lacks its second half.
    Malformed,
    /// An event that no client knows.
    Unknown,
    /// An event that no client knows, with so many bytes of data.
    Huge(usize),
}

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    Lf,
    CrLf,
    /// As the standard also allows.
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
    /// After so many bytes of the body.
    Bytes(usize),
    /// In the middle of this frame.
    Frame(usize),
    /// After the first byte of the first character that has several.
    Character,
}

/// All that goes wrong with an answer.
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

/// One answer.
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
    /// A message in the format of whoever asks.
    pub fn message(message: ModelMessage) -> Self {
        Self::of(AnswerKind::Message(message))
    }

    /// Text in pieces.
    pub fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::message(ModelMessage::text(pieces))
    }

    /// These bytes as an event stream: a recorded one, for example. Frames are counted by their
    /// empty lines; only faults that need no understanding of the frames apply.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(AnswerKind::Raw(bytes.into()))
    }

    /// The provider's own refusal.
    pub fn refuse(trouble: ProviderError) -> Self {
        Self::of(AnswerKind::Refusal {
            trouble,
            wait: None,
        })
    }

    /// A refusal by the limit of requests that says how long to wait: Anthropic in `retry-after`,
    /// OpenAI in `retry-after-ms` and `retry-after`, Google in the body.
    pub fn rate_limited(wait: Duration) -> Self {
        Self::of(AnswerKind::Refusal {
            trouble: ProviderError::RateLimited,
            wait: Some(wait),
        })
    }

    /// A status with a page that no provider would send, as a proxy in between does.
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

    fn edit(mut self, at: usize, what: EditKind) -> Self {
        self.faults.edits.push(FrameEdit { at, what });
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The head comes only after a while.
    #[must_use]
    pub fn head_after(mut self, delay: Duration) -> Self {
        self.faults.head_delay = delay;
        self
    }

    /// Nothing comes at all until [`release`](super::FakeProvider::release), not even the head.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.faults.head_stall = true;
        self
    }

    /// A pause between two frames.
    #[must_use]
    pub fn frames_every(mut self, pause: Duration) -> Self {
        self.faults.frame_delay = pause;
        self
    }

    /// Nothing comes from this frame on until [`release`](super::FakeProvider::release), which
    /// may never come. Frames count from zero, inserted ones with them.
    #[must_use]
    pub fn stall_at(mut self, frame: usize) -> Self {
        self.faults.stall_at = Some(frame);
        self
    }

    /// The connection ends after so many bytes of the body, without an end of the HTTP message.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.faults.cut = Some(CutPoint::Bytes(bytes));
        self
    }

    /// The connection ends in the middle of this frame.
    #[must_use]
    pub fn cut_inside(mut self, frame: usize) -> Self {
        self.faults.cut = Some(CutPoint::Frame(frame));
        self
    }

    /// The connection ends inside the first character that has more than one byte.
    #[must_use]
    pub fn cut_inside_character(mut self) -> Self {
        self.faults.cut = Some(CutPoint::Character);
        self
    }

    /// A cut is a reset of the connection, not an end of it.
    #[must_use]
    pub fn with_reset(mut self) -> Self {
        self.faults.reset = true;
        self
    }

    /// The HTTP message ends as it should, the stream does not: no `message_stop`, no
    /// `finish_reason` and `[DONE]`, no `response.completed`, no `finishReason`.
    #[must_use]
    pub fn without_end(mut self) -> Self {
        self.faults.no_end = true;
        self
    }

    /// The first delta of text is repeated as fast as the socket takes it until the caller leaves.
    /// Responses repeats its number with it.
    #[must_use]
    pub fn endless(mut self) -> Self {
        self.faults.endless = true;
        self
    }

    /// The stream fails before this frame with the provider's own error event, and ends.
    #[must_use]
    pub fn error_at(self, frame: usize, trouble: ProviderError) -> Self {
        self.edit(frame, EditKind::Error(trouble, ErrorForm::Event))
    }

    /// The stream fails before this frame in one of the forms that Responses has.
    #[must_use]
    pub fn error_as(self, frame: usize, trouble: ProviderError, form: ErrorForm) -> Self {
        self.edit(frame, EditKind::Error(trouble, form))
    }

    /// The JSON of this frame lacks its second half.
    #[must_use]
    pub fn malformed_at(self, frame: usize) -> Self {
        self.edit(frame, EditKind::Malformed)
    }

    /// Before this frame comes an event that no client knows.
    #[must_use]
    pub fn unknown_at(self, frame: usize) -> Self {
        self.edit(frame, EditKind::Unknown)
    }

    /// Before this frame comes an event that no client knows, with so many bytes.
    #[must_use]
    pub fn huge_at(self, frame: usize, bytes: usize) -> Self {
        self.edit(frame, EditKind::Huge(bytes))
    }

    /// Every frame has fields that no client knows, at several depths.
    #[must_use]
    pub fn with_unknown_fields(mut self) -> Self {
        self.faults.unknown_fields = true;
        self
    }

    /// Lines end this way instead of the provider's.
    #[must_use]
    pub fn line_end(mut self, end: LineEnding) -> Self {
        self.faults.line_end = Some(end);
        self
    }

    /// The stream begins with a byte order mark.
    #[must_use]
    pub fn with_bom(mut self) -> Self {
        self.faults.bom = true;
        self
    }

    /// Comment lines stand before, between and inside the frames.
    #[must_use]
    pub fn with_comments(mut self) -> Self {
        self.faults.comments = true;
        self
    }

    /// Every byte is a chunk and a packet of its own.
    #[must_use]
    pub fn byte_by_byte(self) -> Self {
        self.drip(Duration::ZERO)
    }

    /// One byte each so often.
    #[must_use]
    pub fn drip(mut self, interval: Duration) -> Self {
        self.faults.drip = Some(interval);
        self
    }
}
