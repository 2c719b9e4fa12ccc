//! Decodes a Chat Completions stream into [`Delta`]s.
//!
//! Blocks are numbered as they appear: text, reasoning and each tool call are blocks, and text
//! after another block is a new one. After a finish reason the answer ends with `[DONE]`, with the
//! usage or with the body; without one it was cut off.

use serde_json::value::RawValue;
use turnwire_event::TokenUsage;
use turnwire_event::code::LlmErrorClass;

use super::chunk::{
    CallFragment, ChatChunk, ChoiceDelta, ChunkChoice, CompletionUsage, FirstChoice,
};
use super::reasoning::{ReasoningCollector, ReasoningField};
use super::text::ChatText;
use super::tool_calls::ToolCalls;
use crate::delta::{Delta, ModelError};
use crate::dialect::answer_ending::AnswerEnding;
use crate::dialect::lenient::LenientCount;
use crate::dialect::{
    BlockWriter, DecodeResult, DeltaQueue, SseEvent, StreamDecoder, error_class, token_usage,
};

/// Values of the `error` field that mean no error.
const NO_ERROR: [&str; 4] = ["false", "0", "\"\"", "{}"];

/// [`StreamDecoder`] of one Chat Completions answer.
#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    blocks: BlockWriter,
    open_text: Option<(u32, ChatTextKind)>,
    tool_calls: ToolCalls,
    reasoning: ReasoningCollector,
    ending: Option<AnswerEnding>,
    counts: CompletionUsage,
    has_started: bool,
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatTextKind {
    Text,
    Reasoning(ReasoningField),
}

impl StreamDecoder for ChatDecoder {
    fn step(&mut self, frame: SseEvent<'_>, out: &mut DeltaQueue) -> DecodeResult {
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
            Ok(chunk) => {
                std::mem::swap(&mut self.blocks.out, out);
                let applied = self.apply_chunk(chunk);
                std::mem::swap(&mut self.blocks.out, out);
                applied
            }
            // The API has no named events; an event with a server's own name may have any data.
            Err(_) if frame.event.is_some_and(|event| event != "message") => Ok(()),
            Err(_) => Err(ModelError::malformed()),
        }
    }

    fn end(&mut self, out: &mut DeltaQueue) -> DecodeResult {
        match (self.is_done, self.ending) {
            (true, _) => Ok(()),
            (false, Some(ending)) => {
                out.push_back(self.finish(ending)?);
                Ok(())
            }
            (false, None) => Err(ModelError::cut_off(self.has_output())),
        }
    }

    fn usage_so_far(&self) -> TokenUsage {
        let tokens = LenientCount::or_zero;
        let counts = &self.counts;
        let prompt = counts.prompt_tokens_details.unwrap_or_default();
        let completion = counts.completion_tokens_details.unwrap_or_default();
        let cached = prompt.cached_tokens.or(counts.prompt_cache_hit_tokens);
        let (input, output) = (
            tokens(counts.prompt_tokens),
            tokens(counts.completion_tokens),
        );
        TokenUsage {
            reasoning_tokens: tokens(completion.reasoning_tokens),
            cached_tokens: tokens(cached.or(counts.cached_tokens)),
            ..token_usage(input, output, counts.total_tokens)
        }
    }

    fn cache_written_tokens(&self) -> u64 {
        let details = self.counts.prompt_tokens_details.unwrap_or_default();
        LenientCount::or_zero(details.cache_write_tokens)
    }
}

impl ChatDecoder {
    fn has_output(&self) -> bool {
        self.blocks.next > 0
    }

    fn fail(&mut self, data: &str) -> ModelError {
        self.is_done = true;
        error_class::classify_event_data(data)
    }

    fn apply_chunk(&mut self, chunk: ChatChunk<'_>) -> DecodeResult {
        if let Some(error) = chunk.error.map(RawValue::get)
            && !NO_ERROR.contains(&error)
        {
            return Err(self.fail(error));
        }
        if let Some(counts) = chunk.usage {
            self.counts = counts;
        }
        self.start(chunk.id.as_str());
        match (chunk.choices, chunk.usage, self.ending) {
            (Some(FirstChoice(Some(choice))), ..) => self.apply_choice(choice),
            // After the finish reason only the usage follows, and nothing after that.
            (Some(FirstChoice(None)), Some(_), Some(ending)) => {
                let stop = self.finish(ending)?;
                self.blocks.out.push_back(stop);
                Ok(())
            }
            (Some(FirstChoice(None)) | None, ..) => Ok(()),
        }
    }

