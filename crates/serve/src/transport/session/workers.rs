//! The workers whose events one connection delivers beside their parent's: each with its own
//! cursor, each between the two events of its parent that start and end it.
//!
//! A worker is *awaited* until it is due: its start is delivered, or its parent is delivered up to
//! where the worker was looked up. Then it is looked for, as its session may not exist yet, and
//! *joined*. It is removed when its end is delivered.

mod delegates;
mod join;

use std::sync::Arc;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::{Epoch, Filter, Position, Seq, SessionId};
use turnwire_hub::{Closed, Seat};
use turnwire_session::bus::Note;
use turnwire_session::kin::DEPTH_MAX;
use turnwire_session::{Error, Live, ReplayError};
use turnwire_wire::session::Positions;

use super::super::Streams;
use super::super::carrier::cursor::{Fill, RING_EVENTS_MAX, SessionCursor};
use super::super::carrier::pending::{EventCount, PendingWrites};
use delegates::{Boundary, DelegateGate, WorkerWait};
pub(super) use join::WorkersError;

/// How soon a worker that has started and does not exist yet is looked for again, at first and at
/// most: its session is created within milliseconds of its start, unless the disk is slow.
const LOOKUP_DELAY_FIRST: Duration = Duration::from_millis(5);
const LOOKUP_DELAY_MAX: Duration = Duration::from_millis(250);

/// The position before a worker's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// The position from which a worker is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliverFrom {
    /// Its first event.
    Start,
    /// The client's cursor.
    Cursor(Position),
    /// Its tail when it was looked up.
    Tail(Position),
}

/// A worker that is not delivered yet.
#[derive(Clone, Copy, Debug)]
struct AwaitedWorker {
    id: SessionId,
    parent: SessionId,
    depth: u8,
    from: DeliverFrom,
    /// When to look for it, and how long to wait after that; none while it is not due.
    lookup: Option<(Instant, Duration)>,
    /// It had not ended when its parent was looked up: its end is still to be delivered.
    is_open: bool,
    /// Its end was delivered before.
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
    live: Arc<Live>,
    cursor: SessionCursor,
    gate: DelegateGate,
    /// It is removed when it is delivered up to here.
    ends_at: Option<Position>,
    /// Wakes the connection; dropping it leaves the ring.
    _seat: Seat,
}

impl JoinedWorker {
    /// True if it is delivered as far as it will be.
    fn is_complete(&self) -> bool {
        self.ends_at.is_some_and(|end| self.cursor.at >= end)
    }
}

/// The workers of one connection.
pub(super) struct WorkerStreams {
    streams: Arc<Streams>,
    waker: Arc<AtomicWaker>,
    /// The name of the connection, for warnings.
    connection: String,
    /// The gate of the session that the client subscribed to.
    gate: DelegateGate,
    joined: Vec<JoinedWorker>,
    awaited: Vec<AwaitedWorker>,
    /// The session that was filled last: 0 is the subscribed one.
    last_filled: usize,
}

impl WorkerStreams {
    /// True if there is something to do for a worker of `live`, which is delivered up to `at`.
    pub(super) fn has_more(&self, live: &Live, at: Position) -> bool {
        let has_more = |worker: &JoinedWorker| {
            worker.live.ring.is_ended()
                || match worker.is_complete() {
                    true => !self.has_workers(worker.id),
                    false => worker.gate.has_more(&worker.cursor, &worker.live),
                }
        };
        let now = Instant::now();
        self.joined.iter().any(has_more)
            || self.waits().any(|wait| self.is_over(wait))
            || self.next_lookup().is_some_and(|lookup| lookup <= now)
            || self
                .awaited
                .iter()
                .any(|worker| self.is_due(worker, live, at))
    }

    /// The sessions of workers that are delivered.
    pub(super) fn lives(&self) -> impl Iterator<Item = &Arc<Live>> {
        self.joined.iter().map(|worker| &worker.live)
    }

