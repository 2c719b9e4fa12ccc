//! Decodes a Chat Completions stream into [`Delta`]s.
//!
//! Blocks are numbered as they appear: text, reasoning and each tool call are blocks, and text
//! after another block is a new one. After a finish reason the answer ends with `[DONE]`, with the
//! usage or with the body; without one it was cut off.

use std::collections::VecDeque;

use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, TokenUsage};

use super::chunk::{
    CallFragment, ChatChunk, ChoiceDelta, ChunkChoice, CompletionUsage, FirstChoice,
};
use super::reasoning::{ReasoningCollector, ReasoningField};
use super::text::ChatText;
use super::tool_calls::{AnswerEnd, ToolCalls};
use crate::delta::{Delta, ModelError};
use crate::dialect::lenient::{LenientCount, LenientStr};
use crate::dialect::{SseFrame, StreamDecoder, error_class};

/// Values of the `error` field that mean no error.
const NO_ERROR: [&str; 4] = ["false", "0", "\"\"", "{}"];

/// [`StreamDecoder`] of one Chat Completions answer.
#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    next_block: u32,
    open_text: Option<(u32, ChatTextKind)>,
    tool_calls: ToolCalls,
    reasoning: ReasoningCollector,
    ending: Option<ChoiceEnding>,
    counts: CompletionUsage,
    has_started: bool,
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatTextKind {
    Text,
    Reasoning(ReasoningField),
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChoiceEnding {
    /// Complete: end of turn or tool calls.
    Complete,
    /// The token limit was reached.
    Truncated,
    /// The vendor's content filter stopped the answer.
    Filtered,
}

impl StreamDecoder for ChatDecoder {
    fn step(&mut self, frame: SseFrame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if self.is_done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.end(out);
        }
        if frame.event == Some("error") {
            return Err(self.fail(data));
        }
        match serde_json::from_str::<ChatChunk<'_>>(data) {
            Ok(chunk) => self.apply_chunk(chunk, out),
            // The API has no named events; an event with a server's own name may have any data.
            Err(_) if frame.event.is_some_and(|event| event != "message") => Ok(()),
            Err(_) => Err(malformed()),
        }
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match (self.is_done, self.ending, self.has_output()) {
            (true, _, _) => Ok(()),
            (false, Some(_), _) => self.finish(out),
            (false, None, true) => Err(LlmErrorClass::Transport.into()),
            (false, None, false) => Err(ModelError::transient(LlmErrorClass::Transport)),
        }
    }

    fn usage_so_far(&self) -> TokenUsage {
        usage(&self.counts)
    }

    fn cache_written_tokens(&self) -> u64 {
        let details = self.counts.prompt_tokens_details.unwrap_or_default();
        details.cache_write_tokens.unwrap_or_default().0
    }
}

fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).with_location("malformed")
}

impl ChatDecoder {
    fn has_output(&self) -> bool {
        self.next_block > 0
    }

    fn fail(&mut self, data: &str) -> ModelError {
        self.is_done = true;
        let error: Value = serde_json::from_str(data).unwrap_or_default();
        error_class::classify_event(error.get("error").unwrap_or(&error))
    }

    fn apply_chunk(
        &mut self,
        chunk: ChatChunk<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if let Some(error) = chunk.error.map(RawValue::get)
            && !NO_ERROR.contains(&error)
        {
            return Err(self.fail(error));
        }
        if let Some(counts) = chunk.usage {
            self.counts = counts;
        }
        self.start(chunk.id.as_ref(), out);
        match chunk.choices {
            Some(FirstChoice(Some(choice))) => self.apply_choice(choice, out),
            // After the finish reason only the usage follows, and nothing after that.
            Some(FirstChoice(None)) if chunk.usage.is_some() && self.ending.is_some() => {
                self.finish(out)
            }
            Some(FirstChoice(None)) | None => Ok(()),
        }
    }

    fn start(&mut self, id: Option<&LenientStr<'_>>, out: &mut VecDeque<Delta>) {
        let Some(id) = id.map(LenientStr::as_str).filter(|id| !id.is_empty()) else {
            return;
        };
        if !self.has_started && !self.has_output() {
            self.has_started = true;
            out.push_back(Delta::Started {
                response_id: id.to_owned(),
            });
        }
    }

    fn apply_choice(
        &mut self,
        choice: ChunkChoice<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        // Content after the finish reason is not part of the answer.
        if self.ending.is_some() {
            return Ok(());
        }
        if let Some(delta) = choice.delta {
            self.choice_delta(delta, out)?;
        }
        let reason = choice.finish_reason.as_ref().map_or("", LenientStr::as_str);
        match choice_ending(reason) {
            Some(Ok(ending)) => {
                self.ending = Some(ending);
                self.end_calls(ending, out)
            }
            Some(Err(error)) => {
                self.is_done = true;
                Err(error)
            }
            None => Ok(()),
        }
    }

