//! Decodes a Gemini stream into [`Delta`]s.
//!
//! The vendor has no block indices: adjacent text parts of one kind are one block, and any other
//! part opens the next block. A signature closes its block, since it must go back on the same part.
//! Function calls arrive complete (S3-064). A frame with a finish reason ends the answer.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;
use turnwire_event::{StopReason, TokenUsage};

use super::chunk::{self, CandidateChunk, ContentPart, FunctionCall, GeminiChunk};
use super::error;
use crate::delta::{Delta, ModelError};
use crate::dialect::lenient::LenientCount;
use crate::dialect::optional_str::OptionalStr;
use crate::dialect::{SseFrame, StreamDecoder};

/// Largest accepted response id in bytes. The vendor's ids are below 100.
const RESPONSE_ID_BYTES_MAX: usize = 512;

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
    next_block: u32,
    usage: chunk::UsageMetadata,
    /// Set once the answer has ended and only token counts are missing.
    ending: Option<CandidateEnding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Text,
    Thought,
}

/// Why a candidate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateEnding {
    Complete,
    Truncated,
}

impl StreamDecoder for GeminiDecoder {
    fn step(&mut self, frame: SseFrame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if self.has_stopped || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let chunk: GeminiChunk = serde_json::from_str(data).map_err(|_| malformed())?;
        self.apply_chunk(chunk, out)
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match (self.has_stopped, self.ending) {
            (true, _) => Ok(()),
            (false, Some(ending)) => {
                self.stop(ending, out);
                Ok(())
            }
            (false, None) if self.next_block > 0 => Err(LlmErrorClass::Transport.into()),
            (false, None) => Err(ModelError::transient(LlmErrorClass::Transport)),
        }
    }

    fn usage_so_far(&self) -> TokenUsage {
        total_usage(self.usage)
    }
}

impl GeminiDecoder {
    fn apply_chunk(
        &mut self,
        chunk: GeminiChunk<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if let Some(error) = &chunk.error {
            return Err(error::classify(error));
        }
        self.start(chunk.response_id, out);
        let candidates = chunk.candidates.unwrap_or_default();
        let feedback = chunk.prompt_feedback;
        let is_blocked =
            feedback.is_some_and(|feedback| !feedback.block_reason.as_str().is_empty());
        if is_blocked && candidates.is_empty() {
            return Err(error::blocked());
        }
        let first = candidates
            .into_iter()
            .find(|candidate| count(candidate.index) == 0);
        if let Some(candidate) = first {
            self.push_candidate(candidate, out)?;
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage = usage;
            // The last frame has both; wait for the counts of a server that sends them later.
            if let Some(ending) = self.ending {
                self.stop(ending, out);
            }
        }
        Ok(())
    }

    fn start(&mut self, id: OptionalStr<'_>, out: &mut VecDeque<Delta>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let id = id
            .into_non_empty()
            .filter(|id| id.len() <= RESPONSE_ID_BYTES_MAX);
        out.extend(id.map(|response_id| Delta::Started { response_id }));
    }

