//! Our deltas of a Messages stream.
//!
//! State is kept by the vendor's index. A signature comes in pieces and is told once, with the end
//! of its block (S3-055). A block of a kind that is not known here says nothing, but is kept whole
//! for the vendor. A tool without input ends when something stands behind it, or with the message,
//! unless that was cut: then its input may be what is missing. Only `message_stop` ends a message
//! well.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, Usage};

use super::block::{Open, Opened};
use super::chunk::{
    BlockDelta, BlockKind, BlockStart, BlockStop, BlockTag, DeltaTag, Kind, MessageDelta,
    MessageStart, Piece, PieceKind, Tagged, Usage as Counts,
};
use super::order::Order;
use crate::delta::{Delta, ModelError};
use crate::dialect::loose::Count;
use crate::dialect::{Decoder, Frame, trouble};

/// Bytes of signatures and of blocks that are kept whole, in one message, at most: a hundred times
/// what is usual, and less than a message may have.
const SEALED_BYTES_MAX: usize = 1024 * 1024;

/// One answer.
#[derive(Debug, Default)]
pub(super) struct Messages {
    order: Order,
    /// By the vendor's index: where the block stands, and what is open of it.
    blocks: BTreeMap<u64, (u64, Open)>,
    /// Where tools stand that have stopped without input and are not told to have ended.
    unfed: Vec<u64>,
    counts: Counts,
    ending: Option<Ending>,
    sealed_bytes: usize,
    begun: bool,
    said: bool,
    tools: bool,
    done: bool,
}

/// Why a message ended, as far as that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// All is said, or tools are asked for: the blocks tell which.
    Said,
    /// A stop sequence was met.
    Met,
    /// There was no room for more.
    Cut,
    /// The vendor's filter stepped in.
    Refused,
}

impl Decoder for Messages {
    fn step(&mut self, frame: Frame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.done || frame.data.is_empty() {
            return Ok(());
        }
        let data = frame.data;
        match kind(frame)? {
            Kind::ContentBlockDelta => self.delta(data, out),
            Kind::ContentBlockStart => self.start(data, out),
            Kind::ContentBlockStop => {
                self.stop(read::<BlockStop>(data)?.index, out);
                Ok(())
            }
            Kind::MessageStart => self.begin(read(data)?, out),
            Kind::MessageDelta => self.ending(&read(data)?),
            Kind::MessageStop => self.finish(out),
            Kind::Error => {
                self.done = true;
                let error: Value = serde_json::from_str(data).unwrap_or_default();
                Err(trouble::in_stream(error.get("error").unwrap_or(&error)))
            }
            Kind::Ping | Kind::Unknown => Ok(()),
        }
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        Err(if self.said {
            LlmErrorClass::Transport.into()
        } else {
            ModelError::passing(LlmErrorClass::Transport)
        })
    }

    fn usage_so_far(&self) -> Usage {
        self.usage()
    }

    fn cache_written_tokens(&self) -> u64 {
        self.counts
            .cache_creation_input_tokens
            .unwrap_or_default()
            .0
    }
}

/// What a frame is: by its name, and where it has none that is known, by its data.
fn kind(frame: Frame<'_>) -> Result<Kind, ModelError> {
    let tagged = || read::<Tagged>(frame.data).map(|tagged| tagged.kind);
    match frame.event.map(Kind::named) {
        None => tagged(),
        // An event of a new name may have data of any shape.
        Some(Kind::Unknown) => Ok(tagged().unwrap_or_default()),
        Some(kind) => Ok(kind),
    }
}

fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(|_| malformed())
}

fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).at("malformed")
}

impl Messages {
    fn begin(&mut self, start: MessageStart, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let message = start.message.unwrap_or_default();
        self.count(message.usage);
        let id = message.id.filter(|id| !id.is_empty());
        if let Some(response_id) = id
            && !self.begun
            && !self.said
        {
            self.begun = true;
            out.push_back(Delta::Begun { response_id });
        }
        Ok(())
    }

    fn start(&mut self, data: &str, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let BlockStart {
            index,
            content_block,
        } = read(data)?;
        // A block that begins where another is open has ended that one.
        self.stop(index, out);
        let at = self.open(index, out)?;
        let raw = content_block.get();
        let kind = read::<BlockTag>(raw)?.kind;
        let opened = match kind {
            BlockKind::Unknown => Opened::sealed(read(raw)?, raw.len()),
            BlockKind::Text
            | BlockKind::Thinking
            | BlockKind::RedactedThinking
            | BlockKind::ToolUse => Opened::known(kind, read(raw)?).ok_or_else(malformed)?,
        };
        self.seal(opened.sealed_bytes)?;
        self.tools |= kind == BlockKind::ToolUse;
        self.blocks.insert(index, (at, opened.open));
        for delta in opened.first {
            self.say(at, delta, out);
        }
        Ok(())
    }

    /// A place for a block; tools before it were whole.
    fn open(&mut self, index: u64, out: &mut VecDeque<Delta>) -> Result<u64, ModelError> {
        let at = self.order.open(index, out)?;
        for whole in self.unfed.extract_if(.., |before| *before < at) {
            self.order.say(whole, Delta::ToolEnd { block: 0 }, out);
        }
        Ok(at)
    }

