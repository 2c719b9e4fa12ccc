//! The sessions in memory: each at most once, opened when wanted, let go when idle.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::{Actor, Body, SessionId, metric};
use turnwire_hub::Closed;

use crate::error::Error;
use crate::live::session::{LiveSession, SessionServices};
use crate::store_read::{blocking, depth};

/// The open sessions.
#[derive(Default)]
pub struct SessionRegistry {
    open: Mutex<OpenSessions>,
}

#[derive(Default)]
struct OpenSessions {
    sessions: HashMap<SessionId, Arc<LiveSession>>,
    /// How many were taken out: whoever read the store before that must read it again.
    removals: u64,
}

impl SessionRegistry {
    /// A session, from memory or from the store.
    pub async fn get(
        &self,
        house: &Arc<SessionServices>,
        id: SessionId,
    ) -> Result<Arc<LiveSession>, Error> {
        loop {
            self.make_room(house.options.open_max, Some(id))?;
            let removals = {
                let open = self.open.lock();
                if let Some(live) = open.sessions.get(&id) {
                    return Ok(live.clone());
                }
                open.removals
            };
            let (row, depth, tail, queued) = blocking(house.store(), move |store| {
                let row = store.session(id)?.ok_or(Error::SessionNotFound)?;
                let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
                let depth = depth(store, &row)?;
                Ok::<_, Error>((row, depth, tail, store.queued(id)?))
            })
            .await?;
            let fresh = LiveSession::open(house.clone(), (row, depth), tail, None);
            fresh.line_up(queued);
            fresh.slot.lock().asked = true; // for all that is known
            let mut open = self.open.lock();
            // A session that was deleted, or let go after more was written, must not come back
            // as it was read.
            if open.removals == removals {
                let live = open.put(fresh);
                drop(open);
                live.kick();
                return Ok(live);
            }
        }
    }

    /// A session that is in memory.
    pub(crate) fn peek(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        self.open.lock().sessions.get(&id).cloned()
    }

    /// Puts a session in that nobody else can know yet.
    pub fn put(&self, live: Arc<LiveSession>) {
        self.open.lock().put(live);
    }

    /// Makes sure that one more fits, letting go of those that are free; nothing to do if the one
    /// is there already.
    pub fn make_room(&self, max: usize, for_id: Option<SessionId>) -> Result<(), Error> {
        let mut open = self.open.lock();
        if for_id.is_some_and(|id| open.sessions.contains_key(&id)) {
            return Ok(());
        }
        if open.sessions.len() >= max {
            open.let_go(LiveSession::is_free);
        }
        if open.sessions.len() >= max {
            Err(Error::TooMany)
        } else {
            Ok(())
        }
    }

    /// Takes a session out.
    pub fn remove(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        let mut open = self.open.lock();
        open.removals += 1;
        open.sessions.remove(&id)
    }

    /// Everyone now in memory.
    pub fn all(&self) -> Vec<Arc<LiveSession>> {
        self.open.lock().sessions.values().cloned().collect()
    }

    /// Tells everyone in memory who is followed; gives back how many were.
    pub(crate) fn tell(&self, body: &Body) -> usize {
        let tell = |live: &&Arc<LiveSession>| live.tell(Actor::SYSTEM, body.clone());
        self.all().iter().filter(tell).count()
    }

    /// Those with a turn in flight.
    pub fn running(&self) -> Vec<Arc<LiveSession>> {
        let open = self.open.lock();
        open.sessions
            .values()
            .filter(|live| live.current_turn().is_some())
            .cloned()
            .collect()
    }

    /// Those in which turns wait.
    pub fn waiting(&self) -> Vec<Arc<LiveSession>> {
        let open = self.open.lock();
        open.sessions
            .values()
            .filter(|live| live.slot.lock().waiting() > 0)
            .cloned()
            .collect()
    }

    /// Lets the idle ones go.
    pub fn unload(&self) {
        self.open.lock().let_go(LiveSession::is_idle);
    }
}

impl OpenSessions {
    /// Puts a session in; if another was quicker, that one is the session.
    fn put(&mut self, live: Arc<LiveSession>) -> Arc<LiveSession> {
        let live = self.sessions.entry(live.id).or_insert(live).clone();
        metrics::gauge!(metric::SESSIONS_OPEN).set(self.sessions.len() as f64);
        live
    }

    fn let_go(&mut self, may: impl Fn(&LiveSession) -> bool) {
        let before = self.sessions.len();
        // Only the map holds it, so nobody can be about to use it.
        self.sessions.retain(|id, live| {
            let goes = Arc::strong_count(live) == 1 && may(live);
            if goes && live.ring.closed() == Some(Closed::Quarantined) {
                live.house.quarantined.lock().insert(*id);
            }
            !goes
        });
        if self.sessions.len() < before {
            self.removals += 1;
            metrics::gauge!(metric::SESSIONS_OPEN).set(self.sessions.len() as f64);
        }
    }
}
