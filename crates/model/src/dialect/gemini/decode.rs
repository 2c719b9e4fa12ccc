//! Decodes a Gemini stream into [`Delta`]s.
//!
//! The vendor has no block indices: adjacent text parts of one kind are one block, and any other
//! part opens the next block. A signature closes its block, since it must go back on the same part.
//! Function calls arrive complete, or in parts that are emitted together (S3-064). A frame with a finish
//! reason ends the answer. The sources that it quotes are its last text block.

use serde_json::{Map, Value};
use turnwire_event::TokenUsage;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;

use super::chunk::{
    CandidateChunk, Citation, ContentPart, FunctionCall, GeminiChunk, UsageMetadata,
};
use super::error;
use super::partial_args::PartialArgs;
use crate::delta::{Delta, ModelError};
use crate::dialect::answer_ending::AnswerEnding;
use crate::dialect::lenient::{LenientCount, OptionalStr};
use crate::dialect::{
    BlockWriter, DecodeResult, DeltaQueue, SseEvent, StreamDecoder, read_json, started, token_usage,
};

/// Largest provider data of one part in bytes. Signatures and code have thousands; an image has
/// millions and is dropped.
const PROVIDER_DATA_BYTES_MAX: usize = 256 << 10;

/// [`StreamDecoder`] of one Gemini answer.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    has_started: bool,
    has_stopped: bool,
    has_calls: bool,
    /// The open text block, which further text of the same kind extends.
    open_block: Option<(PartKind, u32)>,
    blocks: BlockWriter,
    usage: UsageMetadata,
    /// The block of the call whose parts arrive, and its arguments so far.
    open_call: Option<(u32, PartialArgs)>,
    /// The sources that the answer quotes, each as a line.
    sources: Vec<String>,
    /// Set once the answer has ended and only token counts are missing.
    ending: Option<AnswerEnding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Text,
    Thought,
}

impl StreamDecoder for GeminiDecoder {
    fn step(&mut self, frame: SseEvent<'_>, out: &mut DeltaQueue) -> DecodeResult {
        let data = frame.data.trim();
        if self.has_stopped || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let chunk = read_json(data)?;
        std::mem::swap(&mut self.blocks.out, out);
        let applied = self.apply_chunk(chunk);
        std::mem::swap(&mut self.blocks.out, out);
        applied
    }

    fn end(&mut self, out: &mut DeltaQueue) -> DecodeResult {
        match (self.has_stopped, self.ending) {
            (true, _) => Ok(()),
            (false, Some(ending)) => {
                out.push_back(self.stop(ending));
                Ok(())
            }
            (false, None) => Err(ModelError::cut_off(self.blocks.next > 0)),
        }
    }

    fn usage_so_far(&self) -> TokenUsage {
        let tokens = LenientCount::or_zero;
        let usage = self.usage;
        let reasoning_tokens = tokens(usage.thoughts_token_count);
        let input = tokens(usage.prompt_token_count)
            .saturating_add(tokens(usage.tool_use_prompt_token_count));
        let output = tokens(usage.candidates_token_count).saturating_add(reasoning_tokens);
        TokenUsage {
            reasoning_tokens,
            cached_tokens: tokens(usage.cached_content_token_count),
            ..token_usage(input, output, usage.total_token_count)
        }
    }
}

impl GeminiDecoder {
    fn apply_chunk(&mut self, chunk: GeminiChunk<'_>) -> DecodeResult {
        if let Some(error) = &chunk.error {
            return Err(error::classify(error));
        }
        if !std::mem::replace(&mut self.has_started, true) {
            self.blocks.out.extend(started(chunk.response_id));
        }
        let candidates = chunk.candidates.unwrap_or_default();
        let block_reason = chunk.prompt_feedback.map(|feedback| feedback.block_reason);
        let is_blocked = block_reason.is_some_and(|reason| !reason.as_str().is_empty());
        if is_blocked && candidates.is_empty() {
            return Err(LlmErrorClass::Provider.into());
        }
        let is_first = |candidate: &CandidateChunk<'_>| LenientCount::or_zero(candidate.index) == 0;
        if let Some(candidate) = candidates.into_iter().find(is_first) {
            self.push_candidate(candidate)?;
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage = usage;
            // The last frame has both; wait for the counts of a server that sends them later.
            if let Some(ending) = self.ending {
                let stop = self.stop(ending);
                self.blocks.out.push_back(stop);
            }
        }
        Ok(())
    }

