//! Watchers of a session over its WebSocket: one that behaves, one whose line is cut, one that
//! stops reading. Each writes all it gets into the journal, and none waits for ever.

pub(crate) mod tap;
mod ask;
mod client;
mod reader;
mod frozen;

pub use ask::Ask;
pub use client::{Client, End, Refused, Seen};
pub use frozen::Frozen;
pub use reader::{Cut, Reader};
