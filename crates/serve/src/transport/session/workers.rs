//! The workers whose events one connection delivers together with the events of their parent. Each
//! worker has its own cursor, and its events are sent between the two events of its parent that
//! start and end it.
//!
//! A worker is *awaited* until it is due: its start is delivered, or its parent is delivered up to
//! the position at which the parent's running workers were listed. Then the connection looks up the
//! worker's session, which may not exist yet, and the worker is *joined*. It is removed when its end
//! is delivered.

mod session_delivery;
mod join;

use std::sync::Arc;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::{Epoch, EventFilter, Position, Seq, SessionId};
use turnwire_hub::{RingClosed, WakerGuard};
use turnwire_session::{
    BusNotice, DeliveryGuard, Error, LiveSession, ReplayError, WORKER_DEPTH_MAX,
};
use turnwire_wire::session::SessionPositions;

use super::super::Streams;
use super::super::carrier::{Backlog, Fill, RING_EVENTS_MAX, SessionCursor};
use super::format::{EventWrites, FilterSelection};
use session_delivery::{SessionDelivery, WorkerBoundary, WorkerWait};

/// The first and the longest delay before a started worker without a session is looked up again: its
/// session is created within milliseconds of its start, unless the disk is slow.
const LOOKUP_DELAY_FIRST: Duration = Duration::from_millis(5);
const LOOKUP_DELAY_MAX: Duration = Duration::from_millis(250);

/// The position before a worker's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// The position from which a worker is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliverFrom {
    Start,
    Cursor(Position),
    /// The tail of the worker when it was looked up.
    Tail(Position),
}

/// A worker that is not delivered yet.
#[derive(Clone, Copy, Debug)]
struct AwaitedWorker {
    id: SessionId,
    parent: SessionId,
    depth: u8,
    from: DeliverFrom,
    /// When to look the worker up, and the delay after that; `None` while it is not due.
    lookup: Option<(Instant, Duration)>,
    /// The worker was running when its parent's workers were listed: its end is still to be delivered.
    is_open: bool,
    /// The end of the worker was delivered before.
    has_ended: bool,
}

impl AwaitedWorker {
    fn new(id: SessionId, parent: SessionId, depth: u8, from: DeliverFrom) -> Self {
        Self {
            id,
            parent,
            depth,
            from,
            lookup: None,
            is_open: false,
            has_ended: false,
        }
    }
}

/// A worker that is delivered.
struct JoinedWorker {
    id: SessionId,
    parent: SessionId,
    depth: u8,
    live: Arc<LiveSession>,
    cursor: SessionCursor,
    delivery: SessionDelivery,
    /// The worker is removed once it is delivered up to here.
    ends_at: Option<Position>,
    /// Wakes the connection; dropping it leaves the ring.
    _ring_guard: WakerGuard,
    /// Counts the connection, so that it gets the last event of a deleted worker.
    _delivery_guard: DeliveryGuard,
}

impl JoinedWorker {
    /// True if the worker is delivered up to [`ends_at`](Self::ends_at).
    fn is_complete(&self) -> bool {
        self.ends_at.is_some_and(|end| self.cursor.at >= end)
    }
}

/// The workers of one connection.
pub(super) struct WorkerStreams {
    streams: Arc<Streams>,
    /// The session that the client subscribed to.
    live: Arc<LiveSession>,
    pub(super) filter: EventFilter,
    waker: Arc<AtomicWaker>,
    /// The name of the connection, for warnings.
    connection: String,
    /// The [`SessionDelivery`] of `live`.
    delivery: SessionDelivery,
    joined: Vec<JoinedWorker>,
    awaited: Vec<AwaitedWorker>,
    /// The session that was filled last: 0 is `live`.
    last_filled: usize,
}

impl WorkerStreams {
    /// Adds the [`Backlog`] of all workers to that of the session, which is delivered up to `at`.
    pub(super) fn add_backlog(&self, own: Backlog, at: Position) -> Backlog {
        let own = Backlog {
            has_more: own.has_more || self.has_more(at),
            ..own
        };
        let joined = self.joined.iter();
        joined.fold(own, |sum, worker| Backlog {
            newest: sum.newest + worker.live.ring.end(),
            lag: sum.lag + worker.cursor.lag(&worker.live),
            is_bounded: sum.is_bounded && !worker.cursor.is_catching_up(),
            ..sum
        })
    }

    /// Events in the rings of the workers that the client has not been given and that pass its filter.
    pub(super) fn passing_lag(&mut self) -> u64 {
        let joined = self.joined.iter_mut();
        let selection = FilterSelection(&self.filter);
        let lags = joined.map(|worker| worker.cursor.passing_lag(&worker.live, &selection));
        lags.sum()
    }

    /// The cursor in the session of each worker that is delivered.
    pub(super) fn cursors(
        &mut self,
    ) -> impl Iterator<Item = (&mut SessionCursor, &Arc<LiveSession>)> {
        let joined = self.joined.iter_mut();
        joined.map(|worker| (&mut worker.cursor, &worker.live))
    }

