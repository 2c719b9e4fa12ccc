//! What the orchestrator says, through the turn's filter, block by block.
//!
//! Only text for the person passes the filter. Reasoning does not: its provider seals it, and a
//! model is not shown its reasoning again if a word of it was changed; an operator who does not
//! want it seen has `thinking.delta` suppressed.

use turnwire_event::body::stream::TextDelta;
use turnwire_event::port::Emission;
use turnwire_event::{ActorKind, Body};

use crate::filter::TextFilter;
use crate::hold::same_block;

pub(crate) struct Speech {
    filter: Option<Box<dyn TextFilter>>,
    /// While the filter is in a block: a delta of that block, without text.
    block: Option<Emission>,
}

impl Speech {
    pub(crate) fn new(filter: Option<Box<dyn TextFilter>>) -> Self {
        Self {
            filter,
            block: None,
        }
    }

    /// Whether every word passes as it is, without being looked at.
    pub(crate) fn is_plain(&self) -> bool {
        self.filter.is_none()
    }

    /// Whether the filter is in a block, and may keep some of it back.
    pub(crate) fn is_open(&self) -> bool {
        self.block.is_some()
    }

    /// Whether a delta is of another block than the one the filter is in.
    pub(crate) fn leaves(&self, emission: &Emission) -> bool {
        match (&self.block, &emission.body) {
            (Some(block), Body::TextDelta(delta)) => {
                emission.actor.kind() == ActorKind::Orchestrator
                    && !matches!(&block.body, Body::TextDelta(old) if same_block(old, delta))
            }
            _ => false,
        }
    }

    /// What may be said of a delta now; none if all of it is kept back. The block before it was
    /// finished.
    pub(crate) fn pass(&mut self, mut emission: Emission) -> Option<Emission> {
        if emission.actor.kind() != ActorKind::Orchestrator {
            return Some(emission);
        }
        let (Some(filter), Body::TextDelta(delta)) = (&mut self.filter, &mut emission.body) else {
            return Some(emission);
        };
        if delta.text.is_empty() {
            return Some(emission);
        }
        let mut said = String::with_capacity(delta.text.len());
        filter.push(&delta.text, &mut said);
        delta.text = said;
        let silent = delta.text.is_empty() && emission.message.is_none();
        if self.block.is_none() {
            let blank = TextDelta {
                text: String::new(),
                ..*delta
            };
            self.block = Some(Emission {
                trace: emission.trace.clone(),
                ..Emission::new(emission.actor.clone(), Body::TextDelta(blank))
            });
        }
        (!silent).then_some(emission)
    }

    /// The block has ended: what was kept back of it, if anything was.
    pub(crate) fn finish(&mut self) -> Option<Emission> {
        let (Some(mut rest), Some(filter)) = (self.block.take(), &mut self.filter) else {
            return None;
        };
        if let Body::TextDelta(delta) = &mut rest.body {
            filter.finish(&mut delta.text);
            if delta.text.is_empty() {
                return None;
            }
        }
        Some(rest)
    }
}