    fn push_candidate(
        &mut self,
        candidate: CandidateChunk<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let content = candidate.content.and_then(|content| content.parts);
        for part in content.unwrap_or_default() {
            self.push_part(part, out)?;
        }
        match candidate.finish_reason.as_str() {
            "" | "FINISH_REASON_UNSPECIFIED" => {}
            "MAX_TOKENS" | "CONTINUATION" => self.ending = Some(CandidateEnding::Truncated),
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
                return Err(error::malformed_call());
            }
            reason if is_filter(reason) && self.next_block == 0 => {
                // An empty answer would hide the filter.
                return Err(error::blocked());
            }
            // `STOP`, a filter that cut the rest off, and unknown reasons.
            _ => self.ending = Some(CandidateEnding::Complete),
        }
        Ok(())
    }

    fn push_part(
        &mut self,
        part: ContentPart<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if let Some(call) = part.call {
            return self.push_call(call, part.signature, out);
        }
        if part.text.0.is_some() || part.other_fields.is_empty() {
            return self.push_text(part, out);
        }
        self.push_opaque(part, out)
    }

    fn push_text(
        &mut self,
        part: ContentPart<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
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
            (PartKind::Text, Some(text)) => out.push_back(Delta::Text { block, text }),
            (PartKind::Text, None) => {}
            (PartKind::Thought, text) => out.push_back(Delta::Thinking {
                block,
                text: text.unwrap_or_default(),
                signature: signature.clone(),
            }),
        }
        if let Some(signature) = signature {
            push_provider_data(block, with_signature(Map::new(), Some(signature)), out);
        }
        Ok(())
    }

    fn push_call(
        &mut self,
        call: FunctionCall<'_>,
        signature: OptionalStr<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let name = call.name.into_non_empty().ok_or_else(malformed)?;
        let id = call.id.into_non_empty();
        let block = self.open_next()?;
        self.has_calls = true;
        out.push_back(Delta::ToolStart {
            block,
            name,
            provider_id: id.clone(),
        });
        let args = call.args.map(|args| args.get().to_owned());
        out.extend(args.map(|fragment| Delta::ToolInput { block, fragment }));
        let id = id.map(|id| ("id".to_owned(), Value::String(id)));
        let data = with_signature(id.into_iter().collect(), signature.into_non_empty());
        if !data.is_empty() {
            push_provider_data(block, data, out);
        }
        out.push_back(Delta::ToolEnd { block });
        Ok(())
    }

    /// A part that is not decoded: code, an image, a tool of the vendor's own.
    fn push_opaque(
        &mut self,
        part: ContentPart<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let fields = part.other_fields.iter();
        let bytes: usize = fields.map(|(name, raw)| name.len() + raw.get().len()).sum();
        if bytes > PROVIDER_DATA_BYTES_MAX {
            self.open_block = None;
            return Ok(());
        }
        let mut fields = Map::new();
        for (name, raw) in part.other_fields {
            let value = serde_json::from_str(raw.get()).map_err(|_| malformed())?;
            fields.insert(name, value);
        }
        let part_fields = with_signature(fields, part.signature.into_non_empty());
        let block = self.open_next()?;
        let data = [("part".to_owned(), Value::Object(part_fields))];
        push_provider_data(block, data.into_iter().collect(), out);
        Ok(())
    }

    /// Opens the next block; the one before is closed.
    fn open_next(&mut self) -> Result<u32, ModelError> {
        self.open_block = None;
        if self.next_block >= BLOCKS_MAX {
            return Err(malformed());
        }
        self.next_block += 1;
        Ok(self.next_block - 1)
    }

    fn stop(&mut self, ending: CandidateEnding, out: &mut VecDeque<Delta>) {
        self.has_stopped = true;
        out.push_back(Delta::Stop {
            reason: match ending {
                CandidateEnding::Truncated => StopReason::MaxTokens,
                CandidateEnding::Complete if self.has_calls => StopReason::ToolUse,
                CandidateEnding::Complete => StopReason::EndTurn,
            },
            usage: total_usage(self.usage),
        });
    }
}

fn push_provider_data(block: u32, data: Map<String, Value>, out: &mut VecDeque<Delta>) {
    let data = Value::Object(data);
    out.push_back(Delta::ProviderData { block, data });
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

fn count(count: Option<LenientCount>) -> u64 {
    count.unwrap_or_default().0
}

fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).with_location("malformed")
}

fn total_usage(usage: chunk::UsageMetadata) -> TokenUsage {
    let input = count(usage.prompt_token_count);
    let input = input.saturating_add(count(usage.tool_use_prompt_token_count));
    let reasoning = count(usage.thoughts_token_count);
    let output = count(usage.candidates_token_count);
    let output = output.saturating_add(reasoning);
    let total = usage.total_token_count;
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: total.map_or(input.saturating_add(output), |total| total.0),
        reasoning_tokens: reasoning,
        cached_tokens: count(usage.cached_content_token_count),
        cost_usd: 0.0,
    }
}
