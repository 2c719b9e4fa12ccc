//! Looks up and joins workers: those that a client names, those that run when it subscribes, and
//! those that start while it is connected.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{EventFilter, Position, SessionId};
use turnwire_session::{DeliveryGuard, Error, LiveSession, ReplayError, WORKER_DEPTH_MAX};
use turnwire_wire::session::{SessionPositions, SubscribeError};

use super::super::super::Streams;
use super::super::super::carrier::{Selection as _, SessionCursor};
use super::super::failure::SubscribeFailure;
use super::super::format::FilterSelection;
use super::session_delivery::{SessionDelivery, WorkerWait};
use super::{
    AwaitedWorker, DeliverFrom, JoinedWorker, LOOKUP_DELAY_FIRST, LOOKUP_DELAY_MAX, START,
    WorkerStreams,
};

/// The largest number of named workers without a session that are looked up in the logs: a client
/// names at most one for each delegate of one turn, and each lookup is a read.
const MISSING_MAX: usize = 16;

impl WorkerStreams {
    /// The workers of `live` for a client whose cursor in `live` is `at`; `since` has the client's
    /// cursors in the workers that it names.
    pub(in super::super) async fn open(
        streams: Arc<Streams>,
        waker: Arc<AtomicWaker>,
        connection: String,
        (live, filter): (&Arc<LiveSession>, &EventFilter),
        (at, since): (Position, SessionPositions),
    ) -> Result<Box<Self>, SubscribeFailure> {
        let (workers_listed_at, open) = live.delegates();
        let mut workers = Box::new(Self {
            streams,
            live: live.clone(),
            filter: filter.clone(),
            waker,
            connection,
            delivery: SessionDelivery::new(workers_listed_at),
            joined: Vec::new(),
            awaited: Vec::new(),
            last_filled: 0,
        });
        let named = workers.await_named(since).await?;
        workers.await_open(open, (live.id, at), 0).await?;
        // Those that the workers above list are awaited already.
        for (worker, at, depth) in named {
            let (_, open) = worker.delegates();
            workers.await_open(open, (worker.id, at), depth).await?;
        }
        Ok(workers)
    }

    /// Awaits the workers that a client names, if the events after its cursors are stored. Returns
    /// those that have a session, each with the client's cursor and the worker's level.
    async fn await_named(
        &mut self,
        since: SessionPositions,
    ) -> Result<Vec<(Arc<LiveSession>, Position, u8)>, SubscribeFailure> {
        let (mut missing, mut named) = (Vec::new(), Vec::new());
        let mut logs = vec![(self.live.clone(), 0)];
        for (id, at) in since {
            match self.find_named(id, at).await {
                Ok((worker, depth)) => {
                    let parent = worker.parent().unwrap_or(self.live.id);
                    let from = DeliverFrom::Cursor(at);
                    logs.push((worker.clone(), depth));
                    named.push((worker, at, depth));
                    self.awaited
                        .push(AwaitedWorker::new(id, parent, depth, from));
                }
                Err(SubscribeFailure::Session(Error::SessionNotFound)) => missing.push((id, at)),
                Err(SubscribeFailure::Session(Error::Quarantined)) => {
                    self.warn(HandlerWarning::WORKER_QUARANTINED);
                }
                Err(error) => return Err(error),
            }
        }
        // Deleted workers, and those not created yet, are named in the logs of their parents.
        for (n, (id, at)) in missing.into_iter().enumerate() {
            let mut is_delegate = false;
            for (log, depth) in logs.iter().filter(|_| n < MISSING_MAX) {
                if log.started(id).await? {
                    is_delegate = true;
                    if at == START {
                        let from = DeliverFrom::Start;
                        self.awaited
                            .push(AwaitedWorker::new(id, log.id, depth + 1, from));
                    }
                    break;
                }
            }
            if !is_delegate {
                return Err(SubscribeError::not_a_worker(&id.to_string()).into());
            }
        }
        Ok(named)
    }

