//! A step of a script after checking: what the model does next. Everything in it is within
//! bounds; the words may still hold places to fill in.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::{StopReason, Usage};

use crate::delta::ModelError;

use super::asked::Asked;
use super::condition::Condition;
use super::quote;

/// Words and how they stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Words {
    pub(crate) text: String,
    /// The same in other languages, each with its tag.
    pub(crate) others: Vec<(String, String)>,
    /// Where its deltas end, where each is written: then it is said as it is, and quotes nothing.
    pub(crate) pieces: Option<Vec<u32>>,
    /// Characters a delta; words if not given.
    pub(crate) chunk: Option<usize>,
    /// The wait before each delta.
    pub(crate) delay: Duration,
}

/// What a tool is asked with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// An object.
    Json(Value),
    /// Text that is sent as it is, so that broken input can be tried.
    Raw(String),
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Thinking {
        words: Words,
        signature: Option<String>,
    },
    Text {
        words: Words,
        repeat: u32,
    },
    Tool {
        name: String,
        input: Input,
        fragments: Option<usize>,
        delay: Duration,
    },
    Pause(Duration),
    Stall,
    Error(ModelError),
    Stop {
        reason: StopReason,
        usage: Option<Usage>,
    },
}

/// A step and when it is played.
#[derive(Debug)]
pub(crate) struct Cue {
    /// Always, if not given.
    pub(crate) when: Option<Condition>,
    pub(crate) step: Step,
}

impl Cue {
    /// Whether it is the same for every request, so that it can be cut once.
    pub(crate) fn is_fixed(&self) -> bool {
        let fixed = match &self.step {
            Step::Thinking { words, .. } | Step::Text { words, .. } => {
                words.others.is_empty() && !words.quotes()
            }
            Step::Tool { input, .. } => match input {
                Input::Json(value) => quote::quotes_in(value) == Ok(false),
                Input::Raw(_) => true,
            },
            Step::Pause(_) | Step::Stall | Step::Error(_) | Step::Stop { .. } => true,
        };
        fixed && self.when.is_none()
    }
}

impl Words {
    /// The same words for everyone.
    pub(crate) fn plain(text: String) -> Self {
        Self {
            text,
            others: Vec::new(),
            pieces: None,
            chunk: None,
            delay: Duration::ZERO,
        }
    }

    /// The words for a request, in its language; in the first one if that is not there.
    pub(crate) fn fill(&self, asked: Option<&Asked<'_>>, bytes_max: usize) -> String {
        let Some(asked) = asked.filter(|_| self.pieces.is_none()) else {
            return self.text.clone();
        };
        let other = self.others.iter().find(|(tag, _)| asked.speaks(tag));
        quote::fill(asked, other.map_or(&self.text, |(_, text)| text), bytes_max)
    }

    /// Whether it has places to fill in, in any language.
    pub(crate) fn quotes(&self) -> bool {
        if self.pieces.is_some() {
            return false;
        }
        let others = self.others.iter().map(|(_, text)| text);
        others
            .chain([&self.text])
            .any(|text| quote::quotes(text) != Ok(false))
    }
}
