//! Restores the order of the vendor's block indices, whatever order the blocks arrive in (S3-065).
//!
//! One block is current and its deltas pass at once. Later blocks are buffered until the current
//! one stops or the message ends. A block gets its number with its first delta, so numbers have no
//! gaps and an empty block has none.
//!
//! ```text
//! vendor:  1:"b"  0:"a"  stop 1  1:-  stop 0          out:  0:"a"  1:"b"
//! ```
//! Some servers send no stop events or count from 1. Therefore a block with content stops being
//! current when the next one opens, and empty indices before it are not waited for.

use std::collections::BTreeMap;

use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;

use crate::delta::Delta;
use crate::dialect::{DecodeResult, DeltaQueue};

/// Upper limit of buffered bytes, far above a block that was merely overtaken. Beyond it a gap will
/// not be filled, and everything is released.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;

/// The state of one block.
#[derive(Debug, Default)]
struct BlockSlot {
    block_number: Option<u32>,
    buffered: Vec<Delta>,
    /// True after the first delta with content, not only a start.
    has_content: bool,
    is_complete: bool,
}

impl BlockSlot {
    /// The block's number; the first call assigns `next`.
    fn number(&mut self, next: &mut u32) -> u32 {
        *self.block_number.get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }
}

/// Orders and numbers the blocks of one message; each block has a [`BlockSlot`].
#[derive(Debug, Default)]
pub(super) struct BlockOrder {
    /// Index of the current block; blocks before it pass too.
    current: u64,
    next: u32,
    slots: BTreeMap<u64, BlockSlot>,
    buffered_bytes: usize,
}

impl BlockOrder {
    /// Opens a block and returns its slot. An index that is used again gets a slot after all
    /// others, as some servers need it. Deltas that this releases go to `out`.
    pub(super) fn open(&mut self, index: u64, out: &mut DeltaQueue) -> DecodeResult<u64> {
        if self.slots.len() >= BLOCKS_MAX as usize {
            return Err(LlmErrorClass::Provider.into());
        }
        let slot = if self.slots.contains_key(&index) {
            let last = self.slots.last_key_value().map_or(index, |(slot, _)| *slot);
            last.checked_add(1).ok_or(LlmErrorClass::Provider)?
        } else {
            index
        };
        self.slots.insert(slot, BlockSlot::default());
        self.skip_gap(slot, out);
        Ok(slot)
    }

    /// If the block before `slot` has content, it is complete, and empty indices before it are
    /// skipped.
    fn skip_gap(&mut self, slot: u64, out: &mut DeltaQueue) {
        let previous = slot.checked_sub(1);
        let Some(previous) = previous.filter(|previous| *previous >= self.current) else {
            return;
        };
        match self.slots.get_mut(&previous) {
            Some(block) if block.has_content => block.is_complete = true,
            Some(_) | None => return,
        }
        let waiting = self.slots.range(self.current..=previous);
        let first = waiting.clone().next().map_or(previous, |(slot, _)| *slot);
        if waiting.count() as u64 == previous - first + 1 && self.current < first {
            self.current = first;
            self.flush_slot(first, out);
        }
        self.advance(out);
    }

    /// Emits or buffers a delta of a block, and sets its block number.
    pub(super) fn push(&mut self, slot: u64, delta: Delta, out: &mut DeltaQueue) {
        let Some(block) = self.slots.get_mut(&slot) else {
            return;
        };
        block.has_content |= is_content(&delta);
        if slot <= self.current {
            out.push_back(delta.with_block(block.number(&mut self.next)));
            return;
        }
        self.buffered_bytes += size_bytes(&delta);
        block.buffered.push(delta);
        if self.buffered_bytes > BUFFERED_BYTES_MAX {
            self.release_all(out);
        }
    }

    /// Marks a block as complete.
    pub(super) fn stop(&mut self, slot: u64, out: &mut DeltaQueue) {
        if let Some(block) = self.slots.get_mut(&slot) {
            block.is_complete = true;
        }
        self.advance(out);
    }

    /// Moves the current index past completed blocks.
    fn advance(&mut self, out: &mut DeltaQueue) {
        while self.slots.get(&self.current).is_some_and(|p| p.is_complete) {
            self.current = self.current.saturating_add(1);
            self.flush_slot(self.current, out);
            if self.current == u64::MAX {
                break;
            }
        }
    }

    /// Releases everything: the message has ended or too much is buffered.
    pub(super) fn release_all(&mut self, out: &mut DeltaQueue) {
        let waiting = self.slots.range(self.current..).map(|(slot, _)| *slot);
        for slot in waiting.collect::<Vec<u64>>() {
            self.flush_slot(slot, out);
        }
        self.current = u64::MAX;
    }

    fn flush_slot(&mut self, slot: u64, out: &mut DeltaQueue) {
        let Some(block) = self.slots.get_mut(&slot) else {
            return;
        };
        for delta in std::mem::take(&mut block.buffered) {
            self.buffered_bytes = self.buffered_bytes.saturating_sub(size_bytes(&delta));
            out.push_back(delta.with_block(block.number(&mut self.next)));
        }
    }
}

/// True for a [`Delta`] with content. Parallel tool uses start together and stream one after the
/// other, so a start does not count.
fn is_content(delta: &Delta) -> bool {
    matches!(
        delta,
        Delta::Text { .. } | Delta::Thinking { .. } | Delta::ToolInput { .. }
    )
}

/// Memory of a buffered delta.
fn size_bytes(delta: &Delta) -> usize {
    size_of::<Delta>() + delta.content_bytes()
}
