//! WebSocket clients of a session: a normal one, one whose connection is cut, and one that stops
//! reading. Each records everything it receives in the journal and has a deadline.

pub(crate) mod limited_stream;
mod options;
mod client;
mod resuming;
mod stalled;

pub use client::{ConnectRefused, WatchClient, WatchEnd, WatchFrame};
pub use options::SubscribeOptions;
pub use resuming::{CutPlace, ResumingReader};
pub use stalled::StalledClient;
