//! The plan of one model call: its deltas in order, prepared once and shared by every call that
//! plays it. A delta is built from the text and its offsets when it is due, so a plan needs little
//! more memory than its text.

use std::mem::Discriminant;
use std::time::Duration;

use turnwire_event::{StopReason, TokenUsage};

use crate::delta::{Delta, ModelError};

use super::check::CALL_BYTES_MAX;
use super::placeholder;
use super::request_view::RequestView;
use super::split;
use super::step::{ConditionalStep, ScriptStep, StreamedText, ToolInput};

/// Bytes per token, for calls whose script reports no usage.
const TOKEN_BYTES: u64 = 4;

/// The content of a streamed part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StreamedContent {
    Text,
    Thinking(Option<String>),
    Tool(String),
}

/// One part of a [`CallPlan`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlanPart {
    /// Streams the deltas of one block.
    Stream {
        content: StreamedContent,
        block: u32,
        text: String,
        /// End offsets of the pieces of `text`.
        ends: Vec<u32>,
        delay: Duration,
        times: u32,
    },
    Pause(Duration),
    Stall,
    Fail(ModelError),
}

/// The plan of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallPlan {
    pub(crate) parts: Vec<PlanPart>,
    stop: Option<(StopReason, Option<TokenUsage>)>,
    has_tools: bool,
    output_bytes: u64,
    reasoning_bytes: u64,
    next_block: u32,
    /// The open block and its kind, which further content of this kind continues.
    open_block: Option<(u32, Discriminant<StreamedContent>)>,
}

impl CallPlan {
    /// Prepares [`ConditionalStep`]s for a request; without a request all steps are played
    /// unconditionally and placeholders stay unfilled.
    pub(crate) fn new(steps: &[ConditionalStep], view: Option<&RequestView<'_>>) -> Self {
        let mut plan = Self::default();
        for ConditionalStep { when, step } in steps {
            let condition = when.as_ref().zip(view);
            if condition.is_none_or(|(when, view)| when.is_met(view)) {
                plan.add(step, view);
            }
        }
        plan
    }

    /// A plan of one text block, for answers that are not in the script.
    pub(crate) fn from_text(text: String) -> Self {
        let text = StreamedText::new(text);
        let step = ScriptStep::Text { text, repeat: 1 };
        Self::new(&[ConditionalStep { when: None, step }], None)
    }

    fn add(&mut self, step: &ScriptStep, view: Option<&RequestView<'_>>) {
        match step {
            ScriptStep::Text { text, repeat } => {
                self.add_text(StreamedContent::Text, text, *repeat, view);
            }
            ScriptStep::Thinking { text, signature } => {
                self.add_text(StreamedContent::Thinking(signature.clone()), text, 1, view);
            }
            ScriptStep::Tool {
                name,
                input,
                fragments,
                delay,
            } => {
                let text = match (input, view) {
                    (ToolInput::Json(value), Some(view)) => {
                        placeholder::fill_value(view, value, CALL_BYTES_MAX).to_string()
                    }
                    (ToolInput::Json(value), None) => value.to_string(),
                    (ToolInput::Raw(raw), _) => raw.clone(),
                };
                // Short inputs are one fragment, longer ones several, as models send them.
                let count = fragments.unwrap_or(match text.len() {
                    0..16 => 1,
                    16..48 => 2,
                    _ => 3,
                });
                let ends = split::ends(split::fragments(&text, count));
                self.has_tools = true;
                self.add_stream(StreamedContent::Tool(name.clone()), text, ends, *delay, 1);
            }
            ScriptStep::Pause(wait) => self.parts.push(PlanPart::Pause(*wait)),
            ScriptStep::Stall => self.parts.push(PlanPart::Stall),
            ScriptStep::Error(error) => self.parts.push(PlanPart::Fail(error.clone())),
            ScriptStep::Stop { reason, usage } => self.stop = Some((*reason, *usage)),
        }
    }

