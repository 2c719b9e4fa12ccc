//! Restores the order of the items of an answer, whatever order they arrive in (S3-065).
//!
//! ```text
//! item 1 ── buffered ──┐
//! item 0 ── emitted ───┴─▶ all of item 0, then the buffered pieces of item 1, then the rest
//! ```
//! One index is current, and the items before it have been current. The next index becomes current
//! when the current item is done; after a call at once, because a call is one block and calls may
//! arrive in parallel (S3-066). Some servers mark no item as done or count from 1: therefore an
//! item with content stops being current when the next one arrives, and empty indices before it are
//! not waited for. Items without an index are never buffered. A block gets its number with its
//! first emitted piece. The buffer is bounded: a missing index is not waited for forever.

use turnwire_event::fold::message::BLOCKS_MAX;

use crate::delta::{Delta, ModelError};
use crate::dialect::{DecodeResult, DeltaQueue};

/// Upper limit of buffered pieces. Servers that mix up the order do so by a handful; beyond this
/// the server does not count from 0.
const BUFFERED_PIECES_MAX: usize = 256;

/// Upper limit of buffered bytes, for the same reason.
const BUFFERED_BYTES_MAX: usize = 256 << 10;

/// Upper limit of items in one answer: every item has at least one block.
const ITEMS_MAX: usize = BLOCKS_MAX as usize;

/// Largest item id in bytes. Vendors' ids are below 100.
const ID_BYTES_MAX: usize = 512;

/// The kind of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    /// A call of a function.
    Call,
    /// Any other kind; not decoded.
    #[default]
    Other,
}

/// The state of one item.
#[derive(Debug, Default)]
pub(super) struct OrderedItem {
    pub(super) kind: ItemKind,
    pub(super) is_done: bool,
    /// Sections that have emitted text.
    pub(super) sections: Vec<ItemSection>,
    /// Set once a function call has started.
    pub(super) call: Option<StartedCall>,
    id: String,
    index: Option<u32>,
    /// True if the item has content and another one followed it.
    is_passed: bool,
    is_released: bool,
    /// Parts and their deltas, which have no block number yet.
    buffered: Vec<(u32, Delta)>,
    blocks: Vec<(u32, u32)>,
}

/// State of a started function call.
#[derive(Debug)]
pub(super) struct StartedCall {
    /// Id that the call's output refers to.
    pub(super) call_id: Option<String>,
    pub(super) has_input: bool,
    /// True if its provider data is emitted.
    pub(super) has_provider_data: bool,
}

/// What the text of a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Text of an answer.
    Answer,
    /// Text of a refusal.
    Refusal,
    /// A summary of the reasoning.
    Summary,
    /// Reasoning text that is not a summary.
    Reasoning,
}

impl SectionKind {
    /// The kind of item that has such sections.
    pub(super) fn item_kind(self) -> ItemKind {
        match self {
            Self::Answer | Self::Refusal => ItemKind::Message,
            Self::Summary | Self::Reasoning => ItemKind::Reasoning,
        }
    }
}

/// One text section of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemSection {
    pub(super) kind: SectionKind,
    pub(super) part: u32,
}

impl OrderedItem {
    /// True if the item has text or input, not only a start.
    fn has_content(&self) -> bool {
        let has_input = self.call.as_ref().is_some_and(|call| call.has_input);
        has_input || !self.sections.is_empty()
    }

    /// True if `section` has emitted text.
    pub(super) fn has_emitted(&self, section: ItemSection) -> bool {
        self.sections.contains(&section)
    }

    /// Records that a section emits text; true the first time.
    pub(super) fn start_section(&mut self, section: ItemSection) -> DecodeResult<bool> {
        if self.has_emitted(section) {
            return Ok(false);
        }
        if self.sections.len() >= ITEMS_MAX {
            return Err(ModelError::malformed());
        }
        self.sections.push(section);
        Ok(true)
    }
}

/// Orders the [`OrderedItem`]s of an answer and numbers their blocks.
#[derive(Debug, Default)]
pub(super) struct ItemOrder {
    items: Vec<OrderedItem>,
    /// Position of the last event's item: mostly that of the next event too.
    last: usize,
    /// Index of the current item.
    current: u32,
    next_block: u32,
    /// Released deltas, in order. The caller's queue while an event is decoded.
    pub(super) out: DeltaQueue,
    buffered_pieces: usize,
    buffered_bytes: usize,
}

impl ItemOrder {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Finds an item by index, without an index by id, and without both the last one.
    pub(super) fn find(&mut self, index: Option<u32>, id: &str) -> Option<usize> {
        let is_match = |item: &OrderedItem| match (index, item.index) {
            (Some(index), Some(item_index)) => index == item_index,
            _ => id.is_empty() || item.id == id,
        };
        if !self.items.get(self.last).is_some_and(is_match) {
            self.last = self.items.iter().rposition(is_match)?;
        }
        Some(self.last)
    }

