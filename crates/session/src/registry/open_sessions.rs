//! The sessions in memory: each at most once, loaded on demand, unloaded when idle.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::{Actor, Body, Owner, SessionId, metric};
use turnwire_fair::{FairLimits, FairRefusal};
use turnwire_hub::RingClosed;

use crate::error::{Error, SharedResource};
use crate::live::session::{LiveSession, SessionServices};
use crate::options::Options;
use crate::read::viewer::Viewer;
use crate::store_read::{Reader, worker_depth};

/// The sessions in memory, by id.
#[derive(Default)]
pub(crate) struct SessionRegistry {
    open: Mutex<OpenSessions>,
}

#[derive(Default)]
struct OpenSessions {
    sessions: HashMap<SessionId, Arc<LiveSession>>,
    /// The ids in `sessions` by owner.
    by_owner: HashMap<Owner, HashSet<SessionId>>,
    /// The sessions that callers are reading from the store.
    loading: HashMap<SessionId, LoadingSession>,
}

/// A session that is not in memory, and the callers that load it.
#[derive(Default)]
struct LoadingSession {
    callers: usize,
    /// The number of removals: a caller that read the store before one must read it again.
    removals: u64,
}

/// Counts one caller that loads a session, as [`LoadingSession`]. Not dropped under the lock of the
/// registry.
struct LoadGuard<'a> {
    registry: &'a SessionRegistry,
    id: SessionId,
    /// The removals of the session before the caller read the store.
    removals: u64,
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        let mut open = self.registry.open.lock();
        if let Some(loading) = open.loading.get_mut(&self.id) {
            loading.callers -= 1;
            if loading.callers == 0 {
                open.loading.remove(&self.id);
            }
        }
    }
}

impl SessionRegistry {
    /// A session that `viewer` sees, from memory or loaded from the store; without a viewer for the
    /// server itself. A session that the viewer does not see is not loaded, and takes the same read
    /// of the store as one that does not exist: neither a limit of its owner nor the time tells that
    /// it exists.
    pub(crate) async fn open(
        &self,
        services: &Arc<SessionServices>,
        id: SessionId,
        viewer: Option<Viewer<'_>>,
    ) -> Result<Arc<LiveSession>, Error> {
        loop {
            let load = match self.get_or_load(id) {
                Ok(live) if viewer.is_none_or(|viewer| viewer.sees(&live.owner)) => {
                    return Ok(live);
                }
                Ok(_) => None,
                Err(load) => Some(load),
            };
            let reader =
                viewer.map_or(Reader::Server, |viewer| Reader::Owner(viewer.owner.clone()));
            let seen_by = viewer.map(|viewer| (viewer.owner.clone(), viewer.is_tenant_wide));
            let read = services.read_for(reader, move |store| {
                let row = store.session(id)?;
                let row = row.filter(|row| {
                    seen_by.is_none_or(|(ref owner, is_tenant_wide)| {
                        let viewer = Viewer {
                            is_tenant_wide,
                            ..owner.into()
                        };
                        viewer.sees(&row.owner)
                    })
                });
                let row = row.ok_or(Error::SessionNotFound)?;
                let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
                let depth = worker_depth(store, &row)?;
                let waiting = (store.queued_turns(id)?, store.open_approvals(id)?);
                Ok::<_, Error>((row, depth, tail, waiting))
            });
            let (row, depth, tail, (queued, approvals)) = read.await?;
            // In memory it belonged to somebody else: the same id was not given twice.
            let load = load.ok_or(Error::SessionNotFound)?;
            let owner = row.owner.clone();
            let loaded = LiveSession::load(services.clone(), (row, depth), tail, None);
            loaded
                .ring
                .with_state_mut(|transcript| transcript.work.approvals = approvals);
            {
                let mut slot = loaded.slot.lock();
                let queue_limit = &services.runner.queued;
                slot.restore_queue(queued, || queue_limit.try_acquire(&owner).ok());
                slot.may_have_open_approvals = true; // not known without a read
            }
            let mut open = self.open.lock();
            // A session that was deleted, or unloaded after more was written, must not come back
            // in the state that was read.
            if open.is_current(&load) {
                if !open.sessions.contains_key(&id) {
                    open.make_room(&services.options, &owner)?;
                }
                let live = open.insert(loaded);
                drop(open);
                live.start_next_turn();
                return Ok(live);
            }
        }
    }

