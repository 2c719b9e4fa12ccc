//! One released event as a [`Ring`](crate::Ring) stores it: the header that filters and cursors
//! read, and the serialised event, which the ring never parses.

use bytes::Bytes;
use turnwire_event::EventHead;

/// One released event in a [`Ring`](crate::Ring).
#[derive(Clone, Debug)]
pub struct RingEntry {
    /// The position, type, turn and actor of the event.
    pub head: EventHead,
    /// The event as it was serialised for the log.
    pub bytes: Bytes,
}

/// What the allocator and the shared header of [`Bytes`] add to an entry.
const ALLOCATION_BYTES: usize = 48;

impl RingEntry {
    /// The memory of the entry.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len() + size_of::<Self>() + ALLOCATION_BYTES
    }
}
