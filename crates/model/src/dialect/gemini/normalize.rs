//! The frames of a Gemini stream as deltas.
//!
//! The vendor numbers nothing: words that follow words are one block, and whatever else comes opens
//! the next. A seal closes its block, since it goes back on that very part. Calls come whole
//! (S3-064). The end is a frame with a reason; there is no word behind it.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;
use turnwire_event::{StopReason, Usage};

use super::chunk::{self, Call, Candidate, Chunk, Part};
use super::failure;
use crate::delta::{Delta, ModelError};
use crate::dialect::lent::Words;
use crate::dialect::loose::Count;
use crate::dialect::{Decoder, Frame};

/// Bytes of the answer's id. The vendor's own are below 100.
const RESPONSE_ID_BYTES_MAX: usize = 512;

/// Bytes kept of one part. Seals and code have thousands; an image has millions and is not kept.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    has_begun: bool,
    has_stopped: bool,
    has_calls: bool,
    /// The block that more words would go to.
    open: Option<(Voice, u32)>,
    next_block: u32,
    usage: chunk::Usage,
    /// How it ended, if only the count of tokens is missing.
    ending: Option<Ending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Answer,
    Thought,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Said,
    Cut,
}

impl Decoder for Reader {
    fn step(&mut self, frame: Frame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if self.has_stopped || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| malformed())?;
        self.take(chunk, out)
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match (self.has_stopped, self.ending) {
            (true, _) => Ok(()),
            (false, Some(ending)) => {
                self.stop(ending, out);
                Ok(())
            }
            (false, None) if self.next_block > 0 => Err(LlmErrorClass::Transport.into()),
            (false, None) => Err(ModelError::passing(LlmErrorClass::Transport)),
        }
    }

    fn usage_so_far(&self) -> Usage {
        counted(self.usage)
    }
}

impl Reader {
    fn take(&mut self, chunk: Chunk<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(error) = &chunk.error {
            return Err(failure::of(error));
        }
        self.begin(chunk.response_id, out);
        let candidates = chunk.candidates.unwrap_or_default();
        let feedback = chunk.prompt_feedback;
        let is_blocked =
            feedback.is_some_and(|feedback| !feedback.block_reason.as_str().is_empty());
        if is_blocked && candidates.is_empty() {
            return Err(failure::withheld());
        }
        let first = candidates.into_iter().find(|one| count(one.index) == 0);
        if let Some(candidate) = first {
            self.candidate(candidate, out)?;
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage = usage;
            // The last frame has both; a server that counts afterwards is waited for.
            if let Some(ending) = self.ending {
                self.stop(ending, out);
            }
        }
        Ok(())
    }

    fn begin(&mut self, id: Words<'_>, out: &mut VecDeque<Delta>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let id = id.said().filter(|id| id.len() <= RESPONSE_ID_BYTES_MAX);
        out.extend(id.map(|response_id| Delta::Begun { response_id }));
    }

    fn candidate(
        &mut self,
        candidate: Candidate<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let content = candidate.content.and_then(|content| content.parts);
        for part in content.unwrap_or_default() {
            self.part(part, out)?;
        }
        match candidate.finish_reason.as_str() {
            "" | "FINISH_REASON_UNSPECIFIED" => {}
            "MAX_TOKENS" | "CONTINUATION" => self.ending = Some(Ending::Cut),
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
                return Err(failure::slipped());
            }
            reason if is_filter(reason) && self.next_block == 0 => {
                // Nothing was said, and an empty answer would hide why.
                return Err(failure::withheld());
            }
            // `STOP`, a filter that cut the rest, and reasons to come.
            _ => self.ending = Some(Ending::Said),
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(call) = part.call {
            return self.call(call, part.signature, out);
        }
        if part.text.0.is_some() || part.rest.is_empty() {
            return self.words(part, out);
        }
        self.unread(part, out)
    }

