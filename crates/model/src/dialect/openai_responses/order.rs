//! Items of an answer in the order of their places, whatever order they come in (S3-065).
//!
//! ```text
//! item 1 ── held ──┐
//! item 0 ── out ───┴─▶ all of item 0, then what was held of item 1, then the rest as it comes
//! ```
//! One place has the floor, and places before it have had it. The floor moves on when its item is
//! done; from a call it moves on at once, because a call is one block and calls may come side by
//! side (S3-066). Some servers say of no item that it is done, or count from 1: so an item that has
//! spoken gives the floor to the next one when that comes, and a place that is empty by then is not
//! waited for. Items that tell no place never wait. A block gets its number when its first piece goes
//! out. What is held is bounded: a server that never fills a place is not waited for.

use std::collections::VecDeque;

use serde_json::Value;
use turnwire_event::fold::message::BLOCKS_MAX;

use crate::delta::Delta;

/// Pieces held back. Servers that get the order wrong do so by a handful; beyond this one does not
/// count places from 0, and holding on would only be silence.
const HELD_PIECES_MAX: usize = 256;

/// Bytes held back, for the same reason.
const HELD_BYTES_MAX: usize = 256 << 10;

/// Items of one answer: every block has at most one, so more cannot be told.
const ITEMS_MAX: usize = BLOCKS_MAX as usize;

/// Bytes of an id. Vendors' own are below 100.
const ID_BYTES_MAX: usize = 512;

/// The answer has more in it than an answer can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words.
    Message,
    /// Reasoning.
    Reasoning,
    /// A call of a function.
    Call,
    /// What we do not know.
    Other,
}

/// What is said in a block that may not have its number yet.
#[derive(Debug)]
pub(super) enum Piece {
    /// Words.
    Text(String),
    /// Reasoning.
    Thinking(String),
    /// A tool's begin: its name, and the vendor's id of the use.
    ToolStart(String, Option<String>),
    /// More input.
    ToolInput(String),
    /// A tool's end.
    ToolEnd,
    /// What the vendor wants back.
    Keep(Value),
}

impl Piece {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thinking(text) | Self::ToolInput(text) => text.len(),
            Self::ToolStart(name, id) => name.len() + id.as_ref().map_or(0, String::len),
            Self::ToolEnd => 0,
            Self::Keep(data) => data.to_string().len(),
        }
    }

    fn of(self, block: u32) -> Delta {
        match self {
            Self::Text(text) => Delta::Text { block, text },
            Self::Thinking(text) => Delta::Thinking {
                block,
                text,
                signature: None,
            },
            Self::ToolStart(name, provider_id) => Delta::ToolStart {
                block,
                name,
                provider_id,
            },
            Self::ToolInput(fragment) => Delta::ToolInput { block, fragment },
            Self::ToolEnd => Delta::ToolEnd { block },
            Self::Keep(data) => Delta::Keep { block, data },
        }
    }
}

/// An item and how far it is.
#[derive(Debug)]
pub(super) struct Item {
    /// What it is.
    pub(super) kind: Kind,
    /// Whether it is done.
    pub(super) is_done: bool,
    /// What of it has said something.
    pub(super) said: Vec<Section>,
    /// What the vendor calls a call; none until the call has begun.
    pub(super) call: Option<Call>,
    id: String,
    place: Option<u32>,
    /// Whether it has spoken and another one has come behind it.
    is_passed: bool,
    is_out: bool,
    held: Vec<(u32, Piece)>,
    blocks: Vec<(u32, u32)>,
}

/// What is known of a call from its begin.
#[derive(Debug)]
pub(super) struct Call {
    /// What its output refers to.
    pub(super) call_id: Option<String>,
    /// Whether there was input.
    pub(super) has_input: bool,
    /// Whether what the vendor wants back of it is kept.
    pub(super) is_kept: bool,
}

/// How words of an item are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// A message that answers.
    Answer,
    /// A message that refuses to.
    Refusal,
    /// A summary of reasoning.
    Summary,
    /// Open reasoning.
    Reasoning,
}

impl Voice {
    /// What kind of item speaks with it.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Answer | Self::Refusal => Kind::Message,
            Self::Summary | Self::Reasoning => Kind::Reasoning,
        }
    }
}

/// Which words of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// How they are meant.
    pub(super) voice: Voice,
    /// In which part.
    pub(super) part: u32,
}

impl Item {
    /// Whether it has said more than that it is there.
    fn has_spoken(&self) -> bool {
        let has_input = self.call.as_ref().is_some_and(|call| call.has_input);
        has_input || !self.said.is_empty()
    }

    /// Whether a section has said something.
    pub(super) fn has_said(&self, section: Section) -> bool {
        self.said.contains(&section)
    }

    /// A section says something; whether it is its first time.
    pub(super) fn begin(&mut self, section: Section) -> Result<bool, TooMuch> {
        if self.has_said(section) {
            return Ok(false);
        }
        if self.said.len() >= ITEMS_MAX {
            return Err(TooMuch);
        }
        self.said.push(section);
        Ok(true)
    }
}

/// All items of an answer.
#[derive(Debug, Default)]
pub(super) struct Order {
    items: Vec<Item>,
    /// The item of the last event: mostly that of the next one too.
    last: usize,
    /// The place that has the floor.
    floor: u32,
    next_block: u32,
    held_pieces: usize,
    held_bytes: usize,
}

