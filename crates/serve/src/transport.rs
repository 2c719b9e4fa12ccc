//! Streams on sockets: the session wire on a WebSocket, from the upgrade to the last frame, and the
//! chat wire as server-sent events (`chat`).
//!
//! ```text
//!   ring ──▶ runs of framed bytes, shared ──▶ Outbound ──▶ Pipe ──▶ socket     (raw, coalesced)
//!   client frames ◀── tungstenite ◀──────────────────────  Pipe ◀── socket     (checked)
//! ```
//!
//! Reading, pongs and the closing handshake are the library's. Frames that every viewer gets are
//! framed once and written as they are: a server's frames carry no mask, so they are the same
//! bytes for all.

pub mod chat;
mod connection;
mod frame;
mod outbound;
mod phase;
mod pipe;
mod place;
mod course;
mod workers;
mod subscription;
mod upgrade;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio_util::task::TaskTracker;
use turnwire_session::{LiveSessions, TurnCanceller};

pub use phase::Phase;
pub use upgrade::{Refused, stream};

/// Settings of connections, each with its reason in the configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// How far a connection may be behind before it is cut.
    pub queue_max: u64,
    /// Messages in a snapshot.
    pub snapshot_messages: usize,
    /// Persisted events in a replay.
    pub replay_max: u64,
    /// Workers that one connection carries.
    pub workers_max: usize,
    /// How long without traffic before a ping.
    pub ping: Duration,
    /// Unanswered pings before the end.
    pub ping_misses: u32,
    /// How long a connection may take to subscribe.
    pub subscribe_wait: Duration,
    /// How long a write may make no progress.
    pub write_deadline: Duration,
    /// The largest frame a client may send.
    pub frame_in_max: usize,
    /// How long a chat stream may be silent.
    pub heartbeat: Duration,
    /// How long a client that lost its chat stream should wait, at least.
    pub retry_ms: u32,
}

/// What all connections share.
pub struct Streams {
    /// Opens the sessions that connections read.
    pub sessions: LiveSessions,
    /// Cancels turns for the clients of the session wire.
    pub canceller: TurnCanceller,
    /// Settings.
    pub options: Options,
    /// Whether connections may stay.
    pub phase: Phase,
    /// Events written to all connections.
    pub sent: metrics::Counter,
    /// Numbers for connections, so that the log can name one.
    pub next: AtomicU64,
    /// The connections, so that the server can wait for their goodbyes.
    pub tasks: TaskTracker,
    /// How many chat streams each client has.
    pub places: chat::Places,
    /// The counters of chat frames.
    pub counted: chat::Counted,
    /// The furthest any connection has been behind.
    pub depth: AtomicU64,
}
