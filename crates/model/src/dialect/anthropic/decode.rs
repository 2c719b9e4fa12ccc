//! Decodes a Messages stream into [`Delta`]s.
//!
//! State is kept by the vendor's block index. A signature arrives in pieces and is emitted once,
//! with the end of its block (S3-055). A block of an unknown kind emits no content and is kept as
//! provider data. A tool use without input ends when another block follows or when the message
//! ends, unless the message was truncated: then its input may be missing. Only `message_stop`
//! completes a message.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, TokenUsage};

use super::block::{BlockOpening, OpenBlock};
use super::block_order::BlockOrder;
use super::chunk::{
    AnthropicUsage, BlockDelta, BlockKind, BlockPiece, BlockStart, BlockStop, BlockTag, DeltaTag,
    EventKind, EventTag, MessageDelta, MessageStartEvent, PieceKind,
};
use crate::delta::{Delta, ModelError};
use crate::dialect::lenient::LenientCount;
use crate::dialect::{SseFrame, StreamDecoder, error_class};

/// Upper limit of signatures and opaque blocks in one message, in bytes: a hundred times the usual
/// size, and less than a message may have.
const OPAQUE_BYTES_MAX: usize = 1024 * 1024;

/// [`StreamDecoder`] of one Messages answer.
#[derive(Debug, Default)]
pub(super) struct MessagesDecoder {
    order: BlockOrder,
    /// By the vendor's index: the slot in [`BlockOrder`], and the block's state.
    blocks: BTreeMap<u64, (u64, OpenBlock)>,
    /// Slots of closed tool uses without input whose end is not emitted yet.
    without_input: Vec<u64>,
    counts: AnthropicUsage,
    ending: Option<MessageEnding>,
    opaque_bytes: usize,
    has_started: bool,
    has_output: bool,
    has_tool_use: bool,
    is_done: bool,
}

/// Why a message ended; [`message_ending`] translates the vendor's reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageEnding {
    /// Complete: end of turn or tool use.
    Complete,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The token limit or the context window was reached.
    Truncated,
    /// The vendor's safety filter stopped the answer.
    Refused,
}

impl StreamDecoder for MessagesDecoder {
    fn step(&mut self, frame: SseFrame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.is_done || frame.data.is_empty() {
            return Ok(());
        }
        let data = frame.data;
        match kind(frame)? {
            EventKind::ContentBlockDelta => self.block_delta(data, out),
            EventKind::ContentBlockStart => self.block_start(data, out),
            EventKind::ContentBlockStop => {
                self.block_stop(read::<BlockStop>(data)?.index, out);
                Ok(())
            }
            EventKind::MessageStart => self.message_start(read(data)?, out),
            EventKind::MessageDelta => self.message_delta(&read(data)?),
            EventKind::MessageStop => self.finish(out),
            EventKind::Error => {
                self.is_done = true;
                let error: Value = serde_json::from_str(data).unwrap_or_default();
                Err(error_class::classify_event(
                    error.get("error").unwrap_or(&error),
                ))
            }
            EventKind::Ping | EventKind::Unknown => Ok(()),
        }
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.is_done {
            return Ok(());
        }
        Err(if self.has_output {
            LlmErrorClass::Transport.into()
        } else {
            ModelError::transient(LlmErrorClass::Transport)
        })
    }

    fn usage_so_far(&self) -> TokenUsage {
        self.usage()
    }

    fn cache_written_tokens(&self) -> u64 {
        self.counts
            .cache_creation_input_tokens
            .unwrap_or_default()
            .0
    }
}

/// The [`EventKind`] of a frame: by its event name, else by its data.
fn kind(frame: SseFrame<'_>) -> Result<EventKind, ModelError> {
    let tag = || read::<EventTag>(frame.data).map(|tag| tag.kind);
    match frame.event.map(EventKind::from_event_name) {
        None => tag(),
        // The data of an unknown event may have any shape.
        Some(EventKind::Unknown) => Ok(tag().unwrap_or_default()),
        Some(kind) => Ok(kind),
    }
}

fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(|_| malformed())
}

fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).with_location("malformed")
}

impl MessagesDecoder {
    fn message_start(
        &mut self,
        start: MessageStartEvent,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let message = start.message.unwrap_or_default();
        self.merge_counts(message.usage);
        let id = message.id.filter(|id| !id.is_empty());
        if let Some(response_id) = id
            && !self.has_started
            && !self.has_output
        {
            self.has_started = true;
            out.push_back(Delta::Started { response_id });
        }
        Ok(())
    }

    fn block_start(&mut self, data: &str, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let BlockStart {
            index,
            content_block,
        } = read(data)?;
        // A start with an index in use ends the open block of that index.
        self.block_stop(index, out);
        let slot = self.open_slot(index, out)?;
        let raw = content_block.get();
        let kind = read::<BlockTag>(raw)?.kind;
        let opened = match kind {
            BlockKind::Unknown => BlockOpening::opaque(read(raw)?, raw.len()),
            BlockKind::Text
            | BlockKind::Thinking
            | BlockKind::RedactedThinking
            | BlockKind::ToolUse => {
                BlockOpening::from_known(kind, read(raw)?).ok_or_else(malformed)?
            }
        };
        self.count_opaque(opened.opaque_bytes)?;
        self.has_tool_use |= kind == BlockKind::ToolUse;
        self.blocks.insert(index, (slot, opened.state));
        for delta in opened.deltas {
            self.emit(slot, delta, out);
        }
        Ok(())
    }

    /// Opens a slot; tool uses before it are complete.
    fn open_slot(&mut self, index: u64, out: &mut VecDeque<Delta>) -> Result<u64, ModelError> {
        let slot = self.order.open(index, out)?;
        for complete in self.without_input.extract_if(.., |earlier| *earlier < slot) {
            self.order.push(complete, Delta::ToolEnd { block: 0 }, out);
        }
        Ok(slot)
    }

    fn count_opaque(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.opaque_bytes += bytes;
        if self.opaque_bytes > OPAQUE_BYTES_MAX {
            return Err(malformed());
        }
        Ok(())
    }

    fn block_delta(&mut self, data: &str, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let BlockDelta { index, delta } = match serde_json::from_str(data) {
            Ok(delta) => delta,
            Err(_) => unknown_delta(data)?,
        };
        if !self.blocks.contains_key(&index) {
            match OpenBlock::without_start(delta.kind) {
                Some(block) => {
                    let slot = self.open_slot(index, out)?;
                    self.blocks.insert(index, (slot, block));
                }
                None if delta.kind == PieceKind::InputJsonDelta => return Err(malformed()),
                None => return Ok(()),
            }
        }
        let Some((slot, block)) = self.blocks.get_mut(&index) else {
            return Ok(());
        };
        let slot = *slot;
        let mut opaque_bytes = 0;
        let delta = block.apply(delta, &mut opaque_bytes);
        self.count_opaque(opaque_bytes)?;
        if let Some(delta) = delta {
            self.emit(slot, delta, out);
        }
        Ok(())
    }

    fn block_stop(&mut self, index: u64, out: &mut VecDeque<Delta>) {
        let Some((slot, block)) = self.blocks.get_mut(&index) else {
            return;
        };
        let slot = *slot;
        if matches!(block, OpenBlock::Closed) {
            return;
        }
        if block.has_no_input() {
            self.without_input.push(slot);
        }
        for delta in block.close() {
            self.emit(slot, delta, out);
        }
        self.order.stop(slot, out);
    }

    fn emit(&mut self, slot: u64, delta: Delta, out: &mut VecDeque<Delta>) {
        self.has_output = true;
        self.order.push(slot, delta, out);
    }