    /// Replaces the filter from the current position on.
    pub(super) fn set_filter(&mut self, filter: &EventFilter) {
        self.filter = filter.clone();
        let cursors = self.joined.iter_mut().map(|worker| &mut worker.cursor);
        cursors.for_each(SessionCursor::reset_count);
    }

    /// True if [`fill`](Self::fill) would queue events of a worker, or join or remove one.
    fn has_more(&self, at: Position) -> bool {
        let has_more = |worker: &JoinedWorker| {
            worker.live.ring.is_closed()
                || match worker.is_complete() {
                    true => !self.has_workers(worker.id),
                    false => worker.delivery.has_more(&worker.cursor, &worker.live),
                }
        };
        let now = Instant::now();
        self.joined.iter().any(has_more)
            || self.waits().any(|wait| self.is_over(wait))
            || self.next_lookup().is_some_and(|lookup| lookup <= now)
            || self.awaited.iter().any(|worker| self.is_due(worker, at))
    }

    /// The sessions of workers that are delivered.
    pub(super) fn lives(&self) -> impl Iterator<Item = &Arc<LiveSession>> {
        self.joined.iter().map(|worker| &worker.live)
    }

    /// The delivered position of every worker.
    pub(super) fn positions(&self) -> SessionPositions {
        let awaited = self.awaited.iter().map(|worker| {
            let at = match worker.from {
                DeliverFrom::Start => START,
                DeliverFrom::Cursor(at) | DeliverFrom::Tail(at) => at,
            };
            (worker.id, at)
        });
        let joined = self
            .joined
            .iter()
            .map(|worker| (worker.id, worker.cursor.at));
        awaited.chain(joined).collect()
    }

    /// When the next worker is to be looked up.
    pub(super) fn next_lookup(&self) -> Option<Instant> {
        let lookups = self.awaited.iter().filter_map(|worker| worker.lookup);
        lookups.map(|(at, _)| at).min()
    }

    /// True if a worker of `id` is joined or awaited.
    fn has_workers(&self, id: SessionId) -> bool {
        self.joined.iter().any(|worker| worker.parent == id)
            || self.awaited.iter().any(|worker| worker.parent == id)
    }

    /// The [`WorkerWait`]s of all sessions that wait for a worker.
    fn waits(&self) -> impl Iterator<Item = WorkerWait> {
        let joined = self.joined.iter().filter_map(|worker| worker.delivery.wait);
        joined.chain(self.delivery.wait)
    }

    /// True if the worker of a [`WorkerWait`] is delivered, or is not joined.
    fn is_over(&self, wait: WorkerWait) -> bool {
        let worker = self.joined.iter().find(|worker| worker.id == wait.worker);
        worker.is_none_or(|worker| worker.cursor.at >= wait.worker_tail)
    }

    fn warn(&self, reason: &'static str) {
        self.live.emit_notice(BusNotice::Warning {
            subscription: self.connection.clone(),
            reason,
        });
    }

    /// Queues the next events: at most one run of the session, whose cursor is given, and of each
    /// worker.
    pub(super) async fn fill(
        &mut self,
        cursor: &mut SessionCursor,
        pending: &mut EventWrites,
    ) -> Result<Fill, ReplayError> {
        let mut has_moved = self.schedule_due(cursor.at);
        has_moved |= self.look_up().await?;
        let bytes_max = self.live.pending_bytes_max();
        for _ in 0..=self.joined.len() {
            if pending.frames >= RING_EVENTS_MAX as u64 || pending.bytes >= bytes_max {
                break;
            }
            self.last_filled = (self.last_filled + 1) % (self.joined.len() + 1);
            let fill = match self.last_filled.checked_sub(1) {
                None => self.fill_session(cursor, self.live.id, pending).await?,
                Some(index) => self.fill_worker(cursor, index, pending).await?,
            };
            match fill {
                Fill::Idle => {}
                Fill::Progress => has_moved = true,
                Fill::Overrun | Fill::TooLarge(_) => return Ok(fill),
            }
        }
        self.release_pages(cursor, bytes_max.saturating_sub(pending.bytes));
        Ok(if has_moved {
            Fill::Progress
        } else {
            Fill::Idle
        })
    }

    /// Drops the events that were read for sessions which now wait, if all of them together are above
    /// `bytes_max`: one connection holds no more with workers than without.
    fn release_pages(&mut self, cursor: &mut SessionCursor, bytes_max: usize) {
        let of_workers = self.joined.iter().map(|worker| worker.cursor.page_bytes());
        if of_workers.sum::<usize>() + cursor.page_bytes() <= bytes_max {
            return;
        }
        cursor.release_page();
        let cursors = self.joined.iter_mut().map(|worker| &mut worker.cursor);
        cursors.for_each(SessionCursor::release_page);
    }