    /// A session that is in memory, or the guard of a caller that loads it.
    fn get_or_load(&self, id: SessionId) -> Result<Arc<LiveSession>, LoadGuard<'_>> {
        let mut open = self.open.lock();
        if let Some(live) = open.sessions.get(&id) {
            return Ok(live.clone());
        }
        let loading = open.loading.entry(id).or_default();
        loading.callers += 1;
        Err(LoadGuard {
            registry: self,
            id,
            removals: loading.removals,
        })
    }

    /// A session that is in memory.
    pub(crate) fn get(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        self.open.lock().sessions.get(&id).cloned()
    }

    /// Inserts a new session, which the store does not have yet.
    pub(crate) fn insert(&self, live: Arc<LiveSession>) {
        self.open.lock().insert(live);
    }

    /// Makes room for one more session of `owner`; see [`OpenSessions::make_room`].
    pub(crate) fn make_room(&self, options: &Options, owner: &Owner) -> Result<(), Error> {
        self.open.lock().make_room(options, owner)
    }

    /// Removes a session from memory.
    pub(crate) fn remove(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        let mut open = self.open.lock();
        open.count_removal(id);
        let removed = open.sessions.remove(&id)?;
        open.forget(&removed.owner, id);
        Some(removed)
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
        self.open.lock().unload(None, LiveSession::is_idle);
    }
}

impl OpenSessions {
    /// Whether the session of `load` was not removed since its caller read the store.
    fn is_current(&self, load: &LoadGuard<'_>) -> bool {
        let loading = self.loading.get(&load.id);
        loading.is_some_and(|loading| loading.removals == load.removals)
    }

    /// Makes those that load the session read it again.
    fn count_removal(&mut self, id: SessionId) {
        if let Some(loading) = self.loading.get_mut(&id) {
            loading.removals += 1;
        }
    }

    /// Inserts a session, and returns the one in memory: another caller may have been first.
    fn insert(&mut self, live: Arc<LiveSession>) -> Arc<LiveSession> {
        let live = self.sessions.entry(live.id).or_insert(live).clone();
        let ids = self.by_owner.entry(live.owner.clone()).or_default();
        ids.insert(live.id);
        metrics::gauge!(metric::SESSIONS_OPEN).set(self.sessions.len() as f64);
        live
    }

    /// Makes room for one more session of `owner`: unloads free sessions, of the owner if its share
    /// is used up, of all if all are.
    fn make_room(&mut self, options: &Options, owner: &Owner) -> Result<(), Error> {
        let limits = FairLimits {
            total: options.open_max,
            per_owner: options.open_max_per_owner.min(options.open_max),
            waiting: 0,
            waiting_per_owner: 0,
        };
        let resource = SharedResource::OpenSessions;
        if self.count_of(owner) >= limits.per_owner {
            self.unload(Some(owner), LiveSession::is_free);
            if self.count_of(owner) >= limits.per_owner {
                return Err(resource.refused(FairRefusal::OwnerFull, limits));
            }
        }
        if self.sessions.len() >= limits.total {
            self.unload(None, LiveSession::is_free);
            if self.sessions.len() >= limits.total {
                return Err(resource.refused(FairRefusal::AllFull, limits));
            }
        }
        Ok(())
    }

    fn count_of(&self, owner: &Owner) -> usize {
        self.by_owner.get(owner).map_or(0, HashSet::len)
    }

    fn forget(&mut self, owner: &Owner, id: SessionId) {
        if let Some(ids) = self.by_owner.get_mut(owner) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_owner.remove(owner);
            }
        }
    }

    /// Unloads the sessions, of `owner` or of all, that nobody refers to and that `can_unload`.
    fn unload(&mut self, owner: Option<&Owner>, can_unload: impl Fn(&LiveSession) -> bool) {
        // Only the map refers to the session, so no caller is about to use it.
        let is_due = |live: &Arc<LiveSession>| Arc::strong_count(live) == 1 && can_unload(live);
        let due: Vec<_> = match owner {
            Some(owner) => {
                let ids = self.by_owner.get(owner).into_iter().flatten();
                let lives = ids.filter_map(|id| self.sessions.get(id));
                lives
                    .filter(|live| is_due(live))
                    .map(|live| live.id)
                    .collect()
            }
            None => {
                let lives = self.sessions.values();
                lives
                    .filter(|live| is_due(live))
                    .map(|live| live.id)
                    .collect()
            }
        };
        if due.is_empty() {
            return;
        }
        for id in due {
            let Some(live) = self.sessions.remove(&id) else {
                continue;
            };
            if live.ring.close_reason() == Some(RingClosed::Quarantined) {
                live.services.quarantined.lock().insert(id);
            }
            self.forget(&live.owner, id);
            self.count_removal(id);
        }
        metrics::gauge!(metric::SESSIONS_OPEN).set(self.sessions.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::Ulid;

    #[test]
    fn removal_concerns_only_loads_of_its_session() {
        let registry = SessionRegistry::default();
        let [one, other] = [1, 2].map(|id| SessionId(Ulid(id)));
        let Err(load) = registry.get_or_load(one) else {
            panic!("the session is not in memory");
        };
        let is_current = |load: &LoadGuard<'_>| registry.open.lock().is_current(load);
        registry.remove(other);
        assert!(is_current(&load), "another session was removed");
        registry.remove(one);
        assert!(!is_current(&load), "what was read is no longer there");
        let Err(again) = registry.get_or_load(one) else {
            panic!("the session is not in memory");
        };
        assert!(is_current(&again), "read after the removal");
        drop((load, again));
        assert!(registry.open.lock().loading.is_empty());
    }
}