    fn message_delta(&mut self, delta: &MessageDelta<'_>) -> Result<(), ModelError> {
        self.merge_counts(delta.usage);
        let ending = delta.delta.as_ref();
        let reason = ending.and_then(|ending| ending.stop_reason.as_ref());
        if let Some(reason) = reason {
            self.ending = Some(message_ending(reason.as_str()));
        }
        Ok(())
    }

    /// Merges token counts: they only grow, and servers send some early and some late.
    fn merge_counts(&mut self, reported: Option<AnthropicUsage>) {
        let Some(reported) = reported else { return };
        let counts = &mut self.counts;
        counts.input_tokens = counts.input_tokens.max(reported.input_tokens);
        counts.output_tokens = counts.output_tokens.max(reported.output_tokens);
        counts.cache_read_input_tokens = counts
            .cache_read_input_tokens
            .max(reported.cache_read_input_tokens);
        counts.cache_creation_input_tokens = counts
            .cache_creation_input_tokens
            .max(reported.cache_creation_input_tokens);
        if reported.output_tokens_details.is_some() {
            counts.output_tokens_details = reported.output_tokens_details;
        }
    }

    fn finish(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.is_done = true;
        let indices: Vec<u64> = self.blocks.keys().copied().collect();
        for index in indices {
            self.block_stop(index, out);
        }
        let is_truncated = matches!(
            self.ending,
            Some(MessageEnding::Truncated | MessageEnding::Refused)
        );
        for slot in self.without_input.drain(..).filter(|_| !is_truncated) {
            self.order.push(slot, Delta::ToolEnd { block: 0 }, out);
        }
        self.order.release_all(out);
        let reason = match self.ending {
            // An empty answer would hide the refusal.
            Some(MessageEnding::Refused) if !self.has_output => return Err(malformed()),
            Some(MessageEnding::Refused) => StopReason::EndTurn,
            Some(MessageEnding::Truncated) => StopReason::MaxTokens,
            Some(MessageEnding::StopSequence | MessageEnding::Complete) | None
                if self.has_tool_use =>
            {
                StopReason::ToolUse
            }
            Some(MessageEnding::StopSequence) => StopReason::StopSequence,
            Some(MessageEnding::Complete) | None => StopReason::EndTurn,
        };
        out.push_back(Delta::Stop {
            reason,
            usage: self.usage(),
        });
        Ok(())
    }

    /// The total [`Usage`]. The vendor reports cache reads and cache writes besides the input
    /// tokens.
    fn usage(&self) -> TokenUsage {
        let counts = self.counts;
        let tokens = |count: Option<LenientCount>| count.unwrap_or_default().0;
        let cached_tokens = tokens(counts.cache_read_input_tokens);
        let input_tokens = tokens(counts.input_tokens)
            .saturating_add(cached_tokens)
            .saturating_add(tokens(counts.cache_creation_input_tokens));
        let output_tokens = tokens(counts.output_tokens);
        let details = counts.output_tokens_details.unwrap_or_default();
        TokenUsage {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            reasoning_tokens: tokens(details.thinking_tokens),
            cached_tokens,
            cost_usd: 0.0,
        }
    }
}

/// A delta of an unknown kind that cannot be parsed; an error if its kind is known.
fn unknown_delta(data: &str) -> Result<BlockDelta, ModelError> {
    let DeltaTag { index, delta } = read(data)?;
    let unknown = delta.kind == PieceKind::Unknown;
    unknown
        .then(|| BlockDelta {
            index,
            delta: BlockPiece::default(),
        })
        .ok_or_else(malformed)
}

/// Translates the vendor's stop reason. An unknown reason counts as complete, also `pause_turn`,
/// which only the vendor's own tools cause.
fn message_ending(reason: &str) -> MessageEnding {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => MessageEnding::Truncated,
        "stop_sequence" => MessageEnding::StopSequence,
        "refusal" => MessageEnding::Refused,
        _ => MessageEnding::Complete,
    }
}