    fn choice_delta(
        &mut self,
        delta: ChoiceDelta<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if let Some(details) = delta.reasoning_details {
            self.reasoning.add_details(details);
        }
        self.push_reasoning(delta.reasoning_content, delta.reasoning, out);
        for part in [delta.content, delta.refusal].into_iter().flatten() {
            self.push_text(
                ChatTextKind::Reasoning(ReasoningField::Other),
                part.thinking,
                out,
            );
            self.push_text(ChatTextKind::Text, part.text, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.push_call(call, out)?;
        }
        if let Some(function) = delta.function_call {
            let call = CallFragment {
                function: Some(function),
                ..CallFragment::default()
            };
            self.push_call(call, out)?;
        }
        Ok(())
    }

    /// Emits reasoning. Servers that are renaming the field send both.
    fn push_reasoning(
        &mut self,
        content: Option<ChatText>,
        other: Option<ChatText>,
        out: &mut VecDeque<Delta>,
    ) {
        if content.is_some() {
            self.reasoning.set_content_present();
        }
        let content = content.unwrap_or_default().text;
        let other = other.unwrap_or_default().text;
        match content.is_empty() {
            false => self.push_text(
                ChatTextKind::Reasoning(ReasoningField::Content),
                content,
                out,
            ),
            true => self.push_text(ChatTextKind::Reasoning(ReasoningField::Other), other, out),
        }
    }

    fn push_text(&mut self, kind: ChatTextKind, text: String, out: &mut VecDeque<Delta>) {
        if text.is_empty() {
            return;
        }
        let (block, is_new) = match self.open_text {
            Some((block, open_kind)) if open_kind == kind => (block, false),
            Some(_) | None => {
                self.tool_calls
                    .emit_awaiting_name(&mut self.next_block, out);
                let block = self.next_block;
                self.next_block += 1;
                self.open_text = Some((block, kind));
                (block, true)
            }
        };
        match kind {
            ChatTextKind::Text => out.push_back(Delta::Text { block, text }),
            ChatTextKind::Reasoning(field) => {
                out.push_back(Delta::Thinking {
                    block,
                    text,
                    signature: None,
                });
                let data = is_new
                    .then(|| self.reasoning.open_block(block, field))
                    .flatten();
                out.extend(data.map(|data| Delta::ProviderData { block, data }));
            }
        }
    }

    fn push_call(
        &mut self,
        call: CallFragment<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.open_text = None;
        self.tool_calls.push(call, &mut self.next_block, out)
    }

    /// Ends the tool calls with the finish reason: no more input follows.
    fn end_calls(
        &mut self,
        ending: ChoiceEnding,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let answer_end = match ending {
            ChoiceEnding::Complete => AnswerEnd::Complete,
            ChoiceEnding::Truncated | ChoiceEnding::Filtered => AnswerEnd::Truncated,
        };
        self.tool_calls
            .finish(answer_end, &mut self.next_block, out)?;
        // Reasoning of a filtered answer without content is dropped too.
        if self.has_output() || ending != ChoiceEnding::Filtered {
            self.emit_reasoning_data(out);
        }
        Ok(())
    }

    fn emit_reasoning_data(&mut self, out: &mut VecDeque<Delta>) {
        let Some((block, data)) = self.reasoning.end(self.tool_calls.has_calls()) else {
            return;
        };
        let block = block.unwrap_or_else(|| {
            self.next_block += 1;
            self.next_block - 1
        });
        out.push_back(Delta::ProviderData { block, data });
    }

    fn finish(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.is_done = true;
        let reason = match self.ending {
            // An empty answer would hide the filter.
            Some(ChoiceEnding::Filtered) if !self.has_output() => return Err(malformed()),
            Some(ChoiceEnding::Filtered) => StopReason::EndTurn,
            Some(ChoiceEnding::Truncated) => StopReason::MaxTokens,
            Some(ChoiceEnding::Complete) | None if self.tool_calls.has_calls() => {
                StopReason::ToolUse
            }
            Some(ChoiceEnding::Complete) | None => StopReason::EndTurn,
        };
        out.push_back(Delta::Stop {
            reason,
            usage: usage(&self.counts),
        });
        Ok(())
    }
}

/// Translates a finish reason; `None` if it is empty. An unknown reason counts as complete.
fn choice_ending(reason: &str) -> Option<Result<ChoiceEnding, ModelError>> {
    match reason {
        "" => None,
        "length" | "max_tokens" | "model_length" => Some(Ok(ChoiceEnding::Truncated)),
        "content_filter" => Some(Ok(ChoiceEnding::Filtered)),
        "error" => Some(Err(ModelError::transient(LlmErrorClass::Provider))),
        _ => Some(Ok(ChoiceEnding::Complete)),
    }
}

fn usage(counts: &CompletionUsage) -> TokenUsage {
    let tokens = |count: Option<LenientCount>| count.unwrap_or_default().0;
    let prompt = counts.prompt_tokens_details.unwrap_or_default();
    let completion = counts.completion_tokens_details.unwrap_or_default();
    let cached = prompt.cached_tokens.or(counts.prompt_cache_hit_tokens);
    let cached = cached.or(counts.cached_tokens);
    let input_tokens = tokens(counts.prompt_tokens);
    let output_tokens = tokens(counts.completion_tokens);
    let sum = input_tokens.saturating_add(output_tokens);
    TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens: counts.total_tokens.map_or(sum, |total| total.0),
        reasoning_tokens: tokens(completion.reasoning_tokens),
        cached_tokens: tokens(cached),
        cost_usd: 0.0,
    }
}
