//! Decodes a Messages stream into [`Delta`]s.
//!
//! State is kept by the vendor's block index. A signature arrives in pieces and is emitted once,
//! with the end of its block (S3-055). A block of an unknown kind emits no content and is kept as
//! provider data. A tool use without input ends when another block follows or when the message
//! ends, unless the message was truncated: then its input may be missing. Only `message_stop`
//! completes a message.

use std::collections::BTreeMap;

use turnwire_event::TokenUsage;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;

use super::block::{BlockOpening, OpenBlock};
use super::chunk::{
    AnthropicUsage, BlockDelta, BlockKind, BlockPiece, BlockStart, BlockStop, DeltaTag, EventKind,
    MessageDelta, MessageStartEvent, PieceKind, TypeTag,
};
use crate::delta::{Delta, ModelError};
use crate::dialect::answer_ending::AnswerEnding;
use crate::dialect::block_order::BlockOrder;
use crate::dialect::lenient::LenientCount;
use crate::dialect::{
    DecodeResult, DeltaQueue, SseEvent, StreamDecoder, error_class, read_json, token_usage,
};

/// Upper limit of signatures and opaque blocks in one message, in bytes: a hundred times the usual
/// size, and less than a message may have.
const OPAQUE_BYTES_MAX: usize = 1024 * 1024;

/// Upper limit of the memory of buffered deltas in bytes, far above a block that was merely
/// overtaken. Beyond it a gap will not be filled.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;

/// Part number of a block: a block has one part.
const ONLY: u32 = 0;

/// [`StreamDecoder`] of one Messages answer.
#[derive(Debug, Default)]
pub(super) struct MessagesDecoder {
    /// The blocks of the message, each with its index there.
    order: BlockOrder<u64, BUFFERED_BYTES_MAX, { usize::MAX }>,
    /// By the vendor's index: the position in `order`, and the block's state.
    blocks: BTreeMap<u64, (usize, OpenBlock)>,
    /// Indices and positions in `order` of closed tool uses without input whose end is not emitted
    /// yet.
    without_input: Vec<(u64, usize)>,
    counts: AnthropicUsage,
    ending: AnswerEnding,
    opaque_bytes: usize,
    has_started: bool,
    has_output: bool,
    has_tool_use: bool,
    is_done: bool,
}

impl StreamDecoder for MessagesDecoder {
    fn step(&mut self, frame: SseEvent<'_>, out: &mut DeltaQueue) -> DecodeResult {
        if self.is_done || frame.data.is_empty() {
            return Ok(());
        }
        let kind = kind(frame)?;
        std::mem::swap(&mut self.order.out, out);
        let applied = self.apply_event(kind, frame.data);
        std::mem::swap(&mut self.order.out, out);
        applied
    }

    fn end(&mut self, _: &mut DeltaQueue) -> DecodeResult {
        match self.is_done {
            true => Ok(()),
            false => Err(ModelError::cut_off(self.has_output)),
        }
    }

    /// The vendor reports cache reads and cache writes besides the input tokens.
    fn usage_so_far(&self) -> TokenUsage {
        let tokens = LenientCount::or_zero;
        let counts = self.counts;
        let cached_tokens = tokens(counts.cache_read_input_tokens);
        let input_tokens = tokens(counts.input_tokens)
            .saturating_add(cached_tokens)
            .saturating_add(self.cache_written_tokens());
        let details = counts.output_tokens_details.unwrap_or_default();
        TokenUsage {
            reasoning_tokens: tokens(details.thinking_tokens),
            cached_tokens,
            ..token_usage(input_tokens, tokens(counts.output_tokens), None)
        }
    }

    fn cache_written_tokens(&self) -> u64 {
        LenientCount::or_zero(self.counts.cache_creation_input_tokens)
    }
}

/// The [`EventKind`] of a frame: by its event name, else by its data.
fn kind(frame: SseEvent<'_>) -> DecodeResult<EventKind> {
    let tag = || read_json::<TypeTag<EventKind>>(frame.data).map(|tag| tag.kind);
    match frame.event.map(EventKind::from_event_name) {
        None => tag(),
        // The data of an unknown event may have any shape.
        Some(EventKind::Unknown) => Ok(tag().unwrap_or_default()),
        Some(kind) => Ok(kind),
    }
}

impl MessagesDecoder {
    fn apply_event(&mut self, kind: EventKind, data: &str) -> DecodeResult {
        match kind {
            EventKind::ContentBlockDelta => self.block_delta(data)?,
            EventKind::ContentBlockStart => self.block_start(data)?,
            EventKind::ContentBlockStop => self.block_stop(read_json::<BlockStop>(data)?.index)?,
            EventKind::MessageStart => self.message_start(read_json(data)?),
            EventKind::MessageDelta => self.message_delta(&read_json(data)?),
            EventKind::MessageStop => self.finish()?,
            EventKind::Error => {
                self.is_done = true;
                return Err(error_class::classify_event_data(data));
            }
            EventKind::Ping | EventKind::Unknown => {}
        }
        Ok(())
    }

    fn message_start(&mut self, start: MessageStartEvent) {
        let message = start.message.unwrap_or_default();
        self.merge_counts(message.usage);
        let id = message.id.filter(|id| !id.is_empty());
        if let Some(response_id) = id
            && !self.has_started
            && !self.has_output
        {
            self.has_started = true;
            self.order.out.push_back(Delta::Started { response_id });
        }
    }