    fn push_candidate(&mut self, candidate: CandidateChunk<'_>) -> DecodeResult {
        let content = candidate.content.and_then(|content| content.parts);
        for part in content.unwrap_or_default() {
            self.push_part(part)?;
        }
        let citations = candidate.citation_metadata.and_then(|list| list.citations);
        for citation in citations.unwrap_or_default() {
            self.add_source(&citation);
        }
        match candidate.finish_reason.as_str() {
            "" | "FINISH_REASON_UNSPECIFIED" => {}
            "MAX_TOKENS" | "CONTINUATION" => self.ending = Some(AnswerEnding::Truncated),
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
                // A retry may succeed.
                return Err(ModelError::transient(LlmErrorClass::Provider));
            }
            reason if is_filter(reason) && self.blocks.next == 0 => {
                // An empty answer would hide the filter.
                return Err(LlmErrorClass::Provider.into());
            }
            // `STOP`, a filter that cut the rest off, and unknown reasons.
            _ => self.ending = Some(AnswerEnding::Complete),
        }
        if self.ending == Some(AnswerEnding::Complete) {
            self.end_open_call();
        }
        if self.ending.is_some() {
            self.push_sources()?;
        }
        Ok(())
    }

    /// Adds a source, once.
    fn add_source(&mut self, citation: &Citation<'_>) {
        let uri = citation.uri.as_str();
        let fields = [citation.title.as_str(), uri];
        let mut line = fields.map(one_line).join(" ").trim().to_owned();
        if !citation.license.as_str().is_empty() {
            line += &format!(" ({})", one_line(citation.license.as_str()));
        }
        let is_known = self.sources.contains(&line);
        if !uri.is_empty() && !is_known && self.sources.len() < SOURCES_MAX {
            self.sources.push(line);
        }
    }

    /// Emits the sources as a text block of its own.
    fn push_sources(&mut self) -> DecodeResult {
        let sources = std::mem::take(&mut self.sources);
        if sources.is_empty() || self.has_calls {
            return Ok(());
        }
        let lines = sources.iter().enumerate();
        let lines: String = lines
            .map(|(index, source)| format!("\n[{}] {source}", index + 1))
            .collect();
        let block = self.open_next()?;
        let text = format!("\n{lines}");
        self.blocks.out.push_back(Delta::Text { block, text });
        Ok(())
    }

    fn push_part(&mut self, part: ContentPart<'_>) -> DecodeResult {
        if let Some(call) = part.call {
            return match self.open_call {
                Some(_) if call.name.as_str().is_empty() => self.continue_call(call),
                Some(_) | None => self.push_call(call, part.signature),
            };
        }
        if part.is_empty() {
            return Ok(());
        }
        self.end_open_call();
        if part.text.0.is_some() || part.other_fields.is_empty() {
            return self.push_text(part);
        }
        self.push_opaque(part)
    }

    fn push_text(&mut self, part: ContentPart<'_>) -> DecodeResult {
        let kind = match part.is_thought {
            true => PartKind::Thought,
            false => PartKind::Text,
        };
        let text = part.text.into_non_empty();
        let signature = part.signature.into_non_empty();
        if text.is_none() && signature.is_none() {
            return Ok(());
        }
        let block = match self.open_block {
            Some((open_kind, block)) if open_kind == kind => block,
            Some(_) | None => self.open_next()?,
        };
        self.open_block = Some((kind, block)).filter(|_| signature.is_none());
        match (kind, text) {
            (PartKind::Text, Some(text)) => self.blocks.out.push_back(Delta::Text { block, text }),
            (PartKind::Text, None) => {}
            (PartKind::Thought, text) => self.blocks.out.push_back(Delta::Thinking {
                block,
                text: text.unwrap_or_default(),
                signature: signature.clone(),
            }),
        }
        if let Some(signature) = signature {
            self.push_provider_data(block, with_signature(Map::new(), Some(signature)));
        }
        Ok(())
    }

    fn push_call(&mut self, call: FunctionCall<'_>, signature: OptionalStr<'_>) -> DecodeResult {
        let name = call.name.into_non_empty();
        let name = name.ok_or_else(ModelError::malformed)?;
        let id = call.id.into_non_empty();
        self.end_open_call();
        let block = self.open_next()?;
        self.has_calls = true;
        self.blocks.out.push_back(Delta::ToolStart {
            block,
            name,
            provider_id: id.clone(),
        });
        let id = id.map(|id| ("id".to_owned(), Value::String(id)));
        let data = with_signature(id.into_iter().collect(), signature.into_non_empty());
        if !data.is_empty() {
            self.push_provider_data(block, data);
        }
        let is_partial = call.will_continue == Some(true) || call.partial_args.is_some();
        if !is_partial {
            let args = call.args.map(|args| args.get().to_owned());
            let input = args.map(|fragment| Delta::ToolInput { block, fragment });
            self.blocks.out.extend(input);
            self.blocks.out.push_back(Delta::ToolEnd { block });
            return Ok(());
        }
        let mut args = match call.args {
            Some(whole) => PartialArgs::of(read_json(whole.get())?, whole.get().len()),
            None => PartialArgs::default(),
        };
        for part in call.partial_args.into_iter().flatten() {
            args.push(part)?;
        }
        self.open_call = Some((block, args));
        if call.will_continue != Some(true) {
            self.end_open_call();
        }
        Ok(())
    }

    /// Adds a part to the call that is open.
    fn continue_call(&mut self, call: FunctionCall<'_>) -> DecodeResult {
        if let Some((_, args)) = &mut self.open_call {
            for part in call.partial_args.into_iter().flatten() {
                args.push(part)?;
            }
        }
        if call.will_continue != Some(true) {
            self.end_open_call();
        }
        Ok(())
    }

    /// Ends the call whose parts arrived: no more follow.
    fn end_open_call(&mut self) {
        if let Some((block, args)) = self.open_call.take() {
            let fragment = args.into_json();
            let deltas = [
                Delta::ToolInput { block, fragment },
                Delta::ToolEnd { block },
            ];
            self.blocks.out.extend(deltas);
        }
    }

    /// A part that is not decoded: code, an image, a tool of the vendor's own.
    fn push_opaque(&mut self, part: ContentPart<'_>) -> DecodeResult {
        let fields = part.other_fields.iter();
        let bytes: usize = fields.map(|(name, raw)| name.len() + raw.get().len()).sum();
        if bytes > PROVIDER_DATA_BYTES_MAX {
            self.open_block = None;
            return Ok(());
        }
        let mut fields = Map::new();
        for (name, raw) in part.other_fields {
            fields.insert(name, read_json(raw.get())?);
        }
        let part_fields = with_signature(fields, part.signature.into_non_empty());
        let block = self.open_next()?;
        let data = [("part".to_owned(), Value::Object(part_fields))];
        self.push_provider_data(block, data.into_iter().collect());
        Ok(())
    }

    /// Opens the next block; the one before is closed.
    fn open_next(&mut self) -> DecodeResult<u32> {
        self.open_block = None;
        if self.blocks.next >= BLOCKS_MAX {
            return Err(ModelError::malformed());
        }
        Ok(self.blocks.open())
    }

    /// Ends the answer; returns its last delta.
    fn stop(&mut self, ending: AnswerEnding) -> Delta {
        self.has_stopped = true;
        Delta::Stop {
            reason: ending.stop_reason(self.has_calls),
            usage: self.usage_so_far(),
        }
    }

    fn push_provider_data(&mut self, block: u32, data: Map<String, Value>) {
        let data = Value::Object(data);
        self.blocks
            .out
            .push_back(Delta::ProviderData { block, data });
    }
}

/// Most characters of a field of a source.
const SOURCE_CHARS_MAX: usize = 500;
/// Most sources of an answer that are listed.
const SOURCES_MAX: usize = 50;

/// A field of a source without line breaks, bounded.
fn one_line(text: &str) -> String {
    let letters = text.chars().filter(|letter| !letter.is_control());
    letters.take(SOURCE_CHARS_MAX).collect()
}

/// Adds the signature to provider data, unless it is too large.
fn with_signature(mut data: Map<String, Value>, signature: Option<String>) -> Map<String, Value> {
    let signature = signature.filter(|signature| signature.len() <= PROVIDER_DATA_BYTES_MAX);
    if let Some(signature) = signature {
        data.insert("thoughtSignature".into(), signature.into());
    }
    data
}

/// True for finish reasons of the vendor's content filters.
fn is_filter(reason: &str) -> bool {
    matches!(
        reason,
        "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "OTHER"
    ) || reason.starts_with("IMAGE_")
}
