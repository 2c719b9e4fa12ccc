//! What a wire adds to the [`Carrier`](super::Carrier): where its frames come from, its rules for
//! heartbeats and ends, and its counters.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::access::live_identity::LiveIdentity;
use crate::config::stream::Stream as StreamSettings;

use super::super::phase::ServerPhase;
use super::close::CloseReason;
use super::cursor::Backlog;
use super::framing::Framing;
use super::pending::{FrameTally, PendingWrites};

/// Bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Events a blocked client may be behind.
    pub(crate) lag_max: u64,
    /// How long the socket may be blocked.
    pub(crate) write_deadline: Duration,
}

impl Limits {
    pub(crate) fn new(settings: &StreamSettings) -> Self {
        Self {
            lag_max: settings.queue_max as u64,
            write_deadline: Duration::from_millis(settings.write_deadline_ms),
        }
    }
}

pub(crate) trait Wire: Send {
    type Framing: Framing;
    type Tally: FrameTally;

    /// The name of the gauge of open connections.
    const OPEN_CONNECTIONS: &'static str;

    fn phase(&self) -> &ServerPhase;

    /// How long the client is who it is; `None` if that does not end.
    fn identity(&self) -> Option<&LiveIdentity> {
        None
    }

    fn limits(&self) -> Limits;

    fn backlog(&self) -> Backlog;

    /// The part of [`Backlog::lag`] that the client gets: the lag bound counts nothing else.
    fn passing_lag(&mut self, backlog: Backlog) -> u64 {
        backlog.lag
    }

    /// True if more frames may be queued behind the `pending` ones.
    fn may_fill(&self, pending: &PendingWrites<Self::Tally>) -> bool {
        pending.is_empty()
    }

    /// Queues the frames that come next; false if there are none now.
    fn fill(
        &mut self,
        pending: &mut PendingWrites<Self::Tally>,
    ) -> impl Future<Output = Result<bool, CloseReason>> + Send;

    /// True once the last frame of the stream is queued.
    fn is_complete(&self) -> bool {
        false
    }

    /// The [`CloseReason`] of a connection that has not begun to deliver, if it must close now.
    fn early_close(&self, _now: Instant) -> Option<CloseReason> {
        None
    }

    /// The [`CloseReason`] of a connection whose client has every frame, if it must close now.
    fn idle_close(&self) -> Option<CloseReason>;

    /// The silence after which [`heartbeat`](Self::heartbeat) is called; `None` while there are none.
    fn heartbeat_interval(&self) -> Option<Duration>;

    fn heartbeat(&mut self, pending: &mut PendingWrites<Self::Tally>) -> Result<(), CloseReason>;

    /// When to check the rules again, besides the next heartbeat.
    fn next_check(&self) -> Option<Instant> {
        None
    }

    /// Handles a frame of the client.
    fn receive(
        &mut self,
        inbound: <Self::Framing as Framing>::Inbound,
        pending: &mut PendingWrites<Self::Tally>,
    ) -> impl Future<Output = Result<(), CloseReason>> + Send;

    /// Called at every check with the [`Backlog`], for the metrics of the wire.
    fn record_lag(&mut self, _backlog: Backlog) {}

    /// Called when the socket has taken everything that was pending.
    fn record_drained(&mut self) {}

    /// Counts frames that the socket has taken.
    fn record_sent(&mut self, tally: &Self::Tally);

    /// Called before the last bytes are written; may queue a last frame.
    fn closing(&mut self, reason: CloseReason, pending: &mut PendingWrites<Self::Tally>);

    /// Called after the last bytes are written; `pending` has those that never were.
    fn closed(&mut self, _reason: CloseReason, _pending: &PendingWrites<Self::Tally>) {}
}
