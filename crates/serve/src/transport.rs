//! Streams on sockets. Every wire is delivered by the same `Carrier`:
//!
//! ```text
//!   chat      TurnStream<ChatFormat>   server-sent events ┐
//!   session   SessionStream            WebSocket          ┴─▶ Carrier ─▶ socket
//! ```
//!
//! A further wire of single turns is a `TurnFormat` and a route; one of another
//! kind implements `Wire`.

mod phase;
mod carrier;
pub(crate) mod turn;
mod chat;
pub mod session;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio_util::task::TaskTracker;
use turnwire_otlp::Tracer;
use turnwire_session::{LiveSessions, SessionQuotas, TurnCanceller};

use crate::access::attach_tokens::AttachTokens;
use crate::access::live_identity::LiveIdentities;
use crate::config::stream::Stream as StreamSettings;
use crate::listen::OwnerShares;

pub(crate) use carrier::event_stream::EventStream;
pub(crate) use chat::ChatFormat;
pub use phase::ServerPhase;
pub use turn::{CountersByVersion, StreamLimits};

/// The state that all connections share.
pub struct Streams {
    /// Opens the sessions that connections read.
    pub sessions: LiveSessions,
    /// Cancels turns for the clients of the session wire.
    pub canceller: TurnCanceller,
    /// The bounds and times of every connection: the section `stream` of
    /// [`ServerConfig`](crate::config::ServerConfig).
    pub settings: StreamSettings,
    /// The [`ServerPhase`], which wakes every connection when the server shuts down.
    pub phase: ServerPhase,
    /// Events written to all connections of the session wire.
    pub events_sent: metrics::Counter,
    /// The number of the next connection of the session wire, which names it in logs.
    pub next_connection: AtomicU64,
    /// The running connections: [`App::serve`](crate::app::App::serve) waits for their last frames.
    pub tasks: TaskTracker,
    /// The tokens with which streams are opened from browsers.
    pub attach_tokens: Arc<AttachTokens>,
    /// The identities of the open connections.
    pub identities: Arc<LiveIdentities>,
    /// Counts streams and replays in the quotas of their owners.
    pub quotas: SessionQuotas,
    /// The share of each owner in all connections.
    pub connections: OwnerShares,
    /// The share of each owner in the large bodies that are received or sent.
    pub transfers: OwnerShares,
    /// The bound of open chat streams of each owner.
    pub stream_limits: StreamLimits,
    /// The frame counters of every `TurnFormat`.
    pub turn_counters: CountersByVersion,
    /// Records the deliveries of turns; `None` if this server exports no traces.
    pub tracer: Option<Arc<Tracer>>,
    /// The largest lag that any connection of the session wire has had.
    pub lag_max: AtomicU64,
}
