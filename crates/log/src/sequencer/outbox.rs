//! The outbox: events in the order they were given, each behind a gate.

use std::collections::VecDeque;

use turnwire_event::Seq;

use crate::sequencer::{Bounds, Released};

struct Waiting {
    /// The event leaves when this is committed, and not before those ahead of it.
    gate: Seq,
    event: Released,
}

/// Events that are placed and not released.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Waiting>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn is_full(&self, bounds: Bounds) -> bool {
        self.queue.len() >= bounds.events || self.bytes >= bounds.bytes
    }

    pub(crate) fn push(&mut self, gate: Seq, event: Released) {
        self.bytes += event.bytes.len();
        self.queue.push_back(Waiting { gate, event });
    }

    /// Everything at the front whose gate is committed.
    pub(crate) fn release(&mut self, committed: Seq) -> Vec<Released> {
        let due = self
            .queue
            .iter()
            .take_while(|waiting| waiting.gate <= committed)
            .count();
        let mut out = Vec::with_capacity(due);
        for waiting in self.queue.drain(..due) {
            self.bytes -= waiting.event.bytes.len();
            out.push(waiting.event);
        }
        // A burst must not hold its memory for ever.
        if self.queue.is_empty() && self.queue.capacity() > 256 {
            self.queue.shrink_to(64);
        }
        out
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Released> {
        self.queue.iter().map(|waiting| &waiting.event)
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }
}
