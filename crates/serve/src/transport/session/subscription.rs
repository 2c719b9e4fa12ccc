//! A client's subscription: its filter, and how far each session of it is delivered.

use std::sync::Arc;

use tokio::time::Instant;
use turnwire_event::Filter;
use turnwire_session::watch::Watcher;
use turnwire_session::{Live, ReplayError};
use turnwire_wire::session::Positions;

use super::super::carrier::cursor::{Fill, SessionCursor};
use super::super::carrier::pending::{EventCount, PendingWrites};
use super::super::carrier::wire::Lag;
use super::format::FilterSelection;
use super::workers::WorkerStreams;

/// What a connection delivers.
pub(super) struct Subscription {
    pub(super) filter: Filter,
    pub(super) cursor: SessionCursor,
    /// The workers of the session, where the client subscribed to them too.
    pub(super) workers: Option<Box<WorkerStreams>>,
    pub(super) watcher: Option<Watcher>,
}

impl Subscription {
    pub(super) fn new(
        filter: Filter,
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

    /// A number that grows with every event of `live` and of its workers.
    pub(super) fn newest(&self, live: &Live) -> u64 {
        let workers = self.workers.as_ref().map_or(0, |workers| workers.newest());
        live.ring.end() + workers
    }

    /// True if there is something to deliver, of the past or from a ring.
    pub(super) fn has_more(&self, live: &Live) -> bool {
        let workers = self.workers.as_ref();
        self.cursor.has_more(live)
            || workers.is_some_and(|workers| workers.has_more(live, self.cursor.at))
    }

    pub(super) fn lag(&self, live: &Live) -> Lag {
        let workers = self.workers.as_ref();
        let is_catching_up =
            self.cursor.is_catching_up() || workers.is_some_and(|workers| workers.is_catching_up());
        Lag {
            events: self.cursor.lag(live) + workers.map_or(0, |workers| workers.lag()),
            is_bounded: !is_catching_up,
        }
    }

    /// How far every session is delivered, where there are several.
    pub(super) fn positions(&self, live: &Live) -> Option<Positions> {
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
        live: &Arc<Live>,
        pending: &mut PendingWrites<EventCount>,
    ) -> Result<Fill, ReplayError> {
        let filter = &self.filter;
        match &mut self.workers {
            None => {
                let mut selection = FilterSelection(filter);
                self.cursor.fill(live, &mut selection, pending).await
            }
            Some(workers) => Box::pin(workers.fill(live, &mut self.cursor, filter, pending)).await,
        }
    }
}