impl Order {
    /// Whether no item has come.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The item with a place, or without one with an id, or without both the last one.
    pub(super) fn find(&mut self, place: Option<u32>, id: &str) -> Option<usize> {
        let is_it = |item: &Item| match (place, item.place) {
            (Some(place), Some(own)) => place == own,
            _ => id.is_empty() || item.id == id,
        };
        if !self.items.get(self.last).is_some_and(is_it) {
            self.last = self.items.iter().rposition(is_it)?;
        }
        Some(self.last)
    }

    /// A new item, and what it lets go out.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        place: Option<u32>,
        id: &str,
        out: &mut VecDeque<Delta>,
    ) -> Result<usize, TooMuch> {
        let is_far = place.is_some_and(|place| place as usize >= ITEMS_MAX);
        if self.items.len() >= ITEMS_MAX || id.len() > ID_BYTES_MAX || is_far {
            return Err(TooMuch);
        }
        self.items.push(Item {
            kind,
            said: Vec::new(),
            call: None,
            id: id.to_owned(),
            place,
            is_done: false,
            is_passed: false,
            is_out: place.is_none_or(|place| place <= self.floor),
            held: Vec::new(),
            blocks: Vec::new(),
        });
        self.last = self.items.len() - 1;
        let at = self.last;
        self.pass(place);
        self.move_on(out)?;
        Ok(at)
    }

    /// The item before a place is not waited for if it has spoken, and no place is that stands empty
    /// before it.
    fn pass(&mut self, place: Option<u32>) {
        let before = place.and_then(|place| place.checked_sub(1));
        let Some(before) = before.filter(|before| *before >= self.floor) else {
            return;
        };
        let mut items = self.items.iter_mut();
        let item = items.find(|item| item.place == Some(before));
        let Some(item) = item.filter(|item| item.has_spoken()) else {
            return;
        };
        item.is_passed = true;
        let floor = self.floor;
        let waiting = self.items.iter().filter_map(|item| item.place);
        let waiting = waiting.filter(|place| (floor..=before).contains(place));
        let first = waiting.clone().min().unwrap_or(before);
        if waiting.count() as u32 == before - first + 1 {
            self.floor = first;
        }
    }

    /// An item has said all.
    pub(super) fn finish(&mut self, at: usize, out: &mut VecDeque<Delta>) -> Result<(), TooMuch> {
        self.items[at].is_done = true;
        self.move_on(out)
    }

    /// Moves the floor past what has had it.
    fn move_on(&mut self, out: &mut VecDeque<Delta>) -> Result<(), TooMuch> {
        let has_floor = |order: &Self| {
            let is_it = |item: &Item| item.place == Some(order.floor);
            order.items.iter().position(is_it)
        };
        while let Some(at) = has_floor(self) {
            self.let_out(at, out)?;
            let item = &self.items[at];
            if item.kind != Kind::Call && !item.is_done && !item.is_passed {
                break;
            }
            self.floor += 1;
        }
        Ok(())
    }

    /// One of the items.
    pub(super) fn item(&mut self, at: usize) -> &mut Item {
        &mut self.items[at]
    }

    /// Says something in a part of an item.
    pub(super) fn say(
        &mut self,
        at: usize,
        part: u32,
        piece: Piece,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), TooMuch> {
        if self.items[at].is_out {
            let block = self.block(at, part)?;
            out.push_back(piece.of(block));
            return Ok(());
        }
        self.held_pieces += 1;
        self.held_bytes += piece.bytes();
        self.items[at].held.push((part, piece));
        if self.held_pieces > HELD_PIECES_MAX || self.held_bytes > HELD_BYTES_MAX {
            self.let_all_out(out)?;
        }
        Ok(())
    }

    /// Waits for no place any more.
    pub(super) fn let_all_out(&mut self, out: &mut VecDeque<Delta>) -> Result<(), TooMuch> {
        let mut held: Vec<usize> = (0..self.items.len()).collect();
        held.retain(|at| !self.items[*at].is_out);
        held.sort_by_key(|at| self.items[*at].place);
        for at in held {
            self.let_out(at, out)?;
        }
        self.floor = ITEMS_MAX as u32;
        Ok(())
    }

    fn let_out(&mut self, at: usize, out: &mut VecDeque<Delta>) -> Result<(), TooMuch> {
        self.items[at].is_out = true;
        for (part, piece) in std::mem::take(&mut self.items[at].held) {
            self.held_pieces -= 1;
            self.held_bytes -= piece.bytes();
            let block = self.block(at, part)?;
            out.push_back(piece.of(block));
        }
        Ok(())
    }

    /// The number of a part's block; the next one if it has none.
    fn block(&mut self, at: usize, part: u32) -> Result<u32, TooMuch> {
        let blocks = &mut self.items[at].blocks;
        if let Some((_, block)) = blocks.iter().find(|(other, _)| *other == part) {
            return Ok(*block);
        }
        if self.next_block >= BLOCKS_MAX {
            return Err(TooMuch);
        }
        let block = self.next_block;
        self.next_block += 1;
        blocks.push((part, block));
        Ok(block)
    }
}
