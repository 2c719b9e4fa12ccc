//! Those who watch a session: counted, announced on the bus, and the last to leave may end a
//! turn that asked for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use turnwire_event::code::OnDisconnect;

use crate::bus::Note;
use crate::cancel;
use crate::live::Live;

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

impl Live {
    /// The last watcher has left: a turn that asked for it is cancelled after its grace, unless
    /// someone comes back.
    pub(crate) fn left(self: &Arc<Self>) {
        let departure = self.departures.fetch_add(1, Ordering::AcqRel) + 1;
        let due = self.slot.lock().as_ref().and_then(|running| {
            (running.on_disconnect == OnDisconnect::Cancel)
                .then_some((running.id, running.grace_ms))
        });
        let Some((turn, grace_ms)) = due else { return };
        let live = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            let away = live.watchers.load(Ordering::Acquire) == 0;
            if away && live.departures.load(Ordering::Acquire) == departure {
                cancel::request(&live, turn, "system", "client_disconnected");
            }
        });
    }
}
