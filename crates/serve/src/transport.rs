//! Streams on sockets. Every wire is delivered by the same `Carrier`:
//!
//! ```text
//!   chat      TurnStream<ChatFormat>   server-sent events ┐
//!   session   SessionStream            WebSocket          ┴─▶ Carrier ─▶ socket
//! ```
//!
//! A further wire of single turns is a `TurnFormat` and a route; one of another kind implements
//! `Wire`.

mod phase;
mod carrier;
mod turn;
pub mod chat;
pub mod session;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio_util::task::TaskTracker;
use turnwire_session::{LiveSessions, TurnCanceller};
use turnwire_wire::pc3;

pub use phase::ServerPhase;
pub use turn::{
    CountersByVersion, FrameMark, StreamLimits, StreamPermit, TurnRequest, is_ahead,
    position_before,
};

/// Settings of connections, each with its reason in the configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Events a blocked client may be behind before it is closed.
    pub queue_max: u64,
    /// Messages in a snapshot.
    pub snapshot_messages: usize,
    /// Persisted events in a replay.
    pub replay_max: u64,
    /// Workers that one connection delivers.
    pub workers_max: usize,
    /// Silence after which the session wire pings.
    pub ping: Duration,
    /// Unanswered pings after which a connection is closed.
    pub ping_misses: u32,
    /// Time in which a client must subscribe.
    pub subscribe_wait: Duration,
    /// Time in which a socket must take something of what is pending.
    pub write_deadline: Duration,
    /// The largest frame that a client may send.
    pub frame_in_max: usize,
    /// Silence after which a turn stream gets a heartbeat.
    pub heartbeat: Duration,
    /// The least time that a client should wait before it opens a lost chat stream again.
    pub retry_ms: u32,
}

impl Options {
    fn limits(&self) -> carrier::wire::Limits {
        carrier::wire::Limits {
            lag_max: self.queue_max,
            write_deadline: self.write_deadline,
        }
    }
}

/// The state that all connections share.
pub struct Streams {
    /// Opens the sessions that connections read.
    pub sessions: LiveSessions,
    /// Cancels turns for the clients of the session wire.
    pub canceller: TurnCanceller,
    /// The bounds and times of every connection.
    pub options: Options,
    /// Changes when the server shuts down, and wakes every connection.
    pub phase: ServerPhase,
    /// Events written to all connections of the session wire.
    pub events_sent: metrics::Counter,
    /// The number of the next connection of the session wire, which names it in logs.
    pub next_connection: AtomicU64,
    /// The running connections, so that a shutdown can wait for their last frames.
    pub tasks: TaskTracker,
    /// The bound of open chat streams of each owner.
    pub stream_limits: StreamLimits,
    /// Counters of chat frames by the version of the agent's definition.
    pub chat_counters: CountersByVersion<pc3::Mark>,
    /// The furthest that any connection of the session wire has been behind.
    pub lag_max: AtomicU64,
}