    /// The sum of the ends of all rings: it grows with every event.
    pub(super) fn newest(&self) -> u64 {
        self.joined
            .iter()
            .map(|worker| worker.live.ring.end())
            .sum()
    }

    pub(super) fn is_catching_up(&self) -> bool {
        let mut joined = self.joined.iter();
        joined.any(|worker| worker.cursor.is_catching_up())
    }

    pub(super) fn lag(&self) -> u64 {
        let joined = self.joined.iter();
        joined.map(|worker| worker.cursor.lag(&worker.live)).sum()
    }

    /// How far every worker is delivered.
    pub(super) fn positions(&self) -> Positions {
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

    /// When a worker is to be looked for.
    pub(super) fn next_lookup(&self) -> Option<Instant> {
        let lookups = self.awaited.iter().filter_map(|worker| worker.lookup);
        lookups.map(|(at, _)| at).min()
    }

    /// True if a worker of `id` is joined or awaited.
    fn has_workers(&self, id: SessionId) -> bool {
        self.joined.iter().any(|worker| worker.parent == id)
            || self.awaited.iter().any(|worker| worker.parent == id)
    }

    fn waits(&self) -> impl Iterator<Item = WorkerWait> {
        let joined = self.joined.iter().filter_map(|worker| worker.gate.wait);
        joined.chain(self.gate.wait)
    }

    /// True if the worker of `wait` is delivered, or is not there.
    fn is_over(&self, wait: WorkerWait) -> bool {
        let worker = self.joined.iter().find(|worker| worker.id == wait.worker);
        worker.is_none_or(|worker| worker.cursor.at >= wait.upto)
    }

    fn warn(&self, live: &Arc<Live>, reason: &'static str) {
        live.note(Note::Warning {
            subscription: self.connection.clone(),
            reason,
        });
    }

    /// Queues what comes next: of `live`, whose cursor is given, and of each worker at most one
    /// stretch.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<Live>,
        cursor: &mut SessionCursor,
        filter: &Filter,
        pending: &mut PendingWrites<EventCount>,
    ) -> Result<Fill, ReplayError> {
        let mut has_moved = self.schedule_due(live, cursor.at);
        has_moved |= self.look_up(live, filter).await?;
        for _ in 0..=self.joined.len() {
            if pending.frames() >= RING_EVENTS_MAX as u64 {
                break;
            }
            self.last_filled = (self.last_filled + 1) % (self.joined.len() + 1);
            let fill = match self.last_filled {
                0 => self.fill_parent(live, cursor, filter, pending).await?,
                next => self.fill_worker(live, next - 1, filter, pending).await?,
            };
            match fill {
                Fill::Idle => {}
                Fill::Progress => has_moved = true,
                Fill::Overrun | Fill::TooLarge(_) => return Ok(fill),
            }
        }
        Ok(if has_moved {
            Fill::Progress
        } else {
            Fill::Idle
        })
    }

    async fn fill_parent(
        &mut self,
        live: &Arc<Live>,
        cursor: &mut SessionCursor,
        filter: &Filter,
        pending: &mut PendingWrites<EventCount>,
    ) -> Result<Fill, ReplayError> {
        if let Some(wait) = self.gate.wait {
            if !self.is_over(wait) {
                return Ok(Fill::Idle);
            }
            self.remove(wait.worker);
            self.gate.pass(wait.end);
        }
        let (fill, boundary) = self.gate.fill(cursor, live, filter, pending).await?;
        match boundary {
            None => {}
            Some(Boundary::Started(worker)) => self.started(live, worker, live.id, 1),
            Some(Boundary::Ending(worker, end)) => {
                match self.before_end(live, filter, worker, end).await? {
                    Some(wait) => self.gate.wait_for(cursor, wait),
                    None => self.gate.pass(end),
                }
            }
        }
        Ok(fill)
    }

