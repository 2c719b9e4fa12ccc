//! One call of the model, ready to play: the deltas in order, cut once and shared by every call
//! that plays it. A delta is made from the text and its cuts when it is due, so a reel costs
//! little more than its words.

use std::time::Duration;

use turnwire_event::{StopReason, Usage};

use crate::delta::{Delta, ModelError};

use super::asked::Asked;
use super::block::Blocks;
use super::check::CALL_BYTES_MAX;
use super::chunk;
use super::quote;
use super::step::{Cue, Input, Step, Words};

/// Bytes that count as one token where a script does not say what a call costs.
const TOKEN_BYTES: u64 = 4;

/// What the pieces of a part are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Text,
    Thinking(Option<String>),
    Tool(String),
}

/// One stretch of a reel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Deltas of one block.
    Say {
        kind: Kind,
        block: u32,
        text: String,
        /// Where the pieces of `text` end.
        ends: Vec<u32>,
        delay: Duration,
        times: u32,
    },
    Pause(Duration),
    Stall,
    Fail(ModelError),
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reel {
    pub(crate) parts: Vec<Part>,
    stop: Option<(StopReason, Option<Usage>)>,
    tools: bool,
    written: u64,
    reasoned: u64,
}

impl Reel {
    /// Cuts what `cues` play for a request; without one they are taken as they are written.
    pub(crate) fn new(cues: &[Cue], asked: Option<&Asked<'_>>) -> Self {
        let mut reel = Self::default();
        let mut blocks = Blocks::default();
        for Cue { when, step } in cues {
            let held = when.as_ref().zip(asked);
            if held.is_none_or(|(when, asked)| when.holds(asked)) {
                reel.add(step, asked, &mut blocks);
            }
        }
        reel
    }

    /// Words in one block, for answers that are not in the script.
    pub(crate) fn saying(text: String) -> Self {
        let words = Words::plain(text);
        let step = Step::Text { words, repeat: 1 };
        Self::new(&[Cue { when: None, step }], None)
    }

    fn add(&mut self, step: &Step, asked: Option<&Asked<'_>>, blocks: &mut Blocks) {
        match step {
            Step::Text { words, repeat } => {
                let part = say(Kind::Text, blocks.text(), words, *repeat, asked);
                self.written += part.bytes();
                self.parts.push(part);
            }
            Step::Thinking { words, signature } => {
                let block = blocks.thinking(signature.is_some());
                let part = say(Kind::Thinking(signature.clone()), block, words, 1, asked);
                self.reasoned += part.bytes();
                self.parts.push(part);
            }
            Step::Tool {
                name,
                input,
                fragments,
                delay,
            } => {
                let text = match input {
                    Input::Json(value) => match asked {
                        Some(asked) => quote::fill_value(asked, value, CALL_BYTES_MAX).to_string(),
                        None => value.to_string(),
                    },
                    Input::Raw(raw) => raw.clone(),
                };
                // Short inputs come in one piece, longer ones as models send them.
                let count = fragments.unwrap_or(match text.len() {
                    0..16 => 1,
                    16..48 => 2,
                    _ => 3,
                });
                let part = Part::Say {
                    kind: Kind::Tool(name.clone()),
                    block: blocks.tool(),
                    ends: chunk::ends(chunk::fragments(&text, count)),
                    text,
                    delay: *delay,
                    times: 1,
                };
                self.tools = true;
                self.written += part.bytes();
                self.parts.push(part);
            }
            Step::Pause(wait) => self.parts.push(Part::Pause(*wait)),
            Step::Stall => self.parts.push(Part::Stall),
            Step::Error(error) => self.parts.push(Part::Fail(*error)),
            Step::Stop { reason, usage } => self.stop = Some((*reason, *usage)),
        }
    }

    /// The last delta, for a request of `asked` bytes.
    pub(crate) fn stop(&self, asked: u64) -> Delta {
        let (reason, usage) = self.stop.unwrap_or((self.reason(), None));
        let usage = usage.unwrap_or_else(|| {
            let tokens = |bytes: u64| bytes.div_ceil(TOKEN_BYTES);
            let input_tokens = tokens(asked);
            let output_tokens = tokens(self.written + self.reasoned);
            Usage {
                input_tokens,
                output_tokens,
                total_tokens: input_tokens + output_tokens,
                reasoning_tokens: tokens(self.reasoned),
                cached_tokens: 0,
                cost_usd: 0.0,
            }
        });
        Delta::Stop { reason, usage }
    }

    fn reason(&self) -> StopReason {
        if self.tools {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        }
    }
}

fn say(kind: Kind, block: u32, words: &Words, times: u32, asked: Option<&Asked<'_>>) -> Part {
    let text = words.fill(asked, CALL_BYTES_MAX);
    Part::Say {
        kind,
        block,
        ends: match &words.pieces {
            Some(pieces) => pieces.clone(),
            None => chunk::ends(chunk::pieces(&text, words.chunk)),
        },
        text,
        delay: words.delay,
        times,
    }
}

impl Part {
    fn bytes(&self) -> u64 {
        match self {
            Self::Say { text, times, .. } => text.len() as u64 * u64::from(*times),
            Self::Pause(_) | Self::Stall | Self::Fail(_) => 0,
        }
    }

    /// How many deltas one telling of it has.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Say { kind, ends, .. } => match kind {
                Kind::Text | Kind::Thinking(None) => ends.len(),
                // A seal needs a delta to ride on.
                Kind::Thinking(Some(_)) => ends.len().max(1),
                Kind::Tool(_) => ends.len() + 2,
            },
            Self::Pause(_) | Self::Stall | Self::Fail(_) => 0,
        }
    }

    /// Its delta number `at`, from 0.
    pub(crate) fn delta(&self, at: usize) -> Option<Delta> {
        let Self::Say {
            kind,
            block,
            text,
            ends,
            ..
        } = self
        else {
            return None;
        };
        let block = *block;
        let piece = |at: usize| {
            let start = at.checked_sub(1).map_or(0, |at| ends[at] as usize);
            let end = ends.get(at).map_or(text.len(), |&end| end as usize);
            text[start..end].to_owned()
        };
        if at >= self.len() {
            return None;
        }
        Some(match kind {
            Kind::Text => Delta::Text {
                block,
                text: piece(at),
            },
            Kind::Thinking(seal) => Delta::Thinking {
                block,
                text: piece(at),
                signature: seal.clone().filter(|_| at + 1 == self.len()),
            },
            Kind::Tool(name) if at == 0 => Delta::ToolStart {
                block,
                name: name.clone(),
                provider_id: None,
            },
            Kind::Tool(_) if at + 1 == self.len() => Delta::ToolEnd { block },
            Kind::Tool(_) => Delta::ToolInput {
                block,
                fragment: piece(at - 1),
            },
        })
    }
}
