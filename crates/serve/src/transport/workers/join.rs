//! Finding workers and joining them: those that a client names, those that run when it comes,
//! those that begin while it watches.

use std::sync::Arc;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::fold::replay::Missed;
use turnwire_event::{Filter, Position, SessionId};
use turnwire_session::WORKER_DEPTH_MAX;
use turnwire_session::{Error, LiveSession, ReplayError};
use turnwire_wire::session::{Positions, SubscribeError};

use super::super::Streams;
use super::super::course::{Course, Wait};
use super::super::place::Place;
use super::{Awaited, LOOK_FIRST, LOOK_MAX, Leg, START, Whence, Workers};

/// Named workers that are not there and are looked for in the logs: a client names one at most
/// for each delegate of one turn, and each is a read.
const MISSING_MAX: usize = 16;

/// Why the workers that a client names do not come along.
pub(in super::super) enum NoWorkers {
    /// For a reason the client is told.
    Told(SubscribeError),
    /// Because a session cannot be read.
    Session(Error),
}

impl From<Error> for NoWorkers {
    fn from(error: Error) -> Self {
        Self::Session(error)
    }
}

impl From<SubscribeError> for NoWorkers {
    fn from(error: SubscribeError) -> Self {
        Self::Told(error)
    }
}

impl Workers {
    /// The workers of `live` for a client that stands at `at` in it and at `since` in those it
    /// names.
    pub(in super::super) async fn of(
        streams: Arc<Streams>,
        waker: Arc<AtomicWaker>,
        name: String,
        (live, filter): (&Arc<LiveSession>, &Filter),
        (at, since): (Position, Positions),
    ) -> Result<Box<Self>, NoWorkers> {
        let (looked, open) = live.delegates();
        let mut workers = Box::new(Self {
            streams,
            waker,
            name,
            course: Course::new(looked),
            legs: Vec::new(),
            awaited: Vec::new(),
            turn: 0,
        });
        workers.take_named(live, filter, since).await?;
        for found in open {
            workers.take_open(live, found, (live.id, at), 1).await?;
        }
        Ok(workers)
    }

    /// Takes in the workers that a client names, if it stands at places that are kept.
    async fn take_named(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
        since: Positions,
    ) -> Result<(), NoWorkers> {
        let mut missing = Vec::new();
        let mut logs = vec![(live.clone(), 0)];
        for (id, at) in since {
            match self.find_named(live, filter, id, at).await {
                Ok((worker, depth)) => {
                    let of = worker.parent().unwrap_or(live.id);
                    logs.push((worker, depth));
                    self.awaited
                        .push(Awaited::new(id, of, depth, Whence::Cursor(at)));
                }
                Err(NoWorkers::Session(Error::SessionNotFound)) => missing.push((id, at)),
                Err(NoWorkers::Session(Error::Quarantined)) => {
                    self.warn(live, "worker_quarantined");
                }
                Err(error) => return Err(error),
            }
        }
        // Some may have been deleted, or may not have been made yet: the logs know their names.
        for (n, (id, at)) in missing.into_iter().enumerate() {
            let mut known = false;
            for (log, depth) in logs.iter().filter(|_| n < MISSING_MAX && !known) {
                if log.started(id).await? {
                    known = true;
                    if at == START {
                        let worker = Awaited::new(id, log.id, depth + 1, Whence::Start);
                        self.awaited.push(worker);
                    }
                    break;
                }
            }
            if !known {
                return Err(SubscribeError::no_worker(&id.to_string()).into());
            }
        }
        Ok(())
    }

    /// A worker that a client names, if what it has missed of it can be told.
    async fn find_named(
        &self,
        live: &Arc<LiveSession>,
        filter: &Filter,
        id: SessionId,
        at: Position,
    ) -> Result<(Arc<LiveSession>, u8), NoWorkers> {
        let sessions = &self.streams.sessions;
        let worker = sessions.open(&live.owner, id).await?;
        let depth = sessions.depth_below(live.id, &worker).await?;
        let depth = depth.ok_or_else(|| SubscribeError::no_worker(&id.to_string()))?;
        let max = self.streams.options.replay_max;
        match worker.catch_up(at, filter, Missed::Ends, max).await {
            Ok(_) => Ok((worker, depth)),
            Err(ReplayError::Expired) => Err(SubscribeError::cursor_expired().into()),
            Err(ReplayError::TooLarge(..)) => Err(SubscribeError::replay_too_large(max).into()),
            Err(ReplayError::Session(error)) => {
                if error == Error::Quarantined {
                    worker.quarantine();
                }
                Err(error.into())
            }
        }
    }

