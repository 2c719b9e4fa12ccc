//! The sessions in memory: each at most once, loaded on demand, unloaded when idle.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::{Actor, Body, SessionId, metric};
use turnwire_hub::RingClosed;

use crate::error::Error;
use crate::live::session::{LiveSession, SessionServices};
use crate::store_read::worker_depth;

/// The sessions in memory, by id.
#[derive(Default)]
pub(crate) struct SessionRegistry {
    open: Mutex<OpenSessions>,
}

#[derive(Default)]
struct OpenSessions {
    sessions: HashMap<SessionId, Arc<LiveSession>>,
    /// The number of removals: a caller that read the store before one must read it again.
    removals: u64,
}

impl SessionRegistry {
    /// A session, from memory or loaded from the store.
    pub(crate) async fn open(
        &self,
        services: &Arc<SessionServices>,
        id: SessionId,
    ) -> Result<Arc<LiveSession>, Error> {
        loop {
            self.make_room(services.options.open_max, Some(id))?;
            let removals = {
                let open = self.open.lock();
                if let Some(live) = open.sessions.get(&id) {
                    return Ok(live.clone());
                }
                open.removals
            };
            let read = services.read(move |store| {
                let row = store.session(id)?.ok_or(Error::SessionNotFound)?;
                let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
                let depth = worker_depth(store, &row)?;
                Ok::<_, Error>((row, depth, tail, store.queued_turns(id)?))
            });
            let (row, depth, tail, queued) = read.await?;
            let loaded = LiveSession::load(services.clone(), (row, depth), tail, None);
            {
                let mut slot = loaded.slot.lock();
                slot.restore_queue(queued);
                slot.may_have_open_approvals = true; // not known without a read
            }
            let mut open = self.open.lock();
            // A session that was deleted, or unloaded after more was written, must not come back
            // in the state that was read.
            if open.removals == removals {
                let live = open.insert(loaded);
                drop(open);
                live.start_next_turn();
                return Ok(live);
            }
        }
    }

    /// A session that is in memory.
    pub(crate) fn get(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        self.open.lock().sessions.get(&id).cloned()
    }

    /// Inserts a new session, which the store does not have yet.
    pub(crate) fn insert(&self, live: Arc<LiveSession>) {
        self.open.lock().insert(live);
    }

    /// Makes room for one more session, unless `for_id` is in memory already: unloads free ones
    /// if there are `max`.
    pub(crate) fn make_room(&self, max: usize, for_id: Option<SessionId>) -> Result<(), Error> {
        let mut open = self.open.lock();
        if for_id.is_some_and(|id| open.sessions.contains_key(&id)) {
            return Ok(());
        }
        if open.sessions.len() >= max {
            open.unload(LiveSession::is_free);
        }
        match open.sessions.len() >= max {
            true => Err(Error::TooMany),
            false => Ok(()),
        }
    }

    /// Removes a session from memory.
    pub(crate) fn remove(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        let mut open = self.open.lock();
        open.removals += 1;
        open.sessions.remove(&id)
    }

    /// All sessions in memory.
    pub(crate) fn all(&self) -> Vec<Arc<LiveSession>> {
        self.filtered(|_| true)
    }

    /// Emits an event in every session with a running turn or a watcher; returns their number.
    pub(crate) fn announce(&self, body: &Body) -> usize {
        let emit = |live: &&Arc<LiveSession>| live.emit_if_followed(Actor::SYSTEM, body.clone());
        self.all().iter().filter(emit).count()
    }

    /// The sessions with a running turn.
    pub(crate) fn running(&self) -> Vec<Arc<LiveSession>> {
        self.filtered(|live| live.current_turn().is_some())
    }

    /// The sessions with queued turns.
    pub(crate) fn with_queued_turns(&self) -> Vec<Arc<LiveSession>> {
        self.filtered(|live| !live.slot.lock().queue.is_empty())
    }

    fn filtered(&self, selects: impl Fn(&LiveSession) -> bool) -> Vec<Arc<LiveSession>> {
        let open = self.open.lock();
        let sessions = open.sessions.values();
        sessions.filter(|live| selects(live)).cloned().collect()
    }

    /// Unloads the idle sessions.
    pub(crate) fn unload_idle(&self) {
        self.open.lock().unload(LiveSession::is_idle);
    }
}

impl OpenSessions {
    /// Inserts a session, and returns the one in memory: another caller may have been first.
    fn insert(&mut self, live: Arc<LiveSession>) -> Arc<LiveSession> {
        let live = self.sessions.entry(live.id).or_insert(live).clone();
        metrics::gauge!(metric::SESSIONS_OPEN).set(self.sessions.len() as f64);
        live
    }

    fn unload(&mut self, can_unload: impl Fn(&LiveSession) -> bool) {
        let count = self.sessions.len();
        // Only the map refers to the session, so no caller is about to use it.
        self.sessions.retain(|id, live| {
            let unload = Arc::strong_count(live) == 1 && can_unload(live);
            if unload && live.ring.close_reason() == Some(RingClosed::Quarantined) {
                live.services.quarantined.lock().insert(*id);
            }
            !unload
        });
        if self.sessions.len() < count {
            self.removals += 1;
            metrics::gauge!(metric::SESSIONS_OPEN).set(self.sessions.len() as f64);
        }
    }
}
