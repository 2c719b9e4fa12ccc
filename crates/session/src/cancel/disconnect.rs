//! Those who watch a session, counted: watchers, announced on the bus, and streams of one turn.
//! The last to leave may end a turn that asked for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use turnwire_event::TurnId;
use turnwire_event::code::OnDisconnect;

use crate::cancel::request;
use crate::live::bus::BusNotice;
use crate::live::session::LiveSession;
use crate::submit::request::DisconnectScope;

/// One watcher; dropping it is leaving.
pub struct WatchGuard {
    live: Arc<LiveSession>,
    quiet: bool,
}

impl LiveSession {
    /// Someone subscribed.
    pub fn watch(self: &Arc<Self>) -> WatchGuard {
        self.watchers.fetch_add(1, Ordering::AcqRel);
        self.note(BusNotice::Registered);
        WatchGuard {
            live: self.clone(),
            quiet: false,
        }
    }
}

impl WatchGuard {
    /// Leaves without a word: the server is going away, the log need not know.
    pub fn leave_quietly(mut self) {
        self.quiet = true;
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        *self.live.idle_since.lock() = Instant::now();
        let left = self.live.watchers.fetch_sub(1, Ordering::AcqRel) - 1;
        if !self.quiet {
            self.live.note(BusNotice::Unregistered);
        }
        if left == 0 {
            self.live.left(self.quiet);
        }
    }
}

/// One stream of a turn; dropping it is leaving. It counts as a watcher of the session too, but
/// the bus does not speak of it.
pub struct StreamGuard {
    live: Arc<LiveSession>,
    turn: TurnId,
    quiet: bool,
}

impl LiveSession {
    /// Someone streams this turn, whether it waits, runs or has ended.
    pub fn attend(self: &Arc<Self>, turn: TurnId) -> StreamGuard {
        if let Some(presence) = self.slot.lock().presence(turn) {
            presence.streams += 1;
        }
        self.attended(turn)
    }

    /// A stream that the turn's presence counts already.
    pub(crate) fn attended(self: &Arc<Self>, turn: TurnId) -> StreamGuard {
        self.watchers.fetch_add(1, Ordering::AcqRel);
        StreamGuard {
            live: self.clone(),
            turn,
            quiet: false,
        }
    }
}

impl StreamGuard {
    /// The session of the turn.
    pub fn live(&self) -> &Arc<LiveSession> {
        &self.live
    }

    /// Leaves without consequence: the server is going away.
    pub fn leave_quietly(mut self) {
        self.quiet = true;
    }

    /// Takes the stream out of its turn's count; none if the turn is over.
    fn step_out(&self) -> Option<StreamDeparture> {
        let mut slot = self.live.slot.lock();
        let presence = slot.presence(self.turn)?;
        presence.streams = presence.streams.saturating_sub(1);
        if presence.streams > 0 {
            return Some(StreamDeparture::Others);
        }
        // A quiet leaving too: an older grace ended when this stream came.
        presence.departures += 1;
        let departure = presence.departures;
        let grace_ms = slot.stream_grace_ms(self.turn);
        Some(match grace_ms.filter(|_| !self.quiet) {
            Some(grace_ms) => StreamDeparture::Last(departure, grace_ms),
            None => StreamDeparture::Others,
        })
    }
}

/// What a stream leaves behind in a turn that is not over.
enum StreamDeparture {
    /// Others, or a turn that does not mind.
    Others,
    /// Nobody: which leaving this was, and how long the turn waits for someone to come back.
    Last(u64, u64),
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        *self.live.idle_since.lock() = Instant::now();
        let leaving = self.step_out();
        let left = self.live.watchers.fetch_sub(1, Ordering::AcqRel) - 1;
        // The end of a turn that is over is no leaving of another that runs.
        let Some(leaving) = leaving else { return };
        if let StreamDeparture::Last(departure, grace_ms) = leaving {
            let turn = self.turn;
            self.live.clone().cancel_after(grace_ms, turn, move |live| {
                live.slot.lock().presence(turn).is_some_and(|presence| {
                    presence.streams == 0 && presence.departures == departure
                })
            });
        }
        if left == 0 {
            self.live.left(self.quiet);
        }
    }
}

/// How long after a look at a full disk the next is worth it.
const ROOM_AGAIN: Duration = Duration::from_secs(1);

impl LiveSession {
    /// The last watcher has left: a turn that asked for it is cancelled after its grace, unless
    /// someone comes back. A quiet leaving has no consequence but that older ones have none.
    pub(crate) fn left(self: &Arc<Self>, quiet: bool) {
        let departure = self.departures.fetch_add(1, Ordering::AcqRel) + 1;
        if quiet {
            return;
        }
        self.heard.fetch_max(departure, Ordering::AcqRel);
        let due = self.slot.lock().running.as_ref().and_then(|running| {
            let minds = running.on_disconnect == OnDisconnect::Cancel;
            (minds && running.bound == DisconnectScope::Session)
                .then_some((running.id, running.grace_ms))
        });
        let Some((turn, grace_ms)) = due else { return };
        self.clone().cancel_after(grace_ms, turn, move |live| {
            let away = live.watchers.load(Ordering::Acquire) == 0;
            away && live.departures.load(Ordering::Acquire) == departure
        });
    }

    /// Whether the last watcher has left, not quietly, since there had been so many departures,
    /// and nobody came after.
    pub(crate) fn left_since(&self, departures: usize) -> bool {
        let heard = self.heard.load(Ordering::Acquire);
        heard > departures
            && heard == self.departures.load(Ordering::Acquire)
            && self.watchers.load(Ordering::Acquire) == 0
    }

    /// Cancels a turn after its grace if those who count are still away.
    fn cancel_after(
        self: Arc<Self>,
        grace_ms: u64,
        turn: TurnId,
        away: impl Fn(&Self) -> bool + Send + 'static,
    ) {
        let runtime = self.house.runner.runtime.clone();
        runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            while away(&self) {
                // The room that is left is for the ends of turns that run; one in line can wait.
                let waits = self.slot.lock().find(turn).is_some();
                if !(waits && self.house.writer.health().is_full()) {
                    request::request(&self, turn, "system", "client_disconnected");
                    return;
                }
                tokio::time::sleep(ROOM_AGAIN).await;
            }
        });
    }
}