    /// Takes in a worker of `of` that has not ended and began at `began`, if the client stands
    /// after that in `of`. Where it stands before, the start is still to be told, and the worker
    /// is taken in then: until that it has no cursor, so that a client that is cut before it
    /// hears of the worker is told of it from its start when it comes back.
    async fn take_open(
        &mut self,
        live: &Arc<LiveSession>,
        (id, began): (SessionId, Position),
        (of, at): (SessionId, Position),
        depth: u8,
    ) -> Result<(), Error> {
        if let Some(named) = self.awaited.iter_mut().find(|worker| worker.id == id) {
            named.open = true;
            return Ok(());
        }
        if began > at {
            return Ok(());
        }
        if depth > WORKER_DEPTH_MAX {
            self.warn(live, "too_many_workers");
            return Ok(());
        }
        let whence = match self.streams.sessions.open(&live.owner, id).await {
            Ok(worker) => Whence::Tail(worker.tail()),
            // Not made yet: whatever it does is still to come.
            Err(Error::SessionNotFound) => Whence::Start,
            Err(Error::Quarantined) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut worker = Awaited::new(id, of, depth, whence);
        worker.open = true;
        self.awaited.push(worker);
        Ok(())
    }

    /// Whether a worker that began before the place the client came from has its turn: its
    /// employer is told up to where it was looked up, and its start was not among it. One whose
    /// employer does not come along has its turn with those of the parent.
    pub(super) fn is_due(&self, worker: &Awaited, live: &LiveSession, at: Position) -> bool {
        if worker.look.is_some() {
            return false;
        }
        let leg = self.legs.iter().find(|leg| leg.id == worker.of);
        let comes = || self.awaited.iter().any(|other| other.id == worker.of);
        match leg {
            Some(leg) => leg.place.at >= leg.course.looked,
            None if worker.of != live.id && comes() => false,
            None => at >= self.course.looked,
        }
    }

    /// Gives their turn to workers that are due.
    pub(super) fn wake(&mut self, live: &LiveSession, at: Position) -> bool {
        let due = self.awaited.iter().map(|w| self.is_due(w, live, at));
        let due: Vec<bool> = due.collect();
        for (worker, _) in self.awaited.iter_mut().zip(&due).filter(|(_, due)| **due) {
            worker.look = Some((Instant::now(), LOOK_FIRST));
            // The end of one that was open is told after this, even if it has ended since.
            worker.over = !worker.open;
        }
        due.contains(&true)
    }

    /// Looks for the workers whose turn it is.
    pub(super) async fn look(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
    ) -> Result<bool, ReplayError> {
        let (mut any, mut index) = (false, 0);
        while let Some(worker) = self.awaited.get(index).copied() {
            let Some((_, wait)) = worker.look.filter(|(at, _)| *at <= Instant::now()) else {
                index += 1;
                continue;
            };
            if self.join(live, filter, worker).await? {
                any = true; // and another stands here now
            } else if let Some(worker) = self.awaited.get_mut(index) {
                worker.look = Some((Instant::now() + wait, (wait * 2).min(LOOK_MAX)));
                index += 1;
            }
        }
        Ok(any)
    }

    /// Joins a worker; false if it is not there yet.
    async fn join(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
        worker: Awaited,
    ) -> Result<bool, ReplayError> {
        let sessions = self.streams.sessions.clone();
        let found = sessions.open(&live.owner, worker.id).await;
        let told = match found {
            Ok(found) if found.parent() == Some(worker.of) => {
                // Before it enters: its own workers would stay behind.
                if self.legs.len() >= self.streams.options.workers_max {
                    return Ok(self.left_out(live, worker.id));
                }
                self.enter(live, filter, worker, found).await
            }
            Ok(_) => Ok(None),
            Err(error) => Err(error.into()),
        };
        match told {
            Ok(leg) => {
                self.awaited.retain(|other| other.id != worker.id);
                self.legs.extend(leg);
                Ok(true)
            }
            Err(ReplayError::Session(Error::SessionNotFound)) => {
                let may_come = worker.whence == Whence::Start && !worker.over;
                if !may_come {
                    self.leave(worker.id);
                }
                Ok(!may_come)
            }
            Err(ReplayError::Session(Error::Quarantined)) => {
                self.warn(live, "worker_quarantined");
                self.leave(worker.id);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Leaves a worker out for which there is no room, and its own with it.
    fn left_out(&mut self, live: &Arc<LiveSession>, id: SessionId) -> bool {
        self.warn(live, "too_many_workers");
        self.leave(id);
        true
    }

    /// The place of a worker that is there.
    async fn enter(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
        worker: Awaited,
        found: Arc<LiveSession>,
    ) -> Result<Option<Leg>, ReplayError> {
        // Sat down before the look: news in between rings.
        let seat = found.ring.sit(self.waker.clone());
        let (looked, open) = found.delegates();
        let (place, from) = match worker.whence {
            Whence::Start => {
                let whole = Box::pin(found.catch_up_all(filter, Missed::Ends)).await?;
                let from = whole.since;
                (Place::before(START, whole), from)
            }
            Whence::Cursor(at) => (Place::before(at, catch_up(&found, at, filter).await?), at),
            Whence::Tail(at) => match found.ring.seek(at) {
                Some(cursor) => (Place::new(at, cursor), at),
                None => (Place::before(at, catch_up(&found, at, filter).await?), at),
            },
        };
        for below in open {
            let of = (worker.id, from);
            self.take_open(live, below, of, worker.depth + 1).await?;
        }
        Ok(Some(Leg {
            id: worker.id,
            of: worker.of,
            depth: worker.depth,
            ends: worker.over.then_some(looked),
            live: found,
            place,
            course: Course::new(looked),
            _seat: seat,
        }))
    }

    /// What the end of a worker must wait for; none if there is nothing of it to come.
    pub(super) async fn before_end(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
        worker: SessionId,
        end: Position,
    ) -> Result<Option<Wait>, ReplayError> {
        let awaited = self.awaited.iter().find(|other| other.id == worker);
        if let Some(awaited) = awaited.copied() {
            // It has ended, so it is there now or never was.
            let joined = self.join(live, filter, awaited).await?;
            if !joined {
                self.leave(worker);
            }
        }
        let leg = self.legs.iter().find(|leg| leg.id == worker);
        Ok(leg.map(|leg| Wait {
            worker,
            upto: leg.live.tail(),
            end,
        }))
    }
}

async fn catch_up(
    worker: &Arc<LiveSession>,
    at: Position,
    filter: &Filter,
) -> Result<turnwire_session::CatchUp, ReplayError> {
    let missed = worker.catch_up(at, filter, Missed::Ends, u64::MAX);
    Box::pin(missed).await
}
