//! A checked step of a script: the model's next action. All values are within their limits; text
//! may still have placeholders.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::{StopReason, TokenUsage};

use crate::delta::ModelError;

use super::condition::RuleCondition;
use super::placeholder;
use super::request_view::RequestView;

/// Text and how it is streamed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StreamedText {
    pub(crate) text: String,
    /// The text in other languages, by language tag.
    pub(crate) translations: Vec<(String, String)>,
    /// End offsets of the deltas, if the script fixes them; such text has no placeholders.
    pub(crate) pieces: Option<Vec<u32>>,
    /// Characters per delta; `None` splits at words.
    pub(crate) chunk: Option<usize>,
    /// Delay before each delta.
    pub(crate) delay: Duration,
}

/// The input of a tool use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolInput {
    /// A JSON object; its strings may have placeholders.
    Json(Value),
    /// Raw text, so that invalid input can be tested.
    Raw(String),
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ScriptStep {
    Thinking {
        text: StreamedText,
        signature: Option<String>,
    },
    Text {
        text: StreamedText,
        repeat: u32,
    },
    Tool {
        name: String,
        input: ToolInput,
        fragments: Option<usize>,
        delay: Duration,
    },
    Pause(Duration),
    Stall,
    Error(ModelError),
    Stop {
        reason: StopReason,
        usage: Option<TokenUsage>,
    },
}

/// A [`ScriptStep`] with its [`RuleCondition`].
#[derive(Debug)]
pub(crate) struct ConditionalStep {
    /// `None` plays the step always.
    pub(crate) when: Option<RuleCondition>,
    pub(crate) step: ScriptStep,
}

impl ConditionalStep {
    /// True if the step is the same for every request, so that it can be prepared once.
    pub(crate) fn is_fixed(&self) -> bool {
        let fixed = match &self.step {
            ScriptStep::Thinking { text, .. } | ScriptStep::Text { text, .. } => {
                text.translations.is_empty() && !text.has_placeholders()
            }
            ScriptStep::Tool { input, .. } => match input {
                ToolInput::Json(value) => placeholder::has_placeholders_in(value) == Ok(false),
                ToolInput::Raw(_) => true,
            },
            ScriptStep::Pause(_)
            | ScriptStep::Stall
            | ScriptStep::Error(_)
            | ScriptStep::Stop { .. } => true,
        };
        fixed && self.when.is_none()
    }
}

impl StreamedText {
    /// Text without translations and with default streaming.
    pub(crate) fn new(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// The text for a request, in its language, with placeholders filled; another language gets the
    /// first text.
    pub(crate) fn fill(&self, view: Option<&RequestView<'_>>, bytes_max: usize) -> String {
        let Some(view) = view.filter(|_| self.pieces.is_none()) else {
            return self.text.clone();
        };
        let mut translations = self.translations.iter();
        let translation = translations.find(|(tag, _)| view.matches_locale(tag));
        let text = translation.map_or(&self.text, |(_, text)| text);
        placeholder::fill(view, text, bytes_max)
    }

    /// True if the text has placeholders in any language.
    pub(crate) fn has_placeholders(&self) -> bool {
        if self.pieces.is_some() {
            return false;
        }
        let translations = self.translations.iter().map(|(_, text)| text);
        let mut texts = translations.chain([&self.text]);
        texts.any(|text| placeholder::has_placeholders(text) != Ok(false))
    }
}
