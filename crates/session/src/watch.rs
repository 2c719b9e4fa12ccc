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
        let due = self.live.slot.lock().as_ref().and_then(|running| {
            (running.on_disconnect == OnDisconnect::Cancel)
                .then_some((running.id, running.grace_ms))
        });
        if let Some((turn, grace_ms)) = due {
            let live = self.live.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(grace_ms)).await;
                if live.watchers.load(Ordering::Acquire) == 0 {
                    cancel::request(&live, turn, "system", "client_disconnected");
                }
            });
        }
    }
}
