//! The clients of a session as guards: watchers of the session, which the bus announces, and
//! streams of one turn. The last one to leave cancels a turn that asked for it.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::TurnId;
use turnwire_event::body::turn::TurnCancelled;

use super::request::request_cancel;
use crate::live::bus::BusNotice;
use crate::live::session::LiveSession;
use crate::submit::request::DisconnectScope;

/// A watcher of a [`LiveSession`]; dropping the guard unsubscribes.
pub struct WatchGuard {
    live: Arc<LiveSession>,
    quiet: bool,
}

impl WatchGuard {
    /// Adds a watcher, and announces it on the bus.
    pub fn new(live: &Arc<LiveSession>) -> Self {
        live.presence.enter();
        live.emit_notice(BusNotice::Registered);
        Self {
            live: live.clone(),
            quiet: false,
        }
    }

    /// Leaves without an event: the server is shutting down.
    pub fn leave_quietly(mut self) {
        self.quiet = true;
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.live.presence.touch();
        let is_last = self.live.presence.leave();
        if !self.quiet {
            self.live.emit_notice(BusNotice::Unregistered);
        }
        if is_last {
            on_last_watcher_left(&self.live, self.quiet);
        }
    }
}

/// A connection to a parent session that delivers the events of a worker too; dropping the guard ends
/// that. It is no watcher of the worker: its turns and the bus know nothing of it.
pub struct DeliveryGuard(Arc<LiveSession>);

impl DeliveryGuard {
    /// Adds the connection, which is told when the worker is deleted.
    pub fn new(worker: &Arc<LiveSession>) -> Self {
        worker.presence.start_delivery();
        Self(worker.clone())
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        self.0.presence.end_delivery();
    }
}

/// A stream of one turn; dropping the guard disconnects. The stream counts as a watcher of the
/// session too, but no [`BusNotice`] announces it.
pub struct StreamGuard {
    live: Arc<LiveSession>,
    turn: TurnId,
    quiet: bool,
}

impl StreamGuard {
    /// Adds a stream to a turn that is queued, running or ended.
    pub fn new(live: &Arc<LiveSession>, turn: TurnId) -> Self {
        if let Some(presence) = live.slot.lock().presence_mut(turn) {
            presence.streams += 1;
        }
        Self::already_counted(live, turn)
    }

    /// The guard of a stream that the turn's presence already counts.
    pub(crate) fn already_counted(live: &Arc<LiveSession>, turn: TurnId) -> Self {
        live.presence.enter();
        Self {
            live: live.clone(),
            turn,
            quiet: false,
        }
    }

    /// The session of the turn.
    pub fn live(&self) -> &Arc<LiveSession> {
        &self.live
    }

    /// Leaves without consequence: the server is shutting down.
    pub fn leave_quietly(mut self) {
        self.quiet = true;
    }

    /// Takes the stream out of its turn's count; false if the turn has ended. Without its last
    /// stream the turn is cancelled after its grace period, unless a stream comes back.
    fn leave_turn(&self) -> bool {
        let turn = self.turn;
        let mut slot = self.live.slot.lock();
        let Some(presence) = slot.presence_mut(turn) else {
            return false;
        };
        presence.streams = presence.streams.saturating_sub(1);
        if presence.streams > 0 {
            return true;
        }
        // Counted also if quiet: an earlier grace period ended when this stream came.
        presence.departures += 1;
        let departure = presence.departures;
        let grace_ms = slot.stream_grace_ms(turn).filter(|_| !self.quiet);
        drop(slot);
        if let Some(grace_ms) = grace_ms {
            cancel_after(self.live.clone(), grace_ms, turn, move |live| {
                live.slot.lock().presence_mut(turn).is_some_and(|presence| {
                    presence.streams == 0 && presence.departures == departure
                })
            });
        }
        true
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.live.presence.touch();
        let is_open = self.leave_turn();
        let is_last = self.live.presence.leave();
        // A stream of a turn that has ended does not count for the one that runs now.
        if is_open && is_last {
            on_last_watcher_left(&self.live, self.quiet);
        }
    }
}

/// Pause between two checks for space on a full disk.
const DISK_FULL_RETRY: Duration = Duration::from_secs(1);

/// Cancels a running turn with [`DisconnectScope::Session`] after its grace period, unless someone
/// comes back. A quiet departure only ends the grace periods of earlier ones.
pub(crate) fn on_last_watcher_left(live: &Arc<LiveSession>, quiet: bool) {
    let departure = live.presence.count_departure(quiet);
    if quiet {
        return;
    }
    let affected = live.slot.lock().running.as_ref().and_then(|running| {
        let (scope, grace_ms) = running.cancel_grace?;
        (scope == DisconnectScope::Session).then_some((running.id, grace_ms))
    });
    if let Some((turn, grace_ms)) = affected {
        cancel_after(live.clone(), grace_ms, turn, move |live| {
            live.presence.is_away_since(departure)
        });
    }
}

/// Cancels a turn after its grace period if `is_away` still holds.
fn cancel_after(
    live: Arc<LiveSession>,
    grace_ms: u64,
    turn: TurnId,
    is_away: impl Fn(&LiveSession) -> bool + Send + 'static,
) {
    let runtime = live.services.runner.runtime.clone();
    runtime.spawn(async move {
        tokio::time::sleep(Duration::from_millis(grace_ms)).await;
        while is_away(&live) {
            // The remaining space is for the terminals of running turns; a queued one can wait.
            let is_queued = live.slot.lock().queued(turn).is_some();
            if !(is_queued && live.services.is_storage_full()) {
                request_cancel(&live, turn, "system", TurnCancelled::CLIENT_DISCONNECTED);
                return;
            }
            tokio::time::sleep(DISK_FULL_RETRY).await;
        }
    });
}
