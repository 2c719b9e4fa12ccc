//! A client's subscription: its filter, and how far each session of it is delivered.

use std::sync::Arc;

use tokio::time::Instant;
use turnwire_event::EventFilter;
use turnwire_session::{LiveSession, ReplayError, WatchGuard};
use turnwire_wire::session::SessionPositions;

use super::super::carrier::{Backlog, Fill, SessionCursor};
use super::format::{EventWrites, FilterSelection};
use super::workers::WorkerStreams;

/// The events that a connection delivers, and how far.
pub(super) struct Subscription {
    pub(super) filter: EventFilter,
    pub(super) cursor: SessionCursor,
    /// The workers of the session, if the client subscribed to them too.
    pub(super) workers: Option<Box<WorkerStreams>>,
    pub(super) watcher: Option<WatchGuard>,
}

impl Subscription {
    pub(super) fn backlog(&self, live: &LiveSession) -> Backlog {
        let own = self.cursor.backlog(live);
        match &self.workers {
            None => own,
            Some(workers) => workers.add_backlog(own, self.cursor.at),
        }
    }

    /// The delivered position of every session, if workers are included.
    pub(super) fn positions(&self, live: &LiveSession) -> Option<SessionPositions> {
        let workers = self.workers.as_ref()?;
        let mut positions = workers.positions();
        positions.insert(live.id, self.cursor.at);
        Some(positions)
    }

    /// When a worker without a session is looked up again.
    pub(super) fn next_lookup(&self) -> Option<Instant> {
        self.workers.as_ref()?.next_lookup()
    }

    /// Queues the events that come next.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<LiveSession>,
        pending: &mut EventWrites,
    ) -> Result<Fill, ReplayError> {
        match &mut self.workers {
            None => {
                let mut selection = FilterSelection(&self.filter);
                self.cursor.fill(live, &mut selection, pending).await
            }
            Some(workers) => Box::pin(workers.fill(&mut self.cursor, pending)).await,
        }
    }

    /// Replaces the filter from the current position on.
    pub(super) fn set_filter(&mut self, filter: &EventFilter) {
        self.filter = filter.clone();
        if let Some(workers) = &mut self.workers {
            workers.filter = filter.clone();
        }
    }
}
