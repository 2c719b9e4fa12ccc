//! Restores the order of the vendor's indices, whatever order the parts of an answer arrive in
//! (S3-065), and numbers their blocks.
//!
//! ```text
//! vendor:  1:"b"  0:"a"  done 1  0:"a"  done 0          out:  0:"a"  0:"a"  1:"b"
//! ```
//! One index is current: its deltas pass at once, and so do those of earlier indices. Later ones are
//! buffered until the current one is complete or the answer ends. Some servers mark nothing as
//! complete or count from 1: therefore an entry with content stops being current when the next one
//! is added, and empty indices before it are not waited for. An entry without an index is never
//! buffered. A block gets its number with its first delta, so numbers have no gaps. The buffer is
//! bounded: a missing index is not waited for forever.

use turnwire_event::fold::message::BLOCKS_MAX;

use crate::delta::{Delta, ModelError};
use crate::dialect::{DecodeResult, DeltaQueue};

/// One entry of a [`BlockOrder`]: a block, or an item of several blocks.
#[derive(Debug)]
struct OrderEntry<S> {
    index: Option<u64>,
    state: S,
    /// True if the next index may become current.
    is_complete: bool,
    /// True after the first delta with content, not only a start.
    has_content: bool,
    is_released: bool,
    /// Parts and their deltas, which have no block number yet.
    buffered: Vec<(u32, Delta)>,
    /// Parts and their block numbers.
    blocks: Vec<(u32, u32)>,
}

/// Orders the entries of one answer, each with a state `S`. At most `BYTES_MAX` bytes and
/// `DELTAS_MAX` deltas are buffered; beyond that everything is released.
#[derive(Debug, Default)]
pub(crate) struct BlockOrder<S, const BYTES_MAX: usize, const DELTAS_MAX: usize> {
    entries: Vec<OrderEntry<S>>,
    current: u64,
    next_block: u32,
    /// Released deltas, in order: the caller's queue while an event is decoded.
    pub(crate) out: DeltaQueue,
    buffered_bytes: usize,
    buffered_deltas: usize,
}

