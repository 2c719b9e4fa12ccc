//! Blocks in the order of the vendor's indices, whatever order they come in (S3-065).
//!
//! One block has the floor: what it says goes out at once. Blocks behind it wait until it has
//! stopped, or the message has. Our numbers are given when a block first says something, so they
//! have no gaps and an empty block takes none.
//!
//! ```text
//! theirs:  1:"b"  0:"a"  stop 1  1:-  stop 0          out:  0:"a"  1:"b"
//! ```
//! Some servers stop no block, or count from 1. So a block that has spoken gives the floor to the
//! next one when that opens, and a place that is empty by then is not waited for.

use std::collections::{BTreeMap, VecDeque};

use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;

use crate::delta::{Delta, ModelError};

/// Bytes that wait, at most: far more than any block that was merely overtaken. A gap that still
/// is none then will not be filled, and nothing waits any longer.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// One block's place.
#[derive(Debug, Default)]
struct Place {
    number: Option<u32>,
    held: Vec<Delta>,
    /// Whether it has said more than that it is there.
    has_spoken: bool,
    stopped: bool,
}

/// The order of a message's blocks.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The block that has the floor; blocks before it may speak as well.
    floor: u64,
    next: u32,
    places: BTreeMap<u64, Place>,
    held_bytes: usize,
}

impl Order {
    /// A place for a block of that index, and what it lets go out. Some servers use an index again:
    /// such a block stands behind all others.
    pub(super) fn open(
        &mut self,
        index: u64,
        out: &mut VecDeque<Delta>,
    ) -> Result<u64, ModelError> {
        if self.places.len() >= BLOCKS_MAX as usize {
            return Err(LlmErrorClass::Provider.into());
        }
        let at = if self.places.contains_key(&index) {
            let last = self.places.last_key_value().map_or(index, |(at, _)| *at);
            last.checked_add(1).ok_or(LlmErrorClass::Provider)?
        } else {
            index
        };
        self.places.insert(at, Place::default());
        self.pass(at, out);
        Ok(at)
    }

    /// The block before the one at `at` is not waited for if it has spoken, and no place is that
    /// stands empty before it.
    fn pass(&mut self, at: u64, out: &mut VecDeque<Delta>) {
        let Some(before) = at.checked_sub(1).filter(|before| *before >= self.floor) else {
            return;
        };
        match self.places.get_mut(&before) {
            Some(place) if place.has_spoken => place.stopped = true,
            Some(_) | None => return,
        }
        let waiting = self.places.range(self.floor..=before);
        let first = waiting.clone().next().map_or(before, |(at, _)| *at);
        if waiting.count() as u64 == before - first + 1 && self.floor < first {
            self.floor = first;
            self.flush(first, out);
        }
        self.move_on(out);
    }

    /// The block says something; its number is put in here.
    pub(super) fn say(&mut self, at: u64, delta: Delta, out: &mut VecDeque<Delta>) {
        let Some(place) = self.places.get_mut(&at) else {
            return;
        };
        place.has_spoken |= is_speech(&delta);
        if at <= self.floor {
            out.push_back(numbered(delta, number(place, &mut self.next)));
            return;
        }
        self.held_bytes += weight(&delta);
        place.held.push(delta);
        if self.held_bytes > HELD_BYTES_MAX {
            self.release(out);
        }
    }

    /// The block has said all.
    pub(super) fn stop(&mut self, at: u64, out: &mut VecDeque<Delta>) {
        if let Some(place) = self.places.get_mut(&at) {
            place.stopped = true;
        }
        self.move_on(out);
    }

    /// Moves the floor past what has stopped.
    fn move_on(&mut self, out: &mut VecDeque<Delta>) {
        while self.places.get(&self.floor).is_some_and(|p| p.stopped) {
            self.floor = self.floor.saturating_add(1);
            self.flush(self.floor, out);
            if self.floor == u64::MAX {
                break;
            }
        }
    }

    /// Nothing waits any longer: the message is over, or too much has waited.
    pub(super) fn release(&mut self, out: &mut VecDeque<Delta>) {
        let waiting: Vec<u64> = self.places.range(self.floor..).map(|(at, _)| *at).collect();
        for at in waiting {
            self.flush(at, out);
        }
        self.floor = u64::MAX;
    }

    fn flush(&mut self, at: u64, out: &mut VecDeque<Delta>) {
        let Some(place) = self.places.get_mut(&at) else {
            return;
        };
        for delta in std::mem::take(&mut place.held) {
            self.held_bytes = self.held_bytes.saturating_sub(weight(&delta));
            out.push_back(numbered(delta, number(place, &mut self.next)));
        }
    }
}

fn number(place: &mut Place, next: &mut u32) -> u32 {
    *place.number.get_or_insert_with(|| {
        let number = *next;
        *next += 1;
        number
    })
}

/// Whether a delta is more than the begin of a block or what is kept of it: tools that come side by
/// side begin together, and are told one after the other.
fn is_speech(delta: &Delta) -> bool {
    match delta {
        Delta::Text { .. } | Delta::Thinking { .. } | Delta::ToolInput { .. } => true,
        Delta::Begun { .. }
        | Delta::Keep { .. }
        | Delta::ToolStart { .. }
        | Delta::ToolEnd { .. }
        | Delta::Spent { .. }
        | Delta::Stop { .. } => false,
    }
}

fn weight(delta: &Delta) -> usize {
    /// What a delta takes besides its words.
    const EACH: usize = size_of::<Delta>();
    EACH + match delta {
        Delta::Text { text, .. } => text.len(),
        Delta::Thinking {
            text, signature, ..
        } => text.len() + signature.as_ref().map_or(0, String::len),
        Delta::ToolStart { name, .. } => name.len(),
        Delta::ToolInput { fragment, .. } => fragment.len(),
        // The frame that brought it was bounded, and there is one for a block.
        Delta::Keep { .. }
        | Delta::Begun { .. }
        | Delta::ToolEnd { .. }
        | Delta::Spent { .. }
        | Delta::Stop { .. } => 0,
    }
}

fn numbered(mut delta: Delta, number: u32) -> Delta {
    match &mut delta {
        Delta::Text { block, .. }
        | Delta::Thinking { block, .. }
        | Delta::ToolStart { block, .. }
        | Delta::ToolInput { block, .. }
        | Delta::ToolEnd { block }
        | Delta::Keep { block, .. } => *block = number,
        Delta::Begun { .. } | Delta::Spent { .. } | Delta::Stop { .. } => {}
    }
    delta
}