    /// Fills a worker, or removes it if it has nothing to deliver any more.
    async fn fill_worker(
        &mut self,
        cursor: &mut SessionCursor,
        index: usize,
        pending: &mut EventWrites,
    ) -> Result<Fill, ReplayError> {
        let Some(worker) = self.joined.get(index) else {
            return Ok(Fill::Idle);
        };
        let (id, session) = (worker.id, worker.live.clone());
        if session.ring.close_reason() == Some(RingClosed::Quarantined) {
            return Ok(self.drop_worker(id, Some(HandlerWarning::WORKER_QUARANTINED)));
        }
        if worker.is_complete() {
            // The workers below it that the client named are delivered to their end first.
            if self.has_workers(id) {
                return Ok(Fill::Idle);
            }
            return Ok(self.drop_worker(id, None));
        }
        let is_waiting = worker.delivery.wait.is_some_and(|wait| !self.is_over(wait));
        let filled = self.fill_session(cursor, id, pending);
        match Box::pin(filled).await {
            // The worker's session was deleted, and all events before that are delivered.
            Ok(Fill::Idle) if !is_waiting && session.ring.is_closed() => {
                Ok(self.drop_worker(id, None))
            }
            Err(ReplayError::Session(Error::SessionNotFound)) => Ok(self.drop_worker(id, None)),
            Err(ReplayError::Session(Error::Quarantined)) => {
                session.quarantine();
                Ok(self.drop_worker(id, Some(HandlerWarning::WORKER_QUARANTINED)))
            }
            filled => filled,
        }
    }

    /// Fills one session, `live` or a worker, up to the next start or end of a worker.
    async fn fill_session(
        &mut self,
        cursor: &mut SessionCursor,
        id: SessionId,
        pending: &mut EventWrites,
    ) -> Result<Fill, ReplayError> {
        if let Some(wait) = self.delivery(id).wait {
            if !self.is_over(wait) {
                return Ok(Fill::Idle);
            }
            self.remove(wait.worker);
            self.delivery(id).allow_end(wait.end);
        }
        let worker = self.joined.iter_mut().find(|worker| worker.id == id);
        let (delivery, cursor, live, depth) = match worker {
            None => (&self.delivery, cursor, &self.live, 0),
            Some(worker) => (
                &worker.delivery,
                &mut worker.cursor,
                &worker.live,
                worker.depth,
            ),
        };
        let (fill, boundary) = delivery.fill(cursor, live, &self.filter, pending).await?;
        match boundary {
            None => {}
            Some(WorkerBoundary::Start(worker)) => self.started(worker, id, depth + 1),
            Some(WorkerBoundary::End(worker, end)) => match self.before_end(worker, end).await? {
                Some(wait) => self.delivery(id).wait = Some(wait),
                None => self.delivery(id).allow_end(end),
            },
        }
        Ok(fill)
    }

    /// The [`SessionDelivery`] of a worker, or else of the session that the client subscribed to.
    fn delivery(&mut self, id: SessionId) -> &mut SessionDelivery {
        let worker = self.joined.iter_mut().find(|worker| worker.id == id);
        worker.map_or(&mut self.delivery, |worker| &mut worker.delivery)
    }

    /// Removes a worker that has nothing to deliver any more.
    fn drop_worker(&mut self, id: SessionId, warning: Option<&'static str>) -> Fill {
        if let Some(reason) = warning {
            self.warn(reason);
        }
        self.remove(id);
        Fill::Progress
    }

    /// Removes a worker and all below it.
    fn remove(&mut self, id: SessionId) {
        let mut removed = vec![id];
        while let Some(id) = removed.pop() {
            let is_kept = |worker: &AwaitedWorker| worker.id != id && worker.parent != id;
            self.awaited.retain(is_kept);
            self.joined.retain(|worker| worker.id != id);
            let below = self.joined.iter().filter(|worker| worker.parent == id);
            removed.extend(below.map(|worker| worker.id));
        }
    }

    /// Awaits a worker whose start was delivered, with a lookup at once.
    fn started(&mut self, id: SessionId, parent: SessionId, depth: u8) {
        let lookup = Some((Instant::now(), LOOKUP_DELAY_FIRST));
        if self.joined.iter().any(|worker| worker.id == id) {
            return;
        }
        if let Some(worker) = self.awaited.iter_mut().find(|worker| worker.id == id) {
            worker.lookup = lookup;
            return;
        }
        if depth > WORKER_DEPTH_MAX || self.is_full() {
            return self.warn(HandlerWarning::TOO_MANY_WORKERS);
        }
        let mut worker = AwaitedWorker::new(id, parent, depth, DeliverFrom::Start);
        worker.lookup = lookup;
        self.awaited.push(worker);
    }

    /// True if the connection delivers as many workers as it may.
    fn is_full(&self) -> bool {
        let is_coming = |worker: &&AwaitedWorker| worker.is_open || worker.lookup.is_some();
        let coming = self.awaited.iter().filter(is_coming).count();
        self.joined.len() + coming >= self.streams.settings.workers_max
    }
}

#[cfg(test)]
mod tests;
