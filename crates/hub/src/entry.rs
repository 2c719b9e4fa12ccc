//! One released event in a ring.

use bytes::Bytes;
use turnwire_event::Head;

/// What a ring keeps of an event.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Place, type, actor.
    pub head: Head,
    /// The event.
    pub bytes: Bytes,
}
