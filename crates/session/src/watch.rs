//! Those who watch a session, counted: watchers, announced on the bus, and streams of one turn.
//! The last to leave may end a turn that asked for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use turnwire_event::TurnId;
use turnwire_event::code::OnDisconnect;

use crate::bus::Note;
use crate::cancel;
use crate::live::Live;
use crate::submit::Bound;

/// One watcher; dropping it is leaving.
pub struct Watcher {
    live: Arc<Live>,
    quiet: bool,
}

impl Live {
    /// Someone subscribed.
    pub fn watch(self: &Arc<Self>) -> Watcher {
        self.watchers.fetch_add(1, Ordering::AcqRel);
        self.note(Note::Registered);
        Watcher {
            live: self.clone(),
            quiet: false,
        }
    }
}

impl Watcher {
    /// Leaves without a word: the server is going away, the log need not know.
    pub fn leave_quietly(mut self) {
        self.quiet = true;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        *self.live.idle_since.lock() = Instant::now();
        let left = self.live.watchers.fetch_sub(1, Ordering::AcqRel) - 1;
        if self.quiet {
            return;
        }
        self.live.note(Note::Unregistered);
        if left > 0 {
            return;
        }
        self.live.left();
    }
}

/// One stream of a turn; dropping it is leaving. It counts as a watcher of the session too, but
/// the bus does not speak of it.
pub struct Attendance {
    live: Arc<Live>,
    turn: TurnId,
    quiet: bool,
}

impl Live {
    /// Someone streams this turn, whether it waits, runs or has ended.
    pub fn attend(self: &Arc<Self>, turn: TurnId) -> Attendance {
        if let Some(presence) = self.slot.lock().presence(turn) {
            presence.streams += 1;
        }
        self.attended(turn)
    }

    /// A stream that the turn's presence counts already.
    pub(crate) fn attended(self: &Arc<Self>, turn: TurnId) -> Attendance {
        self.watchers.fetch_add(1, Ordering::AcqRel);
        Attendance {
            live: self.clone(),
            turn,
            quiet: false,
        }
    }
}

impl Attendance {
    /// The session of the turn.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Leaves without consequence: the server is going away.
    pub fn leave_quietly(mut self) {
        self.quiet = true;
    }

    /// Takes the stream out of its turn's count. If it was the last, and the turn minds: which
    /// leaving this was, and how long the turn waits for someone to come back.
    fn step_out(&self) -> Option<(u64, u64)> {
        let mut slot = self.live.slot.lock();
        let presence = slot.presence(self.turn)?;
        presence.streams = presence.streams.saturating_sub(1);
        if self.quiet || presence.streams > 0 {
            return None;
        }
        presence.departures += 1;
        let departure = presence.departures;
        slot.stream_grace_ms(self.turn)
            .map(|grace_ms| (departure, grace_ms))
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        *self.live.idle_since.lock() = Instant::now();
        let due = self.step_out();
        let left = self.live.watchers.fetch_sub(1, Ordering::AcqRel) - 1;
        if self.quiet {
            return;
        }
        if let Some((departure, grace_ms)) = due {
            let (live, turn) = (self.live.clone(), self.turn);
            self.live.house.runner.runtime.spawn(async move {
                tokio::time::sleep(Duration::from_millis(grace_ms)).await;
                let away = live.slot.lock().presence(turn).is_some_and(|presence| {
                    presence.streams == 0 && presence.departures == departure
                });
                if away {
                    cancel::request(&live, turn, "system", "client_disconnected");
                }
            });
        }
        if left == 0 {
            self.live.left();
        }
    }
}

impl Live {
    /// The last watcher has left: a turn that asked for it is cancelled after its grace, unless
    /// someone comes back.
    pub(crate) fn left(self: &Arc<Self>) {
        let departure = self.departures.fetch_add(1, Ordering::AcqRel) + 1;
        let due = self.slot.lock().running.as_ref().and_then(|running| {
            let minds = running.on_disconnect == OnDisconnect::Cancel;
            (minds && running.bound == Bound::Session).then_some((running.id, running.grace_ms))
        });
        let Some((turn, grace_ms)) = due else { return };
        let live = self.clone();
        self.house.runner.runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            let away = live.watchers.load(Ordering::Acquire) == 0;
            if away && live.departures.load(Ordering::Acquire) == departure {
                cancel::request(&live, turn, "system", "client_disconnected");
            }
        });
    }
}