    fn add_text(
        &mut self,
        content: StreamedContent,
        streamed: &StreamedText,
        times: u32,
        view: Option<&RequestView<'_>>,
    ) {
        let text = streamed.fill(view, CALL_BYTES_MAX);
        let ends = match &streamed.pieces {
            Some(pieces) => pieces.clone(),
            None => split::ends(split::pieces(&text, streamed.chunk)),
        };
        self.add_stream(content, text, ends, streamed.delay, times);
    }

    fn add_stream(
        &mut self,
        content: StreamedContent,
        text: String,
        ends: Vec<u32>,
        delay: Duration,
        times: u32,
    ) {
        let bytes = text.len() as u64 * u64::from(times);
        match content {
            StreamedContent::Thinking(_) => self.reasoning_bytes += bytes,
            StreamedContent::Text | StreamedContent::Tool(_) => self.output_bytes += bytes,
        }
        let block = self.block(&content);
        self.parts.push(PlanPart::Stream {
            content,
            block,
            text,
            ends,
            delay,
            times,
        });
    }

    /// Number of the block of `content`. Text and thinking continue the open block of their kind; a
    /// signature closes its block, and each tool use has its own.
    fn block(&mut self, content: &StreamedContent) -> u32 {
        let kind = std::mem::discriminant(content);
        let block = match self.open_block {
            Some((block, open_kind)) if open_kind == kind => block,
            Some(_) | None => {
                self.next_block += 1;
                self.next_block - 1
            }
        };
        let stays_open = matches!(
            content,
            StreamedContent::Text | StreamedContent::Thinking(None)
        );
        self.open_block = stays_open.then_some((block, kind));
        block
    }

    /// The last delta, for a request of `request_bytes` bytes.
    pub(crate) fn stop(&self, request_bytes: u64) -> Delta {
        let default_reason = match self.has_tools {
            true => StopReason::ToolUse,
            false => StopReason::EndTurn,
        };
        let (reason, usage) = self.stop.unwrap_or((default_reason, None));
        let usage = usage.unwrap_or_else(|| {
            let tokens = |bytes: u64| bytes.div_ceil(TOKEN_BYTES);
            let input_tokens = tokens(request_bytes);
            let output_tokens = tokens(self.output_bytes + self.reasoning_bytes);
            TokenUsage {
                input_tokens,
                output_tokens,
                total_tokens: input_tokens + output_tokens,
                reasoning_tokens: tokens(self.reasoning_bytes),
                ..TokenUsage::default()
            }
        });
        Delta::Stop { reason, usage }
    }
}

impl PlanPart {
    /// Number of deltas in one repetition.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Stream { content, ends, .. } => match content {
                StreamedContent::Text | StreamedContent::Thinking(None) => ends.len(),
                // A signature needs a delta to carry it.
                StreamedContent::Thinking(Some(_)) => ends.len().max(1),
                StreamedContent::Tool(_) => ends.len() + 2,
            },
            Self::Pause(_) | Self::Stall | Self::Fail(_) => 0,
        }
    }

    /// Delta number `index`, from 0.
    pub(crate) fn delta(&self, index: usize) -> Option<Delta> {
        let Self::Stream {
            content,
            block,
            text,
            ends,
            ..
        } = self
        else {
            return None;
        };
        let block = *block;
        let piece = |index: usize| {
            let start = index.checked_sub(1).map_or(0, |index| ends[index] as usize);
            let end = ends.get(index).map_or(text.len(), |&end| end as usize);
            text[start..end].to_owned()
        };
        if index >= self.len() {
            return None;
        }
        Some(match content {
            StreamedContent::Text => Delta::Text {
                block,
                text: piece(index),
            },
            StreamedContent::Thinking(signature) => Delta::Thinking {
                block,
                text: piece(index),
                signature: signature.clone().filter(|_| index + 1 == self.len()),
            },
            StreamedContent::Tool(name) if index == 0 => Delta::ToolStart {
                block,
                name: name.clone(),
                provider_id: None,
            },
            StreamedContent::Tool(_) if index + 1 == self.len() => Delta::ToolEnd { block },
            StreamedContent::Tool(_) => Delta::ToolInput {
                block,
                fragment: piece(index - 1),
            },
        })
    }
}
