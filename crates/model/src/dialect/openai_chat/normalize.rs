//! Our deltas of a Chat Completions stream.
//!
//! Blocks are numbered as they appear: words, reasoning and each tool call are blocks, and words
//! that come after something else are a new one. Once a reason was given, the answer ends with
//! `[DONE]`, with the usage, or with the stream; without a reason it broke, whatever its end.

use std::collections::VecDeque;

use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, Usage};

use super::calls::{Calls, Cut};
use super::chunk::{Call, Choice, Choices, Chunk, Said, Usage as Counts};
use super::reasoning::{Name, Reasoning};
use super::words::Words;
use crate::delta::{Delta, ModelError};
use crate::dialect::loose::{Count, Glance};
use crate::dialect::{Decoder, Frame, trouble};

/// What stands in the field of the error where there is none.
const NO_ERROR: [&str; 4] = ["false", "0", "\"\"", "{}"];

/// One answer.
#[derive(Debug, Default)]
pub(super) struct Completion {
    next: u32,
    speech: Option<(u32, Voice)>,
    calls: Calls,
    reasoning: Reasoning,
    ending: Option<Ending>,
    counts: Counts,
    begun: bool,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Words,
    Reasoning(Name),
}

/// Why an answer ended, as far as that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// All is said, or tools are asked for: the calls tell which.
    Said,
    /// There was no room for more.
    Cut,
    /// The vendor's filter stepped in.
    Filtered,
}

impl Decoder for Completion {
    fn step(&mut self, frame: Frame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.end(out);
        }
        if frame.event == Some("error") {
            return Err(self.fail(data));
        }
        match serde_json::from_str::<Chunk<'_>>(data) {
            Ok(chunk) => self.take(chunk, out),
            // The vendor names no events; whoever puts in some of his own may write what he likes.
            Err(_) if frame.event.is_some_and(|event| event != "message") => Ok(()),
            Err(_) => Err(malformed()),
        }
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match (self.done, self.ending, self.has_spoken()) {
            (true, _, _) => Ok(()),
            (false, Some(_), _) => self.finish(out),
            (false, None, true) => Err(LlmErrorClass::Transport.into()),
            (false, None, false) => Err(ModelError::passing(LlmErrorClass::Transport)),
        }
    }

    fn usage_so_far(&self) -> Usage {
        usage(&self.counts)
    }

    fn cache_written_tokens(&self) -> u64 {
        let details = self.counts.prompt_tokens_details.unwrap_or_default();
        details.cache_write_tokens.unwrap_or_default().0
    }
}

fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).at("malformed")
}

impl Completion {
    fn has_spoken(&self) -> bool {
        self.next > 0
    }

    fn fail(&mut self, data: &str) -> ModelError {
        self.done = true;
        let error: Value = serde_json::from_str(data).unwrap_or_default();
        trouble::in_stream(error.get("error").unwrap_or(&error))
    }

    fn take(&mut self, chunk: Chunk<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(error) = chunk.error.map(RawValue::get)
            && !NO_ERROR.contains(&error)
        {
            return Err(self.fail(error));
        }
        if let Some(counts) = chunk.usage {
            self.counts = counts;
        }
        self.begin(chunk.id.as_ref(), out);
        match chunk.choices {
            Some(Choices(Some(choice))) => self.choice(choice, out),
            // Behind the reason only the usage comes, and nothing behind that.
            Some(Choices(None)) if chunk.usage.is_some() && self.ending.is_some() => {
                self.finish(out)
            }
            Some(Choices(None)) | None => Ok(()),
        }
    }

    fn begin(&mut self, id: Option<&Glance<'_>>, out: &mut VecDeque<Delta>) {
        let Some(id) = id.map(Glance::as_str).filter(|id| !id.is_empty()) else {
            return;
        };
        if !self.begun && !self.has_spoken() {
            self.begun = true;
            out.push_back(Delta::Begun {
                response_id: id.to_owned(),
            });
        }
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        // What is said behind the reason is not part of the answer.
        if self.ending.is_some() {
            return Ok(());
        }
        if let Some(said) = choice.delta {
            self.said(said, out)?;
        }
        let reason = choice.finish_reason.as_ref().map_or("", Glance::as_str);
        match ending_of(reason) {
            Some(Ok(ending)) => {
                self.ending = Some(ending);
                self.close(ending, out)
            }
            Some(Err(error)) => {
                self.done = true;
                Err(error)
            }
            None => Ok(()),
        }
    }