impl<S, const BYTES_MAX: usize, const DELTAS_MAX: usize> BlockOrder<S, BYTES_MAX, DELTAS_MAX> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The state of the entry at `position`.
    pub(crate) fn state(&mut self, position: usize) -> &mut S {
        &mut self.entries[position].state
    }

    /// `guess` if `is_match` accepts the entry there, else the position of the newest entry that it
    /// accepts.
    pub(crate) fn find(
        &self,
        guess: usize,
        is_match: impl Fn(Option<u64>, &S) -> bool,
    ) -> Option<usize> {
        let is_match = |entry: &OrderEntry<S>| is_match(entry.index, &entry.state);
        match self.entries.get(guess).is_some_and(is_match) {
            true => Some(guess),
            false => self.entries.iter().rposition(is_match),
        }
    }

    /// `index`, or if an entry has it already, one after all others; `None` if there is none.
    pub(crate) fn unused_index(&self, index: u64) -> Option<u64> {
        let indices = self.entries.iter().filter_map(|entry| entry.index);
        match indices.clone().any(|used| used == index) {
            true => indices.max().unwrap_or(index).checked_add(1),
            false => Some(index),
        }
    }

    /// Adds an entry and returns its position. This may release buffered deltas.
    pub(crate) fn add(&mut self, index: Option<u64>, state: S) -> DecodeResult<usize> {
        self.entries.push(OrderEntry {
            index,
            state,
            is_complete: false,
            has_content: false,
            is_released: index.is_none_or(|index| index <= self.current),
            buffered: Vec::new(),
            blocks: Vec::new(),
        });
        self.skip_gap(index);
        self.advance()?;
        Ok(self.entries.len() - 1)
    }

    /// If the entry before `index` has content, it is complete, and empty indices before it are
    /// skipped.
    fn skip_gap(&mut self, index: Option<u64>) {
        let previous = index.and_then(|index| index.checked_sub(1));
        let Some(previous) = previous.filter(|previous| *previous >= self.current) else {
            return;
        };
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| entry.index == Some(previous));
        let Some(entry) = entry.filter(|entry| entry.has_content) else {
            return;
        };
        entry.is_complete = true;
        let current = self.current;
        let waiting = self.entries.iter().filter_map(|entry| entry.index);
        let waiting = waiting.filter(|index| (current..=previous).contains(index));
        let first = waiting.clone().min().unwrap_or(previous);
        if waiting.count() as u64 == previous - first + 1 {
            self.current = first;
        }
    }

    /// Lets the index after that of the entry become current, once the entry itself is current and
    /// has its next delta.
    pub(crate) fn set_complete(&mut self, position: usize) {
        self.entries[position].is_complete = true;
    }

    /// Marks an entry as complete and releases what waited for it.
    pub(crate) fn finish(&mut self, position: usize) -> DecodeResult {
        self.set_complete(position);
        self.advance()
    }

    /// Moves the current index past complete entries.
    fn advance(&mut self) -> DecodeResult {
        let find_current = |order: &Self| {
            let mut entries = order.entries.iter();
            entries.position(|entry| entry.index == Some(order.current))
        };
        while let Some(position) = find_current(self) {
            self.release(position)?;
            match self.current.checked_add(1) {
                Some(next) if self.entries[position].is_complete => self.current = next,
                Some(_) | None => break,
            }
        }
        Ok(())
    }

    /// Emits or buffers a delta of an entry's part, and sets its block number.
    pub(crate) fn push(&mut self, position: usize, part: u32, delta: Delta) -> DecodeResult {
        let entry = &mut self.entries[position];
        // Parallel tool uses start together and stream one after the other: a start is no content.
        entry.has_content |= matches!(
            delta,
            Delta::Text { .. } | Delta::Thinking { .. } | Delta::ToolInput { .. }
        );
        if entry.is_released {
            let block = self.block(position, part)?;
            self.out.push_back(delta.with_block(block));
            return match self.entries[position].is_complete {
                true => self.advance(),
                false => Ok(()),
            };
        }
        self.buffered_bytes += size_bytes(&delta);
        self.buffered_deltas += 1;
        entry.buffered.push((part, delta));
        if self.buffered_bytes > BYTES_MAX || self.buffered_deltas > DELTAS_MAX {
            self.release_all()?;
        }
        Ok(())
    }

    /// Releases everything: the answer has ended, or too much is buffered.
    pub(crate) fn release_all(&mut self) -> DecodeResult {
        let mut positions: Vec<usize> = (0..self.entries.len()).collect();
        positions.retain(|position| !self.entries[*position].is_released);
        positions.sort_by_key(|position| self.entries[*position].index);
        for position in positions {
            self.release(position)?;
        }
        self.current = u64::MAX;
        Ok(())
    }

    fn release(&mut self, position: usize) -> DecodeResult {
        self.entries[position].is_released = true;
        for (part, delta) in std::mem::take(&mut self.entries[position].buffered) {
            self.buffered_bytes -= size_bytes(&delta);
            self.buffered_deltas -= 1;
            let block = self.block(position, part)?;
            self.out.push_back(delta.with_block(block));
        }
        Ok(())
    }

    /// Block number of a part; assigns the next number to a new part.
    fn block(&mut self, position: usize, part: u32) -> DecodeResult<u32> {
        let blocks = &mut self.entries[position].blocks;
        if let Some((_, block)) = blocks.iter().find(|(other, _)| *other == part) {
            return Ok(*block);
        }
        if self.next_block >= BLOCKS_MAX {
            return Err(ModelError::malformed());
        }
        self.next_block += 1;
        blocks.push((part, self.next_block - 1));
        Ok(self.next_block - 1)
    }
}

/// Memory of a buffered delta.
fn size_bytes(delta: &Delta) -> usize {
    size_of::<Delta>() + delta.content_bytes()
}
