//! Applies the turn's text filter to the orchestrator's text, one content block at a time.
//!
//! Reasoning is not filtered: its provider signs it, and changed reasoning cannot be sent back to
//! the model.

use turnwire_event::body::stream::TextDelta;
use turnwire_event::port::Emission;
use turnwire_event::{ActorKind, Body};

use crate::buffer::same_block;
use crate::filter::TextFilter;

/// The [`TextFilter`] of a turn and the content block it is in.
pub(crate) struct BlockFilter {
    filter: Option<Box<dyn TextFilter>>,
    /// A delta of the open block, without text.
    block: Option<Emission>,
}

impl BlockFilter {
    pub(crate) fn new(filter: Option<Box<dyn TextFilter>>) -> Self {
        Self {
            filter,
            block: None,
        }
    }

    /// True if the turn has no filter, so that text passes unchanged.
    pub(crate) fn is_pass_through(&self) -> bool {
        self.filter.is_none()
    }

    /// True while the filter is in a block and may delay some of its text.
    pub(crate) fn has_open_block(&self) -> bool {
        self.block.is_some()
    }

    /// True if `emission` is a delta of another block than the open one.
    pub(crate) fn starts_new_block(&self, emission: &Emission) -> bool {
        match (&self.block, &emission.body) {
            (Some(block), Body::TextDelta(delta)) => {
                emission.actor.kind() == ActorKind::Orchestrator
                    && !matches!(&block.body, Body::TextDelta(open) if same_block(open, delta))
            }
            _ => false,
        }
    }

    /// Filters a delta. Returns `None` if the filter delays all of its text. The previous block
    /// must be finished.
    pub(crate) fn filter_delta(&mut self, mut emission: Emission) -> Option<Emission> {
        if emission.actor.kind() != ActorKind::Orchestrator {
            return Some(emission);
        }
        let (Some(filter), Body::TextDelta(delta)) = (&mut self.filter, &mut emission.body) else {
            return Some(emission);
        };
        if delta.text.is_empty() {
            return Some(emission);
        }
        let mut filtered = String::with_capacity(delta.text.len());
        filter.push(&delta.text, &mut filtered);
        delta.text = filtered;
        let is_empty = delta.text.is_empty() && emission.message.is_none();
        if self.block.is_none() {
            let empty_delta = TextDelta {
                text: String::new(),
                ..*delta
            };
            self.block = Some(Emission {
                trace: emission.trace.clone(),
                ..Emission::new(emission.actor.clone(), Body::TextDelta(empty_delta))
            });
        }
        (!is_empty).then_some(emission)
    }

    /// Ends the block and returns its delayed text, if any.
    pub(crate) fn finish(&mut self) -> Option<Emission> {
        let (Some(mut delayed), Some(filter)) = (self.block.take(), &mut self.filter) else {
            return None;
        };
        if let Body::TextDelta(delta) = &mut delayed.body {
            filter.finish(&mut delta.text);
            if delta.text.is_empty() {
                return None;
            }
        }
        Some(delayed)
    }
}