    fn said(&mut self, said: Said<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(details) = said.reasoning_details {
            self.reasoning.detail(details);
        }
        self.reason(said.reasoning_content, said.reasoning, out);
        for words in [said.content, said.refusal].into_iter().flatten() {
            self.speak(Voice::Reasoning(Name::Other), words.thinking, out);
            self.speak(Voice::Words, words.text, out);
        }
        for call in said.tool_calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        if let Some(function) = said.function_call {
            let call = Call {
                function: Some(function),
                ..Call::default()
            };
            self.call(call, out)?;
        }
        Ok(())
    }

    /// Reasoning. Servers that are changing the name of the field send both.
    fn reason(&mut self, content: Option<Words>, other: Option<Words>, out: &mut VecDeque<Delta>) {
        if content.is_some() {
            self.reasoning.named();
        }
        let content = content.unwrap_or_default().text;
        let other = other.unwrap_or_default().text;
        match content.is_empty() {
            false => self.speak(Voice::Reasoning(Name::Content), content, out),
            true => self.speak(Voice::Reasoning(Name::Other), other, out),
        }
    }

    fn speak(&mut self, voice: Voice, text: String, out: &mut VecDeque<Delta>) {
        if text.is_empty() {
            return;
        }
        let (block, is_new) = match self.speech {
            Some((block, same)) if same == voice => (block, false),
            Some(_) | None => {
                self.calls.settle(&mut self.next, out);
                let block = self.next;
                self.next += 1;
                self.speech = Some((block, voice));
                (block, true)
            }
        };
        match voice {
            Voice::Words => out.push_back(Delta::Text { block, text }),
            Voice::Reasoning(name) => {
                out.push_back(Delta::Thinking {
                    block,
                    text,
                    signature: None,
                });
                let kept = is_new.then(|| self.reasoning.begin(block, name)).flatten();
                out.extend(kept.map(|data| Delta::Keep { block, data }));
            }
        }
    }

    fn call(&mut self, call: Call<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.speech = None;
        self.calls.take(call, &mut self.next, out)
    }

    /// The tools end with the reason: their input is not waited for any longer.
    fn close(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let cut = match ending {
            Ending::Said => Cut::No,
            Ending::Cut | Ending::Filtered => Cut::Yes,
        };
        self.calls.finish(cut, &mut self.next, out)?;
        // What was withheld was not said, and is not kept either.
        if self.has_spoken() || ending != Ending::Filtered {
            self.keep_reasoning(out);
        }
        Ok(())
    }

    fn keep_reasoning(&mut self, out: &mut VecDeque<Delta>) {
        let Some((block, data)) = self.reasoning.end(self.calls.any()) else {
            return;
        };
        let block = block.unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        out.push_back(Delta::Keep { block, data });
    }

    fn finish(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.done = true;
        let reason = match self.ending {
            // Nothing was said, and an empty answer would hide why.
            Some(Ending::Filtered) if !self.has_spoken() => return Err(malformed()),
            Some(Ending::Filtered) => StopReason::EndTurn,
            Some(Ending::Cut) => StopReason::MaxTokens,
            Some(Ending::Said) | None if self.calls.any() => StopReason::ToolUse,
            Some(Ending::Said) | None => StopReason::EndTurn,
        };
        out.push_back(Delta::Stop {
            reason,
            usage: usage(&self.counts),
        });
        Ok(())
    }
}

/// What a reason says; none while there is none. A reason that is not known is an end all the same.
fn ending_of(reason: &str) -> Option<Result<Ending, ModelError>> {
    match reason {
        "" => None,
        "length" | "max_tokens" | "model_length" => Some(Ok(Ending::Cut)),
        "content_filter" => Some(Ok(Ending::Filtered)),
        "error" => Some(Err(ModelError::passing(LlmErrorClass::Provider))),
        _ => Some(Ok(Ending::Said)),
    }
}

fn usage(counts: &Counts) -> Usage {
    let of = |count: Option<Count>| count.unwrap_or_default().0;
    let prompt = counts.prompt_tokens_details.unwrap_or_default();
    let completion = counts.completion_tokens_details.unwrap_or_default();
    let cached = prompt.cached_tokens.or(counts.prompt_cache_hit_tokens);
    let cached = cached.or(counts.cached_tokens);
    let input_tokens = of(counts.prompt_tokens);
    let output_tokens = of(counts.completion_tokens);
    let sum = input_tokens.saturating_add(output_tokens);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: counts.total_tokens.map_or(sum, |total| total.0),
        reasoning_tokens: of(completion.reasoning_tokens),
        cached_tokens: of(cached),
        cost_usd: 0.0,
    }
}