    fn block_start(&mut self, data: &str) -> DecodeResult {
        let BlockStart {
            index,
            content_block,
        } = read_json(data)?;
        // A start with an index in use ends the open block of that index.
        self.block_stop(index)?;
        let position = self.open_block(index)?;
        let raw = content_block.get();
        let kind = read_json::<TypeTag<BlockKind>>(raw)?.kind;
        let opened = match kind {
            BlockKind::Unknown => BlockOpening::opaque(read_json(raw)?, raw.len()),
            _ => {
                BlockOpening::from_known(kind, read_json(raw)?).ok_or_else(ModelError::malformed)?
            }
        };
        self.count_opaque(opened.opaque_bytes)?;
        self.has_tool_use |= kind == BlockKind::ToolUse;
        self.blocks.insert(index, (position, opened.state));
        for delta in opened.deltas {
            self.emit(position, delta)?;
        }
        Ok(())
    }

    /// Opens a block and returns its position; tool uses before it are complete. An index that is
    /// used again counts as one after all others, as some servers need it.
    fn open_block(&mut self, index: u64) -> DecodeResult<usize> {
        if self.order.len() >= BLOCKS_MAX as usize {
            return Err(LlmErrorClass::Provider.into());
        }
        let index = self.order.unused_index(index);
        let index = index.ok_or(LlmErrorClass::Provider)?;
        let position = self.order.add(Some(index), index)?;
        let complete = |(earlier, _): &mut (u64, usize)| *earlier < index;
        for (_, position) in self.without_input.extract_if(.., complete) {
            self.order
                .push(position, ONLY, Delta::ToolEnd { block: 0 })?;
        }
        Ok(position)
    }

    fn count_opaque(&mut self, bytes: usize) -> DecodeResult {
        self.opaque_bytes += bytes;
        if self.opaque_bytes > OPAQUE_BYTES_MAX {
            return Err(ModelError::malformed());
        }
        Ok(())
    }

    fn block_delta(&mut self, data: &str) -> DecodeResult {
        let BlockDelta { index, delta } = match serde_json::from_str(data) {
            Ok(delta) => delta,
            Err(_) => unknown_delta(data)?,
        };
        if !self.blocks.contains_key(&index) {
            match OpenBlock::without_start(delta.kind) {
                Some(block) => {
                    let position = self.open_block(index)?;
                    self.blocks.insert(index, (position, block));
                }
                None if delta.kind == PieceKind::InputJsonDelta => {
                    return Err(ModelError::malformed());
                }
                None => return Ok(()),
            }
        }
        let Some(&mut (position, ref mut block)) = self.blocks.get_mut(&index) else {
            return Ok(());
        };
        let mut opaque_bytes = 0;
        let delta = block.apply(delta, &mut opaque_bytes);
        self.count_opaque(opaque_bytes)?;
        match delta {
            Some(delta) => self.emit(position, delta),
            None => Ok(()),
        }
    }

    fn block_stop(&mut self, index: u64) -> DecodeResult {
        let Some(&mut (position, ref mut block)) = self.blocks.get_mut(&index) else {
            return Ok(());
        };
        if matches!(block, OpenBlock::Closed) {
            return Ok(());
        }
        if block.has_no_input() {
            let index = *self.order.state(position);
            self.without_input.push((index, position));
        }
        for delta in block.close() {
            self.emit(position, delta)?;
        }
        self.order.finish(position)
    }

    fn emit(&mut self, position: usize, delta: Delta) -> DecodeResult {
        self.has_output = true;
        self.order.push(position, ONLY, delta)
    }

    fn message_delta(&mut self, delta: &MessageDelta<'_>) {
        self.merge_counts(delta.usage);
        let fields = delta.delta.as_ref();
        if let Some(reason) = fields.and_then(|fields| fields.stop_reason.as_ref()) {
            self.ending = answer_ending(reason.as_str());
        }
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

    fn finish(&mut self) -> DecodeResult {
        self.is_done = true;
        let indices: Vec<u64> = self.blocks.keys().copied().collect();
        for index in indices {
            self.block_stop(index)?;
        }
        let is_cut_short = self.ending.is_cut_short();
        for (_, position) in self.without_input.drain(..).filter(|_| !is_cut_short) {
            self.order
                .push(position, ONLY, Delta::ToolEnd { block: 0 })?;
        }
        self.order.release_all()?;
        // An empty answer would hide the refusal.
        if self.ending == AnswerEnding::Filtered && !self.has_output {
            return Err(ModelError::malformed());
        }
        self.order.out.push_back(Delta::Stop {
            reason: self.ending.stop_reason(self.has_tool_use),
            usage: self.usage_so_far(),
        });
        Ok(())
    }
}

/// A delta of an unknown kind that cannot be parsed; an error if its kind is known.
fn unknown_delta(data: &str) -> DecodeResult<BlockDelta> {
    match read_json(data)? {
        DeltaTag { index, delta } if delta.kind == PieceKind::Unknown => Ok(BlockDelta {
            index,
            delta: BlockPiece::default(),
        }),
        DeltaTag { .. } => Err(ModelError::malformed()),
    }
}

/// Translates the vendor's stop reason. An unknown reason counts as complete, also `pause_turn`,
/// which only the vendor's own tools cause.
fn answer_ending(reason: &str) -> AnswerEnding {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => AnswerEnding::Truncated,
        "stop_sequence" => AnswerEnding::StopSequence,
        "refusal" => AnswerEnding::Filtered,
        _ => AnswerEnding::Complete,
    }
}
