//! What a connection has asked for and how far it has been served.

use std::sync::Arc;

use tokio::time::Instant;
use turnwire_event::Filter;
use turnwire_session::WatchGuard;
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::session::Positions;

use super::outbound::Outbound;
use super::place::{Filled, Place};
use super::workers::Workers;

/// A live subscription.
pub(super) struct Subscription {
    pub(super) filter: Filter,
    pub(super) place: Place,
    /// The workers that come along, where they were asked for.
    pub(super) workers: Option<Box<Workers>>,
    pub(super) _watcher: Option<WatchGuard>,
}

impl Subscription {
    pub(super) fn new(filter: Filter, place: Place, workers: Option<Box<Workers>>) -> Self {
        Self {
            filter,
            place,
            workers,
            _watcher: None,
        }
    }

    /// Whether the client is still being told the past.
    pub(super) fn is_catching_up(&self) -> bool {
        let workers = self.workers.as_ref();
        self.place.is_catching_up() || workers.is_some_and(|workers| workers.is_catching_up())
    }

    /// Whether something is to be told, of the past or from a ring.
    pub(super) fn is_behind(&self, live: &LiveSession) -> bool {
        let workers = self.workers.as_ref();
        self.place.catch_up.is_some()
            || self.place.behind(live) > 0
            || workers.is_some_and(|workers| workers.has_more(live, self.place.at))
    }

    /// How many events the rings have that this client has not been given.
    pub(super) fn behind(&self, live: &LiveSession) -> u64 {
        let behind = self.place.behind(live);
        match &self.workers {
            None => behind,
            Some(workers) => behind + workers.behind(),
        }
    }

    /// How far every session has been told, where there are several.
    pub(super) fn positions(&self, live: &LiveSession) -> Option<Positions> {
        let workers = self.workers.as_ref()?;
        let mut positions = workers.positions();
        positions.insert(live.id, self.place.at);
        Some(positions)
    }

    /// Lets the workers go. What was read of the session itself and waits for them is read again.
    pub(super) async fn leave_workers(
        &mut self,
        live: &Arc<LiveSession>,
    ) -> Result<(), ReplayError> {
        if self.workers.as_ref().is_some_and(|workers| workers.hold()) {
            self.place.again(live, &self.filter).await?;
        }
        self.workers = None;
        Ok(())
    }

    /// When a worker that was not there is looked for again.
    pub(super) fn look_at(&self) -> Option<Instant> {
        self.workers.as_ref()?.look_at()
    }

    /// Puts what is due next into `out`, which is empty.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<LiveSession>,
        out: &mut Outbound,
    ) -> Result<Filled, ReplayError> {
        match &mut self.workers {
            None => self.place.fill(live, &self.filter, out).await,
            Some(workers) => {
                let filled = workers.fill(live, &mut self.place, &self.filter, out);
                Box::pin(filled).await
            }
        }
    }
}
