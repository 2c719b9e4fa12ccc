//! The outbox: events in the order of their positions, each behind a gate, the number that must be
//! committed before the event is released.

use std::collections::VecDeque;

use turnwire_event::Seq;

use crate::sequencer::{OutboxBounds, ReleasedEvent};

struct GatedEvent {
    gate: Seq,
    event: ReleasedEvent,
}

/// Events that have a position and are not released.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<GatedEvent>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn is_full(&self, bounds: OutboxBounds) -> bool {
        self.queue.len() >= bounds.events || self.bytes >= bounds.bytes
    }

    pub(crate) fn push(&mut self, gate: Seq, event: ReleasedEvent) {
        self.bytes += event.bytes.len();
        self.queue.push_back(GatedEvent { gate, event });
    }

    /// Takes the events at the front whose gate is committed.
    pub(crate) fn release(&mut self, committed: Seq) -> Vec<ReleasedEvent> {
        let due = self
            .queue
            .iter()
            .take_while(|gated| gated.gate <= committed)
            .count();
        let mut released = Vec::with_capacity(due);
        for gated in self.queue.drain(..due) {
            self.bytes -= gated.event.bytes.len();
            released.push(gated.event);
        }
        // Returns the memory of a burst.
        if self.queue.is_empty() && self.queue.capacity() > 256 {
            self.queue.shrink_to(64);
        }
        released
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReleasedEvent> {
        self.queue.iter().map(|gated| &gated.event)
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }
}
