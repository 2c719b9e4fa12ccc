//! What a model says, piece by piece, in one vocabulary for every vendor.
//!
//! Blocks are numbered from 0 in the order the model opens them. A block keeps its kind; a tool's
//! input comes as raw fragments that need not parse until the tool's end. `Stop` is the last
//! delta: a stream that ends without it has broken.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, Usage};

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// The provider has begun to answer. At most one, before everything else.
    Begun {
        /// What it calls its answer.
        response_id: String,
    },
    /// Something that the provider wants back with a block when it is shown the message again,
    /// and that nobody else can read. The last one of a block counts. A block of which nothing
    /// else is known, such as hidden reasoning, is an empty block.
    Keep {
        /// With which block.
        block: u32,
        /// In the words of the provider's dialect.
        data: Value,
    },
    /// More words.
    Text {
        /// In which block.
        block: u32,
        /// The new words only.
        text: String,
    },
    /// More reasoning.
    Thinking {
        /// In which block.
        block: u32,
        /// The new reasoning only.
        text: String,
        /// The provider's seal, or a piece of it; pieces append.
        signature: Option<String>,
    },
    /// The model begins to ask for a tool.
    ToolStart {
        /// In which block.
        block: u32,
        /// Which tool.
        name: String,
        /// What the provider calls this use, where it names it.
        provider_id: Option<String>,
    },
    /// More of a tool's input.
    ToolInput {
        /// In which block.
        block: u32,
        /// The raw fragment.
        fragment: String,
    },
    /// A tool's input is whole.
    ToolEnd {
        /// In which block.
        block: u32,
    },
    /// What a call that fails has used up, as far as its provider said. The last one counts, and
    /// the error follows; an answer that is whole says it with its `Stop`.
    Spent {
        /// What it cost.
        usage: Usage,
    },
    /// The answer is whole.
    Stop {
        /// Why the model stopped.
        reason: StopReason,
        /// What it cost.
        usage: Usage,
    },
}

/// Whether the same call may go well another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// No: it was refused for what it is.
    Never,
    /// Perhaps, after a while.
    Soon,
    /// Perhaps, and not before the provider's own time.
    After(Duration),
}

/// A model call that failed. Only its class is told; the cause is for the server's log.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the model call failed: {class:?}")]
pub struct ModelError {
    /// Why.
    pub class: LlmErrorClass,
    /// Whether to try again.
    pub again: Again,
    /// Where it went wrong, in one word of ours for the server's log; empty while nobody said.
    pub place: &'static str,
}

/// Where it went wrong makes no difference to whoever has to go on.
impl PartialEq for ModelError {
    fn eq(&self, other: &Self) -> bool {
        (self.class, self.again) == (other.class, other.again)
    }
}

impl Eq for ModelError {}

impl ModelError {
    /// A failure that may or may not pass.
    pub const fn new(class: LlmErrorClass, again: Again) -> Self {
        Self {
            class,
            again,
            place: "",
        }
    }

    /// A failure that may pass.
    pub const fn passing(class: LlmErrorClass) -> Self {
        Self::new(class, Again::Soon)
    }

    /// With where it went wrong; whoever said so first knows best.
    #[must_use]
    pub const fn at(mut self, place: &'static str) -> Self {
        if self.place.is_empty() {
            self.place = place;
        }
        self
    }
}

impl From<LlmErrorClass> for ModelError {
    /// A failure that will not pass.
    fn from(class: LlmErrorClass) -> Self {
        Self::new(class, Again::Never)
    }
}