    /// Adds an item, which may release buffered deltas.
    pub(super) fn add(
        &mut self,
        kind: ItemKind,
        index: Option<u32>,
        id: &str,
    ) -> DecodeResult<usize> {
        let is_index_too_large = index.is_some_and(|index| index as usize >= ITEMS_MAX);
        if self.items.len() >= ITEMS_MAX || id.len() > ID_BYTES_MAX || is_index_too_large {
            return Err(ModelError::malformed());
        }
        self.items.push(OrderedItem {
            kind,
            id: id.to_owned(),
            index,
            is_released: index.is_none_or(|index| index <= self.current),
            ..OrderedItem::default()
        });
        self.last = self.items.len() - 1;
        let position = self.last;
        self.skip_gap(index);
        self.advance()?;
        Ok(position)
    }

    /// If the item before `index` has content, it is passed, and empty indices before it are
    /// skipped.
    fn skip_gap(&mut self, index: Option<u32>) {
        let previous = index.and_then(|index| index.checked_sub(1));
        let Some(previous) = previous.filter(|previous| *previous >= self.current) else {
            return;
        };
        let mut items = self.items.iter_mut();
        let item = items.find(|item| item.index == Some(previous));
        let Some(item) = item.filter(|item| item.has_content()) else {
            return;
        };
        item.is_passed = true;
        let current = self.current;
        let waiting = self.items.iter().filter_map(|item| item.index);
        let waiting = waiting.filter(|index| (current..=previous).contains(index));
        let first = waiting.clone().min().unwrap_or(previous);
        if waiting.count() as u32 == previous - first + 1 {
            self.current = first;
        }
    }

    /// Marks an item as done.
    pub(super) fn finish(&mut self, position: usize) -> DecodeResult {
        self.items[position].is_done = true;
        self.advance()
    }

    /// Moves the current index past items that are done or passed.
    fn advance(&mut self) -> DecodeResult {
        let find_current = |order: &Self| {
            let is_match = |item: &OrderedItem| item.index == Some(order.current);
            order.items.iter().position(is_match)
        };
        while let Some(position) = find_current(self) {
            self.release(position)?;
            let item = &self.items[position];
            if item.kind != ItemKind::Call && !item.is_done && !item.is_passed {
                break;
            }
            self.current += 1;
        }
        Ok(())
    }

    pub(super) fn item(&mut self, position: usize) -> &mut OrderedItem {
        &mut self.items[position]
    }

    /// Emits or buffers a delta of an item's part, and sets its block number.
    pub(super) fn push(&mut self, position: usize, part: u32, delta: Delta) -> DecodeResult {
        if self.items[position].is_released {
            let block = self.block(position, part)?;
            self.out.push_back(delta.with_block(block));
            return Ok(());
        }
        self.buffered_pieces += 1;
        self.buffered_bytes += delta.content_bytes();
        self.items[position].buffered.push((part, delta));
        if self.buffered_pieces > BUFFERED_PIECES_MAX || self.buffered_bytes > BUFFERED_BYTES_MAX {
            self.release_all()?;
        }
        Ok(())
    }

    /// Releases all buffered pieces.
    pub(super) fn release_all(&mut self) -> DecodeResult {
        let mut positions: Vec<usize> = (0..self.items.len()).collect();
        positions.retain(|position| !self.items[*position].is_released);
        positions.sort_by_key(|position| self.items[*position].index);
        for position in positions {
            self.release(position)?;
        }
        self.current = ITEMS_MAX as u32;
        Ok(())
    }

    fn release(&mut self, position: usize) -> DecodeResult {
        self.items[position].is_released = true;
        for (part, delta) in std::mem::take(&mut self.items[position].buffered) {
            self.buffered_pieces -= 1;
            self.buffered_bytes -= delta.content_bytes();
            let block = self.block(position, part)?;
            self.out.push_back(delta.with_block(block));
        }
        Ok(())
    }

    /// Block number of a part; assigns the next number to a new part.
    fn block(&mut self, position: usize, part: u32) -> DecodeResult<u32> {
        let blocks = &mut self.items[position].blocks;
        if let Some((_, block)) = blocks.iter().find(|(other, _)| *other == part) {
            return Ok(*block);
        }
        if self.next_block >= BLOCKS_MAX {
            return Err(ModelError::malformed());
        }
        let block = self.next_block;
        self.next_block += 1;
        blocks.push((part, block));
        Ok(block)
    }
}