    fn seal(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.sealed_bytes += bytes;
        if self.sealed_bytes > SEALED_BYTES_MAX {
            return Err(malformed());
        }
        Ok(())
    }

    fn delta(&mut self, data: &str, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let BlockDelta { index, delta } = match serde_json::from_str(data) {
            Ok(delta) => delta,
            Err(_) => of_new_kind(data)?,
        };
        if !self.blocks.contains_key(&index) {
            match Open::unannounced(delta.kind) {
                Some(open) => {
                    let at = self.open(index, out)?;
                    self.blocks.insert(index, (at, open));
                }
                None if delta.kind == PieceKind::InputJsonDelta => return Err(malformed()),
                None => return Ok(()),
            }
        }
        let Some((at, open)) = self.blocks.get_mut(&index) else {
            return Ok(());
        };
        let at = *at;
        let mut sealed = 0;
        let said = open.take(delta, &mut sealed);
        self.seal(sealed)?;
        if let Some(delta) = said {
            self.say(at, delta, out);
        }
        Ok(())
    }

    fn stop(&mut self, index: u64, out: &mut VecDeque<Delta>) {
        let Some((at, open)) = self.blocks.get_mut(&index) else {
            return;
        };
        let at = *at;
        if matches!(open, Open::Stopped) {
            return;
        }
        if open.is_unfed() {
            self.unfed.push(at);
        }
        for delta in open.stop() {
            self.say(at, delta, out);
        }
        self.order.stop(at, out);
    }

    fn say(&mut self, at: u64, delta: Delta, out: &mut VecDeque<Delta>) {
        self.said = true;
        self.order.say(at, delta, out);
    }

    fn ending(&mut self, delta: &MessageDelta<'_>) -> Result<(), ModelError> {
        self.count(delta.usage);
        let ending = delta.delta.as_ref();
        let reason = ending.and_then(|ending| ending.stop_reason.as_ref());
        if let Some(reason) = reason {
            self.ending = Some(ending_of(reason.as_str()));
        }
        Ok(())
    }

    /// Counts only grow, and servers give a part of them early and a part late.
    fn count(&mut self, more: Option<Counts>) {
        let Some(more) = more else { return };
        let counts = &mut self.counts;
        counts.input_tokens = counts.input_tokens.max(more.input_tokens);
        counts.output_tokens = counts.output_tokens.max(more.output_tokens);
        counts.cache_read_input_tokens = counts
            .cache_read_input_tokens
            .max(more.cache_read_input_tokens);
        counts.cache_creation_input_tokens = counts
            .cache_creation_input_tokens
            .max(more.cache_creation_input_tokens);
        if more.output_tokens_details.is_some() {
            counts.output_tokens_details = more.output_tokens_details;
        }
    }

    fn finish(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        self.done = true;
        let open: Vec<u64> = self.blocks.keys().copied().collect();
        for index in open {
            self.stop(index, out);
        }
        let is_cut = matches!(self.ending, Some(Ending::Cut | Ending::Refused));
        for at in self.unfed.drain(..).filter(|_| !is_cut) {
            self.order.say(at, Delta::ToolEnd { block: 0 }, out);
        }
        self.order.release(out);
        let reason = match self.ending {
            // Nothing was said, and an empty answer would hide why.
            Some(Ending::Refused) if !self.said => return Err(malformed()),
            Some(Ending::Refused) => StopReason::EndTurn,
            Some(Ending::Cut) => StopReason::MaxTokens,
            Some(Ending::Met | Ending::Said) | None if self.tools => StopReason::ToolUse,
            Some(Ending::Met) => StopReason::StopSequence,
            Some(Ending::Said) | None => StopReason::EndTurn,
        };
        out.push_back(Delta::Stop {
            reason,
            usage: self.usage(),
        });
        Ok(())
    }

    /// The vendor counts what it read from its cache, and what it wrote there, besides the rest.
    fn usage(&self) -> Usage {
        let counts = self.counts;
        let of = |count: Option<Count>| count.unwrap_or_default().0;
        let cached_tokens = of(counts.cache_read_input_tokens);
        let input_tokens = of(counts.input_tokens)
            .saturating_add(cached_tokens)
            .saturating_add(of(counts.cache_creation_input_tokens));
        let output_tokens = of(counts.output_tokens);
        let details = counts.output_tokens_details.unwrap_or_default();
        Usage {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            reasoning_tokens: of(details.thinking_tokens),
            cached_tokens,
            cost_usd: 0.0,
        }
    }
}

/// A delta that cannot be read, if that is because it is of a kind that is not known.
fn of_new_kind(data: &str) -> Result<BlockDelta, ModelError> {
    let DeltaTag { index, delta } = read(data)?;
    let unknown = delta.kind == PieceKind::Unknown;
    unknown
        .then(|| BlockDelta {
            index,
            delta: Piece::default(),
        })
        .ok_or_else(malformed)
}

/// A paused turn is one of the vendor's own tools, which are not offered; a reason that is not
/// known is an end all the same.
fn ending_of(reason: &str) -> Ending {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => Ending::Cut,
        "stop_sequence" => Ending::Met,
        "refusal" => Ending::Refused,
        _ => Ending::Said,
    }
}