    /// A worker that a client names, if the events after the client's cursor can be replayed.
    async fn find_named(
        &self,
        id: SessionId,
        at: Position,
    ) -> Result<(Arc<LiveSession>, u8), SubscribeFailure> {
        let sessions = &self.streams.sessions;
        let worker = sessions.open(&self.live.owner, id).await?;
        let depth = sessions.depth_below(self.live.id, &worker).await?;
        let depth = depth.ok_or_else(|| SubscribeError::not_a_worker(&id.to_string()))?;
        let max = self.streams.settings.replay_max;
        match worker
            .catch_up(at, &self.filter, FinishedReplay::Ends, max)
            .await
        {
            Ok(_) => Ok((worker, depth)),
            Err(error) => {
                if error == ReplayError::Session(Error::Quarantined) {
                    worker.quarantine();
                }
                Err(SubscribeFailure::of_replay(error, max))
            }
        }
    }

    /// Awaits the running workers of `parent`, which is at level `depth`, whose start is not after the
    /// client's cursor `at` in `parent`, and the running workers below them: the acknowledgement names
    /// every worker that the connection delivers from where it is now. A later start is still to be
    /// delivered, and the worker is awaited then: the worker has no cursor before that, so a client
    /// that disconnects before it gets the start is sent the whole worker after it reconnects.
    async fn await_open(
        &mut self,
        open: Vec<(SessionId, Position)>,
        (parent, at): (SessionId, Position),
        depth: u8,
    ) -> Result<(), Error> {
        // Level by level, so that a worker is omitted before those above it are.
        let mut levels = VecDeque::from([(open, (parent, at), depth)]);
        while let Some((open, (parent, at), depth)) = levels.pop_front() {
            for (id, started) in open {
                if let Some(named) = self.awaited.iter_mut().find(|worker| worker.id == id) {
                    named.is_open = true;
                    continue;
                }
                let is_joined = self.joined.iter().any(|worker| worker.id == id);
                if is_joined || started > at {
                    continue;
                }
                if depth >= WORKER_DEPTH_MAX || self.is_full() {
                    self.warn(HandlerWarning::TOO_MANY_WORKERS);
                    continue;
                }
                let from = match self.streams.sessions.open(&self.live.owner, id).await {
                    Ok(worker) => {
                        let (tail, below) = worker.delegates();
                        levels.push_back((below, (id, tail), depth + 1));
                        DeliverFrom::Tail(tail)
                    }
                    // Deleted, or not created yet: all of its events are still to come.
                    Err(Error::SessionNotFound) => DeliverFrom::Start,
                    Err(Error::Quarantined) => continue,
                    Err(error) => return Err(error),
                };
                let mut worker = AwaitedWorker::new(id, parent, depth + 1, from);
                worker.is_open = true;
                self.awaited.push(worker);
            }
        }
        Ok(())
    }

    /// True if a worker that started before the client's cursor is due: its parent is delivered up to
    /// `workers_listed_at`, and the start of the worker was not among the delivered events. A worker
    /// whose parent is not delivered on this connection is due with the workers of `self.live`.
    pub(super) fn is_due(&self, worker: &AwaitedWorker, at: Position) -> bool {
        if worker.lookup.is_some() {
            return false;
        }
        let parent = self.joined.iter().find(|other| other.id == worker.parent);
        let is_awaited = || self.awaited.iter().any(|other| other.id == worker.parent);
        match parent {
            Some(parent) => parent.cursor.at >= parent.delivery.workers_listed_at,
            None if worker.parent != self.live.id && is_awaited() => false,
            None => at >= self.delivery.workers_listed_at,
        }
    }

    /// Schedules the lookup of the workers that are due; true if there are any.
    pub(super) fn schedule_due(&mut self, at: Position) -> bool {
        let awaited = self.awaited.iter();
        let due = awaited.map(|worker| self.is_due(worker, at));
        let due: Vec<bool> = due.collect();
        for (worker, _) in self.awaited.iter_mut().zip(&due).filter(|(_, due)| **due) {
            worker.lookup = Some((Instant::now(), LOOKUP_DELAY_FIRST));
            // The end of an open worker is delivered after this, even if it has ended since.
            worker.has_ended = !worker.is_open;
        }
        due.contains(&true)
    }