    async fn fill_worker(
        &mut self,
        live: &Arc<Live>,
        index: usize,
        filter: &Filter,
        pending: &mut PendingWrites<EventCount>,
    ) -> Result<Fill, ReplayError> {
        let Some(worker) = self.joined.get(index) else {
            return Ok(Fill::Idle);
        };
        let (id, depth) = (worker.id, worker.depth);
        if worker.live.ring.closed() == Some(Closed::Quarantined) {
            return Ok(self.drop_worker(live, id, Some("worker_quarantined")));
        }
        if worker.is_complete() {
            // The workers below it that the client named are delivered to their end first.
            if self.has_workers(id) {
                return Ok(Fill::Idle);
            }
            return Ok(self.drop_worker(live, id, None));
        }
        if let Some(wait) = worker.gate.wait {
            if !self.is_over(wait) {
                return Ok(Fill::Idle);
            }
            self.remove(wait.worker);
            if let Some(worker) = self.joined(id) {
                worker.gate.pass(wait.end);
            }
        }
        let Some(worker) = self.joined(id) else {
            return Ok(Fill::Idle);
        };
        let (cursor, worker_live) = (&mut worker.cursor, &worker.live);
        let filled = worker.gate.fill(cursor, worker_live, filter, pending);
        let (fill, boundary) = match Box::pin(filled).await {
            Ok(filled) => filled,
            Err(ReplayError::Session(Error::SessionNotFound)) => {
                return Ok(self.drop_worker(live, id, None));
            }
            Err(ReplayError::Session(Error::Quarantined)) => {
                worker.live.quarantine();
                return Ok(self.drop_worker(live, id, Some("worker_quarantined")));
            }
            Err(error) => return Err(error),
        };
        match boundary {
            // It was deleted, and all events before that are delivered.
            None if fill == Fill::Idle && worker.live.ring.is_ended() => {
                return Ok(self.drop_worker(live, id, None));
            }
            None => {}
            Some(Boundary::Started(below)) => self.started(live, below, id, depth + 1),
            Some(Boundary::Ending(below, end)) => {
                let wait = Box::pin(self.before_end(live, filter, below, end)).await?;
                if let Some(worker) = self.joined(id) {
                    match wait {
                        Some(wait) => worker.gate.wait_for(&mut worker.cursor, wait),
                        None => worker.gate.pass(end),
                    }
                }
            }
        }
        Ok(fill)
    }

    fn joined(&mut self, id: SessionId) -> Option<&mut JoinedWorker> {
        self.joined.iter_mut().find(|worker| worker.id == id)
    }

    /// Removes a worker that has nothing to deliver any more.
    fn drop_worker(
        &mut self,
        live: &Arc<Live>,
        id: SessionId,
        warning: Option<&'static str>,
    ) -> Fill {
        if let Some(reason) = warning {
            self.warn(live, reason);
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

    /// A worker's start was delivered.
    fn started(&mut self, live: &Arc<Live>, id: SessionId, parent: SessionId, depth: u8) {
        let lookup = Some((Instant::now(), LOOKUP_DELAY_FIRST));
        if self.joined.iter().any(|worker| worker.id == id) {
            return;
        }
        if let Some(worker) = self.awaited.iter_mut().find(|worker| worker.id == id) {
            worker.lookup = lookup;
            return;
        }
        if depth > DEPTH_MAX || self.is_full() {
            return self.warn(live, "too_many_workers");
        }
        let mut worker = AwaitedWorker::new(id, parent, depth, DeliverFrom::Start);
        worker.lookup = lookup;
        self.awaited.push(worker);
    }

    /// True if the connection delivers as many workers as it may.
    fn is_full(&self) -> bool {
        let is_due = |worker: &&AwaitedWorker| worker.lookup.is_some();
        let due = self.awaited.iter().filter(is_due).count();
        self.joined.len() + due >= self.streams.options.workers_max
    }
}

#[cfg(test)]
mod tests;
