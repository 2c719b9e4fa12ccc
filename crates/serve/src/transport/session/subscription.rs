//! A client's subscription: its filter, and how far each session of it is delivered.

use std::sync::Arc;

use tokio::time::Instant;
use turnwire_event::EventFilter;
use turnwire_session::WatchGuard;
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::session::SessionPositions;

use super::super::carrier::cursor::{Fill, SessionCursor};
use super::super::carrier::wire::Backlog;
use super::format::{EventWrites, FilterSelection};
use super::workers::WorkerStreams;

/// What a connection delivers.
pub(super) struct Subscription {
    pub(super) filter: EventFilter,
    pub(super) cursor: SessionCursor,
    /// The workers of the session, where the client subscribed to them too.
    pub(super) workers: Option<Box<WorkerStreams>>,
    pub(super) watcher: Option<WatchGuard>,
}

impl Subscription {
    pub(super) fn new(
        filter: EventFilter,
        cursor: SessionCursor,
        workers: Option<Box<WorkerStreams>>,
    ) -> Self {
        Self {
            filter,
            cursor,
            workers,
            watcher: None,
        }
    }

    pub(super) fn backlog(&self, live: &LiveSession) -> Backlog {
        let own = Backlog {
            newest: live.ring.end(),
            has_more: self.cursor.has_more(live),
            lag: self.cursor.lag(live),
            is_bounded: !self.cursor.is_catching_up(),
            has_ended: live.ring.is_closed(),
        };
        match &self.workers {
            None => own,
            Some(workers) => workers.add_backlog(own, self.cursor.at),
        }
    }

    /// How far every session is delivered, where there are several.
    pub(super) fn positions(&self, live: &LiveSession) -> Option<SessionPositions> {
        let workers = self.workers.as_ref()?;
        let mut positions = workers.positions();
        positions.insert(live.id, self.cursor.at);
        Some(positions)
    }

    /// When a worker that did not exist is looked for again.
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

    /// Delivers with another filter from here on.
    pub(super) fn set_filter(&mut self, filter: &EventFilter) {
        self.filter = filter.clone();
        if let Some(workers) = &mut self.workers {
            workers.filter = filter.clone();
        }
    }
}
