//! Watchers of a session over its WebSocket: one that behaves, one whose line is cut, one that
//! stops reading. Each writes all it gets into the journal, and none waits for ever.

pub(crate) mod limited_stream;
mod options;
mod client;
mod resuming;
mod stalled;

pub use client::{ConnectRefused, WatchClient, WatchEnd, WatchFrame};
pub use options::SubscribeOptions;
pub use resuming::{CutPlace, ResumingReader};
pub use stalled::StalledClient;
