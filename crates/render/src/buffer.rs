//! What a gate keeps back for a moment: text that is gathered, then statuses that are.
//!
//! ```text
//!   out  ←  [ text of one block, joined ]  [ status, status, … ]  ←  in
//! ```
//!
//! The text is always the older of the two: before new text is held, everything is let go. So
//! whatever is let go keeps the order it came in.

use std::time::{Duration, Instant};

use turnwire_event::Body;
use turnwire_event::body::stream::TextDelta;
use turnwire_event::port::Emission;

/// The most statuses that are held: more than agents work at once, and a sentence of more is no
/// sentence.
pub const HELD_STATUSES_MAX: usize = 32;
/// The most bytes of text that are held: far more than a model writes in a window.
pub const HELD_TEXT_BYTES_MAX: usize = 4_096;

/// A status that is held, and which entry of the table it is.
#[derive(Debug)]
pub(crate) struct HeldStatus {
    pub emission: Emission,
    pub index: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Hold {
    text: Option<(Emission, Instant)>,
    statuses: Vec<HeldStatus>,
    statuses_due: Option<Instant>,
}

impl Hold {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_none() && self.statuses.is_empty()
    }

    pub(crate) fn has_statuses(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// Whether a status of a sub-agent is held.
    pub(crate) fn has_status_of(&self, sub_agent_id: &str) -> bool {
        self.statuses
            .iter()
            .any(|held| held.emission.actor.is_subagent(sub_agent_id))
    }

    /// When the first of what is held has been held for the window.
    pub(crate) fn due(&self) -> Option<Instant> {
        // Text is older, so it is due first.
        self.text
            .as_ref()
            .map(|(_, due)| *due)
            .or(self.statuses_due)
    }

    pub(crate) fn statuses_due(&self, now: Instant) -> bool {
        self.statuses_due.is_some_and(|due| due <= now)
    }

    pub(crate) fn text_due(&self, now: Instant) -> bool {
        self.text.as_ref().is_some_and(|(_, due)| *due <= now)
    }

    /// Whether no more statuses fit.
    pub(crate) fn is_full(&self) -> bool {
        self.statuses.len() >= HELD_STATUSES_MAX
    }

    pub(crate) fn push_status(&mut self, held: HeldStatus, now: Instant, window: Duration) {
        self.statuses_due.get_or_insert(now + window);
        self.statuses.push(held);
    }

    /// Joins a delta to the text that is held, if there is any, of the same block, and not too
    /// much; whether it did.
    pub(crate) fn joins(&mut self, emission: &Emission) -> bool {
        let Some((held, _)) = &mut self.text else {
            return false;
        };
        let alike = held.actor == emission.actor
            && held.message.is_none()
            && emission.message.is_none()
            && held.trace == emission.trace;
        match (&mut held.body, &emission.body) {
            (Body::TextDelta(old), Body::TextDelta(new))
                if alike
                    && same_block(old, new)
                    && old.text.len() + new.text.len() <= HELD_TEXT_BYTES_MAX =>
            {
                old.text.push_str(&new.text);
                true
            }
            _ => false,
        }
    }

    /// Holds a delta. Everything else was let go before.
    pub(crate) fn put_text(&mut self, emission: Emission, due: Instant) {
        debug_assert!(self.is_empty(), "text is held before statuses");
        self.text = Some((emission, due));
    }

    pub(crate) fn take_text(&mut self) -> Option<Emission> {
        self.text.take().map(|(emission, _)| emission)
    }

    pub(crate) fn take_statuses(&mut self) -> Vec<HeldStatus> {
        self.statuses_due = None;
        std::mem::take(&mut self.statuses)
    }
}

/// Whether two deltas are of the same block.
pub(crate) fn same_block(one: &TextDelta, other: &TextDelta) -> bool {
    one.message_id == other.message_id && one.content_block_index == other.content_block_index
}
