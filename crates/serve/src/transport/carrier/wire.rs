//! What a wire adds to the [`Carrier`](super::Carrier): where its frames come from, its rules for
//! heartbeats and ends, and its counters.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::super::phase::ServerPhase;
use super::close::CloseReason;
use super::framing::Framing;
use super::pending::{FrameTally, PendingWrites};

/// Bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Events a blocked client may be behind.
    pub(crate) lag_max: u64,
    /// How long the socket may take nothing.
    pub(crate) write_deadline: Duration,
}

/// What the sessions of a connection have for its client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// A number that grows with every event.
    pub(crate) newest: u64,
    /// True if [`Wire::fill`] would queue frames or move a cursor.
    pub(crate) has_more: bool,
    /// Events in the rings that the client has not been given.
    pub(crate) lag: u64,
    /// False while the client catches up, or has been given all there will be.
    pub(crate) is_bounded: bool,
    /// True if the session was deleted or is damaged.
    pub(crate) has_ended: bool,
}

pub(crate) trait Wire: Send {
    type Framing: Framing;
    type Tally: FrameTally;

    /// The name of the gauge of open connections.
    const OPEN_CONNECTIONS: &'static str;

    fn phase(&self) -> &ServerPhase;

    fn limits(&self) -> Limits;

    fn backlog(&self) -> Backlog;

    /// True if more frames may be queued behind the `pending` ones.
    fn may_fill(&self, pending: &PendingWrites<Self::Tally>) -> bool {
        pending.is_empty()
    }

    /// Queues the frames that come next; false if there are none now.
    fn fill(
        &mut self,
        pending: &mut PendingWrites<Self::Tally>,
    ) -> impl Future<Output = Result<bool, CloseReason>> + Send;

    /// True once the last frame that there will ever be is queued.
    fn is_complete(&self) -> bool {
        false
    }

    /// Why a connection that has not begun to deliver ends now.
    fn early_close(&self, _now: Instant) -> Option<CloseReason> {
        None
    }

    /// Why a connection ends whose client has everything.
    fn idle_close(&self) -> Option<CloseReason>;

    /// How long the connection may be silent; none while it sends no heartbeats.
    fn heartbeat_interval(&self) -> Option<Duration>;

    fn heartbeat(&mut self, pending: &mut PendingWrites<Self::Tally>) -> Result<(), CloseReason>;

    /// When to look at the rules again, besides the next heartbeat.
    fn next_check(&self) -> Option<Instant> {
        None
    }

    /// Handles a frame of the client.
    fn receive(
        &mut self,
        inbound: <Self::Framing as Framing>::Inbound,
        pending: &mut PendingWrites<Self::Tally>,
    ) -> impl Future<Output = Result<(), CloseReason>> + Send;

    /// Records how many events the client is behind.
    fn record_lag(&self, _lag: u64) {}

    /// Counts frames that the socket has taken.
    fn record_sent(&mut self, tally: &Self::Tally);

    /// Called before the last bytes are written; may queue a last frame.
    fn closing(&mut self, reason: CloseReason, pending: &mut PendingWrites<Self::Tally>);

    /// Called after the last bytes are written; `pending` has those that never were.
    fn closed(&mut self, _reason: CloseReason, _pending: &PendingWrites<Self::Tally>) {}
}
