//! The state of one item of an answer: its kind, the sections that have emitted text, and its call.

use turnwire_event::fold::message::BLOCKS_MAX;

use crate::delta::ModelError;
use crate::dialect::DecodeResult;

/// Upper limit of items in one answer: every item has at least one block.
pub(super) const ITEMS_MAX: usize = BLOCKS_MAX as usize;

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
pub(super) struct ItemState {
    pub(super) kind: ItemKind,
    pub(super) is_done: bool,
    /// Sections that have emitted text.
    pub(super) sections: Vec<ItemSection>,
    /// Set once a function call has started.
    pub(super) call: Option<StartedCall>,
    /// The vendor's id of the item.
    pub(super) id: String,
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

impl ItemState {
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