    fn start(&mut self, id: &str) {
        if !id.is_empty() && !self.has_started && !self.has_output() {
            self.has_started = true;
            self.blocks.out.push_back(Delta::Started {
                response_id: id.to_owned(),
            });
        }
    }

    fn apply_choice(&mut self, choice: ChunkChoice<'_>) -> DecodeResult {
        // Content after the finish reason is not part of the answer.
        if self.ending.is_some() {
            return Ok(());
        }
        if let Some(delta) = choice.delta {
            self.choice_delta(delta)?;
        }
        // An unknown reason counts as complete.
        let ending = match choice.finish_reason.as_str() {
            "" => return Ok(()),
            "length" | "max_tokens" | "model_length" => AnswerEnding::Truncated,
            "content_filter" => AnswerEnding::Filtered,
            "error" => {
                self.is_done = true;
                return Err(ModelError::transient(LlmErrorClass::Provider));
            }
            _ => AnswerEnding::Complete,
        };
        self.ending = Some(ending);
        self.end_calls(ending)
    }

    fn choice_delta(&mut self, delta: ChoiceDelta<'_>) -> DecodeResult {
        if let Some(details) = delta.reasoning_details {
            self.reasoning.add_details(details);
        }
        self.push_reasoning(delta.reasoning_content, delta.reasoning);
        for part in [delta.content, delta.refusal].into_iter().flatten() {
            let reasoning = ChatTextKind::Reasoning(ReasoningField::Other);
            self.push_text(reasoning, part.thinking);
            self.push_text(ChatTextKind::Text, part.text);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.push_call(call)?;
        }
        if let Some(function) = delta.function_call {
            let call = CallFragment {
                function: Some(function),
                ..CallFragment::default()
            };
            self.push_call(call)?;
        }
        Ok(())
    }

    /// Emits reasoning. Servers that are renaming the field send both.
    fn push_reasoning(&mut self, content: Option<ChatText>, other: Option<ChatText>) {
        if content.is_some() {
            self.reasoning.set_content_present();
        }
        let content = content.unwrap_or_default().text;
        let (field, text) = match content.is_empty() {
            false => (ReasoningField::Content, content),
            true => (ReasoningField::Other, other.unwrap_or_default().text),
        };
        self.push_text(ChatTextKind::Reasoning(field), text);
    }

    fn push_text(&mut self, kind: ChatTextKind, text: String) {
        if text.is_empty() {
            return;
        }
        let (block, is_new) = match self.open_text {
            Some((block, open_kind)) if open_kind == kind => (block, false),
            Some(_) | None => {
                self.tool_calls.emit_awaiting_name(&mut self.blocks);
                self.tool_calls.end_complete_calls(None, &mut self.blocks);
                let block = self.blocks.open();
                self.open_text = Some((block, kind));
                (block, true)
            }
        };
        match kind {
            ChatTextKind::Text => self.blocks.out.push_back(Delta::Text { block, text }),
            ChatTextKind::Reasoning(field) => {
                self.blocks.out.push_back(Delta::Thinking {
                    block,
                    text,
                    signature: None,
                });
                let data = is_new
                    .then(|| self.reasoning.open_block(block, field))
                    .flatten();
                self.blocks
                    .out
                    .extend(data.map(|data| Delta::ProviderData { block, data }));
            }
        }
    }

    fn push_call(&mut self, call: CallFragment<'_>) -> DecodeResult {
        self.open_text = None;
        self.tool_calls.push(call, &mut self.blocks)
    }

    /// Ends the tool calls with the finish reason: no more input follows.
    fn end_calls(&mut self, ending: AnswerEnding) -> DecodeResult {
        self.tool_calls.finish(ending, &mut self.blocks)?;
        // Reasoning of a filtered answer without content is dropped too.
        if ending == AnswerEnding::Filtered && !self.has_output() {
            return Ok(());
        }
        if let Some((block, data)) = self.reasoning.end(self.tool_calls.has_calls()) {
            let block = block.unwrap_or_else(|| self.blocks.open());
            self.blocks
                .out
                .push_back(Delta::ProviderData { block, data });
        }
        Ok(())
    }

    /// Ends the answer; returns its last delta.
    fn finish(&mut self, ending: AnswerEnding) -> DecodeResult<Delta> {
        self.is_done = true;
        // An empty answer would hide the filter.
        if ending == AnswerEnding::Filtered && !self.has_output() {
            return Err(ModelError::malformed());
        }
        Ok(Delta::Stop {
            reason: ending.stop_reason(self.tool_calls.has_calls()),
            usage: self.usage_so_far(),
        })
    }
}
