//! A client's subscription: its filter, and how far each session of it is delivered.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use turnwire_event::{EventFilter, metric};
use turnwire_session::{LiveSession, ReplayError, WatchGuard};
use turnwire_wire::session::SessionPositions;

use super::super::carrier::{Backlog, Fill, SessionCursor, count_stored};
use super::format::{EventWrites, FilterSelection};
use super::workers::WorkerStreams;

/// The events that a connection delivers, and how far.
pub(super) struct Subscription {
    pub(super) filter: EventFilter,
    pub(super) cursor: SessionCursor,
    /// The workers of the session, if the client subscribed to them too.
    pub(super) workers: Option<Box<WorkerStreams>>,
    pub(super) watcher: Option<WatchGuard>,
    /// When the client subscribed; `None` once it is live.
    pub(super) subscribed_at: Option<Instant>,
}

impl Subscription {
    pub(super) fn backlog(&self, live: &LiveSession) -> Backlog {
        let own = self.cursor.backlog(live);
        match &self.workers {
            None => own,
            Some(workers) => workers.add_backlog(own, self.cursor.at),
        }
    }

    /// Events in the rings that the client has not been given and that pass its filter.
    pub(super) fn passing_lag(&mut self, live: &LiveSession) -> u64 {
        let selection = FilterSelection(&self.filter);
        let own = self.cursor.passing_lag(live, &selection);
        let workers = self.workers.as_mut();
        own + workers.map_or(0, |workers| workers.passing_lag())
    }

    /// Records the time from the subscribe until now, once, if the client is live: acknowledgement,
    /// snapshot and replay are written, and its next event comes from the ring.
    pub(super) fn record_live(&mut self, live: &LiveSession) {
        let is_live = !self.cursor.is_catching_up() || !self.cursor.has_more(live);
        if !is_live || self.cursor.is_replaying() {
            return;
        }
        if let Some(subscribed_at) = self.subscribed_at.take() {
            let elapsed = subscribed_at.elapsed();
            metrics::histogram!(metric::WS_SEAM_SECONDS).record(elapsed);
        }
    }

    /// Counts the events that a client which is too slow does not get. Events that have left a ring
    /// are counted by a task that reads the store.
    pub(super) fn record_dropped(&mut self, live: &Arc<LiveSession>, tasks: &TaskTracker) {
        let filter = &self.filter;
        record_dropped(&mut self.cursor, live, filter, tasks);
        if let Some(workers) = &mut self.workers {
            let cursors = workers.cursors();
            cursors.for_each(|(cursor, live)| record_dropped(cursor, live, filter, tasks));
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
        self.cursor.reset_count();
        if let Some(workers) = &mut self.workers {
            workers.set_filter(filter);
        }
    }
}

/// Counts the events of one session that the client does not get.
fn record_dropped(
    cursor: &mut SessionCursor,
    live: &Arc<LiveSession>,
    filter: &EventFilter,
    tasks: &TaskTracker,
) {
    let counter = metrics::counter!(metric::WS_FRAME_DROPPED_TOTAL);
    if !cursor.has_fallen_behind(live) {
        return counter.increment(cursor.passing_lag(live, &FilterSelection(filter)));
    }
    let (live, at, filter) = (live.clone(), cursor.at, filter.clone());
    tasks.spawn(async move {
        match count_stored(&live, at, &mut FilterSelection(&filter)).await {
            Ok(dropped) => counter.increment(dropped),
            Err(error) => tracing::warn!(session = %live.id, %error, "dropped events not counted"),
        }
    });
}