    fn words(&mut self, part: Part<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let voice = match part.is_thought {
            true => Voice::Thought,
            false => Voice::Answer,
        };
        let text = part.text.said();
        let signature = part.signature.said();
        if text.is_none() && signature.is_none() {
            return Ok(());
        }
        let block = match self.open {
            Some((open, block)) if open == voice => block,
            Some(_) | None => self.next()?,
        };
        self.open = Some((voice, block)).filter(|_| signature.is_none());
        match (voice, text) {
            (Voice::Answer, Some(text)) => out.push_back(Delta::Text { block, text }),
            (Voice::Answer, None) => {}
            (Voice::Thought, text) => out.push_back(Delta::Thinking {
                block,
                text: text.unwrap_or_default(),
                signature: signature.clone(),
            }),
        }
        if let Some(signature) = signature {
            keep(block, sealed(Map::new(), Some(signature)), out);
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: Call<'_>,
        signature: Words<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let name = call.name.said().ok_or_else(malformed)?;
        let id = call.id.said();
        let block = self.next()?;
        self.has_calls = true;
        out.push_back(Delta::ToolStart {
            block,
            name,
            provider_id: id.clone(),
        });
        let args = call.args.map(|args| args.get().to_owned());
        out.extend(args.map(|fragment| Delta::ToolInput { block, fragment }));
        let id = id.map(|id| ("id".to_owned(), Value::String(id)));
        let kept = sealed(id.into_iter().collect(), signature.said());
        if !kept.is_empty() {
            keep(block, kept, out);
        }
        out.push_back(Delta::ToolEnd { block });
        Ok(())
    }

    /// A part of a kind that nobody reads here: code, an image, a tool of the vendor's own.
    fn unread(&mut self, part: Part<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let fields = part.rest.iter();
        let bytes: usize = fields.map(|(name, raw)| name.len() + raw.get().len()).sum();
        if bytes > KEPT_BYTES_MAX {
            self.open = None;
            return Ok(());
        }
        let mut fields = Map::new();
        for (name, raw) in part.rest {
            let value = serde_json::from_str(raw.get()).map_err(|_| malformed())?;
            fields.insert(name, value);
        }
        let whole = sealed(fields, part.signature.said());
        let block = self.next()?;
        let kept = [("part".to_owned(), Value::Object(whole))];
        keep(block, kept.into_iter().collect(), out);
        Ok(())
    }

    /// The next block's number; no words go to the one before any more.
    fn next(&mut self) -> Result<u32, ModelError> {
        self.open = None;
        if self.next_block >= BLOCKS_MAX {
            return Err(malformed());
        }
        self.next_block += 1;
        Ok(self.next_block - 1)
    }

    fn stop(&mut self, ending: Ending, out: &mut VecDeque<Delta>) {
        self.has_stopped = true;
        out.push_back(Delta::Stop {
            reason: match ending {
                Ending::Cut => StopReason::MaxTokens,
                Ending::Said if self.has_calls => StopReason::ToolUse,
                Ending::Said => StopReason::EndTurn,
            },
            usage: counted(self.usage),
        });
    }
}

fn keep(block: u32, data: Map<String, Value>, out: &mut VecDeque<Delta>) {
    let data = Value::Object(data);
    out.push_back(Delta::Keep { block, data });
}

/// What is kept, with the seal if there is one of a size that seals have.
fn sealed(mut kept: Map<String, Value>, signature: Option<String>) -> Map<String, Value> {
    let signature = signature.filter(|signature| signature.len() <= KEPT_BYTES_MAX);
    if let Some(signature) = signature {
        kept.insert("thoughtSignature".into(), signature.into());
    }
    kept
}

/// Reasons that say the vendor withheld the answer for what is in it.
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

fn count(count: Option<Count>) -> u64 {
    count.unwrap_or_default().0
}

fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).at("malformed")
}

fn counted(usage: chunk::Usage) -> Usage {
    let read = count(usage.prompt_token_count);
    let read = read.saturating_add(count(usage.tool_use_prompt_token_count));
    let thought = count(usage.thoughts_token_count);
    let written = count(usage.candidates_token_count);
    let written = written.saturating_add(thought);
    let total = usage.total_token_count;
    Usage {
        input_tokens: read,
        output_tokens: written,
        total_tokens: total.map_or(read.saturating_add(written), |total| total.0),
        reasoning_tokens: thought,
        cached_tokens: count(usage.cached_content_token_count),
        cost_usd: 0.0,
    }
}