    /// Looks up the workers whose lookup time has come; true if one was joined or removed.
    pub(super) async fn look_up(&mut self) -> Result<bool, ReplayError> {
        let (mut has_joined, mut index) = (false, 0);
        while let Some(worker) = self.awaited.get(index).copied() {
            let Some((_, delay)) = worker.lookup.filter(|(at, _)| *at <= Instant::now()) else {
                index += 1;
                continue;
            };
            if self.join(worker).await? {
                has_joined = true; // and another worker has this index now
            } else if let Some(worker) = self.awaited.get_mut(index) {
                let next_delay = (delay * 2).min(LOOKUP_DELAY_MAX);
                worker.lookup = Some((Instant::now() + delay, next_delay));
                index += 1;
            }
        }
        Ok(has_joined)
    }

    /// Joins or removes an awaited worker; false if its session does not exist yet.
    async fn join(&mut self, worker: AwaitedWorker) -> Result<bool, ReplayError> {
        let sessions = self.streams.sessions.clone();
        let joined = match sessions.open(&self.live.owner, worker.id).await {
            Ok(session) if session.parent() == Some(worker.parent) => {
                // Checked before the worker is opened, because opening awaits its own workers.
                if self.joined.len() >= self.streams.settings.workers_max {
                    self.drop_worker(worker.id, Some(HandlerWarning::TOO_MANY_WORKERS));
                    return Ok(true);
                }
                self.open_worker(worker, session).await.map(Some)
            }
            Ok(_) => Ok(None),
            Err(error) => Err(error.into()),
        };
        match joined {
            Ok(Some(joined)) => {
                self.awaited.retain(|other| other.id != worker.id);
                self.joined.push(joined);
                Ok(true)
            }
            Ok(None) => {
                self.remove(worker.id);
                Ok(true)
            }
            Err(ReplayError::Session(Error::SessionNotFound)) => {
                let may_come = worker.from == DeliverFrom::Start && !worker.has_ended;
                if !may_come {
                    self.remove(worker.id);
                }
                Ok(!may_come)
            }
            Err(ReplayError::Session(Error::Quarantined)) => {
                self.drop_worker(worker.id, Some(HandlerWarning::WORKER_QUARANTINED));
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Places a [`SessionCursor`] in the session of a worker and awaits the worker's own workers.
    async fn open_worker(
        &mut self,
        worker: AwaitedWorker,
        session: Arc<LiveSession>,
    ) -> Result<JoinedWorker, ReplayError> {
        // Registered before the look: news in between wakes the connection.
        let ring_guard = session.ring.register(self.waker.clone());
        let delivery_guard = DeliveryGuard::new(&session);
        let (workers_listed_at, open) = session.delegates();
        let selection = FilterSelection(&self.filter);
        let (cursor, from) = match worker.from {
            DeliverFrom::Start => {
                let replay =
                    Box::pin(session.catch_up_all(&self.filter, FinishedReplay::Ends)).await?;
                let from = replay.since;
                (SessionCursor::in_replay(START, replay), from)
            }
            DeliverFrom::Cursor(at) => {
                let replay = Box::pin(selection.replay(&session, at)).await?;
                (SessionCursor::in_replay(at, replay), at)
            }
            DeliverFrom::Tail(at) => (SessionCursor::open(&session, at, &selection).await?, at),
        };
        let (id, depth) = (worker.id, worker.depth);
        self.await_open(open, (id, from), depth).await?;
        Ok(JoinedWorker {
            id: worker.id,
            parent: worker.parent,
            depth: worker.depth,
            ends_at: worker.has_ended.then_some(workers_listed_at),
            live: session,
            cursor,
            delivery: SessionDelivery::new(workers_listed_at),
            _ring_guard: ring_guard,
            _delivery_guard: delivery_guard,
        })
    }

    /// The [`WorkerWait`] of the end of a worker; `None` if the worker is not joined, so that the end
    /// has nothing to wait for.
    pub(super) async fn before_end(
        &mut self,
        worker: SessionId,
        end: Position,
    ) -> Result<Option<WorkerWait>, ReplayError> {
        let awaited = self.awaited.iter().find(|other| other.id == worker);
        if let Some(awaited) = awaited.copied() {
            // The worker has ended, so its session exists by now or was never created.
            let has_joined = self.join(awaited).await?;
            if !has_joined {
                self.remove(worker);
            }
        }
        let joined = self.joined.iter().find(|other| other.id == worker);
        Ok(joined.map(|joined| WorkerWait {
            worker,
            worker_tail: joined.live.tail(),
            end,
        }))
    }
}
