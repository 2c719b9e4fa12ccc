//! The workers whose events come along on a parent's connection: each with its own place, each
//! told between the two events of its parent that say that it began and that it ended.
//!
//! A worker is *awaited* until it is its turn: its start is told, or its parent is told up to
//! where it was looked up. Then it is looked for, as its session may not be there yet, and *joined*.
//! It leaves when its end is told.

mod join;

use std::sync::Arc;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::{Epoch, Filter, Position, Seq, SessionId};
use turnwire_hub::{Closed, Seat};
use turnwire_session::BusNotice;
use turnwire_session::WORKER_DEPTH_MAX;
use turnwire_session::{Error, LiveSession, ReplayError};
use turnwire_wire::session::Positions;

use super::Streams;
use super::course::{Course, Told, Wait};
use super::outbound::Outbound;
use super::place::{Filled, Place, TAKE};
pub(super) use join::NoWorkers;

/// How soon a worker that has begun and is not there yet is looked for again, at first and at
/// most: its session is made in the milliseconds after its start is told, unless the disk is slow.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_MAX: Duration = Duration::from_millis(250);

/// The cursor before a worker's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// From where a worker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whence {
    /// From its first event.
    Start,
    /// From where the client stands.
    Cursor(Position),
    /// From what happens after it was looked up.
    Tail(Position),
}

/// A worker that is not told yet.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    id: SessionId,
    /// Whose worker.
    of: SessionId,
    depth: u8,
    whence: Whence,
    /// When to look for it and how long to wait after; none while it is not its turn.
    look: Option<(Instant, Duration)>,
    /// Whether it had not ended where its employer was looked up: its end is then still to come.
    open: bool,
    /// Whether its end was told before.
    over: bool,
}

impl Awaited {
    fn new(id: SessionId, of: SessionId, depth: u8, whence: Whence) -> Self {
        Self {
            id,
            of,
            depth,
            whence,
            look: None,
            open: false,
            over: false,
        }
    }
}

/// A worker that is told.
struct Leg {
    id: SessionId,
    of: SessionId,
    depth: u8,
    live: Arc<LiveSession>,
    place: Place,
    course: Course,
    /// It leaves when it is told up to here.
    ends: Option<Position>,
    /// Wakes the connection; dropping it is leaving the ring's bell.
    _seat: Seat,
}

impl Leg {
    /// Whether it is told as far as it is to be.
    fn is_over(&self) -> bool {
        self.ends.is_some_and(|end| self.place.at >= end)
    }
}

/// The workers of one connection.
pub(super) struct Workers {
    streams: Arc<Streams>,
    waker: Arc<AtomicWaker>,
    /// The connection's, for warnings.
    name: String,
    /// The parent's.
    course: Course,
    legs: Vec<Leg>,
    awaited: Vec<Awaited>,
    /// Whose turn it was last: 0 is the parent.
    turn: usize,
}

impl Workers {
    /// Whether a worker of `live`, which is told up to `at`, has something to tell, now or after
    /// another.
    pub(super) fn has_more(&self, live: &LiveSession, at: Position) -> bool {
        let told = |leg: &Leg| {
            leg.live.ring.is_ended()
                || match leg.is_over() {
                    true => !self.employs(leg.id),
                    false => leg.course.has_more(&leg.place, &leg.live),
                }
        };
        let due = || self.awaited.iter().any(|w| self.is_due(w, live, at));
        let looks = || self.look_at().is_some_and(|at| at <= Instant::now());
        self.legs.iter().any(told)
            || self.waits().any(|wait| self.is_told(wait))
            || looks()
            || due()
    }

    /// The sessions of those that are told.
    pub(super) fn lives(&self) -> impl Iterator<Item = &Arc<LiveSession>> {
        self.legs.iter().map(|leg| &leg.live)
    }

    /// Whether something of the parent was read that is not told yet.
    pub(super) fn hold(&self) -> bool {
        self.course.holds()
    }

    /// The ends of all rings together: another number is news.
    pub(super) fn ends(&self) -> u64 {
        self.legs.iter().map(|leg| leg.live.ring.end()).sum()
    }

    pub(super) fn is_catching_up(&self) -> bool {
        self.legs.iter().any(|leg| leg.place.is_catching_up())
    }

    pub(super) fn behind(&self) -> u64 {
        let legs = self.legs.iter();
        legs.map(|leg| leg.place.behind(&leg.live)).sum()
    }

    /// How far every worker has been told.
    pub(super) fn positions(&self) -> Positions {
        let awaited = self.awaited.iter().map(|worker| {
            let at = match worker.whence {
                Whence::Start => START,
                Whence::Cursor(at) | Whence::Tail(at) => at,
            };
            (worker.id, at)
        });
        let told = self.legs.iter().map(|leg| (leg.id, leg.place.at));
        awaited.chain(told).collect()
    }

    /// When a worker is to be looked for.
    pub(super) fn look_at(&self) -> Option<Instant> {
        let looks = self.awaited.iter().filter_map(|worker| worker.look);
        looks.map(|(at, _)| at).min()
    }

    /// Whether a worker of this one is told or awaited.
    fn employs(&self, id: SessionId) -> bool {
        self.legs.iter().any(|leg| leg.of == id)
            || self.awaited.iter().any(|worker| worker.of == id)
    }

    fn waits(&self) -> impl Iterator<Item = Wait> {
        let legs = self.legs.iter().filter_map(|leg| leg.course.wait);
        legs.chain(self.course.wait)
    }

    /// Whether the worker that is waited for has been told, or is not there.
    fn is_told(&self, wait: Wait) -> bool {
        let leg = self.legs.iter().find(|leg| leg.id == wait.worker);
        leg.is_none_or(|leg| leg.place.at >= wait.upto)
    }

    fn warn(&self, live: &Arc<LiveSession>, reason: &'static str) {
        live.emit_notice(BusNotice::Warning {
            subscription: self.name.clone(),
            reason,
        });
    }

    /// Puts what is due next into `out`: of the parent and of each worker at most one stretch.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<LiveSession>,
        place: &mut Place,
        filter: &Filter,
        out: &mut Outbound,
    ) -> Result<Filled, ReplayError> {
        let mut any = self.wake(live, place.at);
        any |= self.look(live, filter).await?;
        for _ in 0..=self.legs.len() {
            if out.events() >= TAKE {
                break;
            }
            self.turn = (self.turn + 1) % (self.legs.len() + 1);
            let told = match self.turn {
                0 => self.tell_parent(live, place, filter, out).await?,
                turn => self.tell_worker(live, turn - 1, filter, out).await?,
            };
            match told {
                Told::Nothing => {}
                Told::Behind => return Ok(Filled::Behind),
                Told::Some | Told::Began(_) | Told::Ending(..) => any = true,
            }
        }
        Ok(if any { Filled::Some } else { Filled::Nothing })
    }

    async fn tell_parent(
        &mut self,
        live: &Arc<LiveSession>,
        place: &mut Place,
        filter: &Filter,
        out: &mut Outbound,
    ) -> Result<Told, ReplayError> {
        if let Some(wait) = self.course.wait {
            if !self.is_told(wait) {
                return Ok(Told::Nothing);
            }
            self.leave(wait.worker);
            self.course.pass(wait.end);
        }
        let told = self.course.tell(place, live, filter, out).await?;
        match told {
            Told::Began(worker) => self.began(live, worker, live.id, 1),
            Told::Ending(worker, end) => {
                let wait = self.before_end(live, filter, worker, end).await?;
                match wait {
                    Some(wait) => self.course.stand(wait),
                    None => self.course.pass(end),
                }
            }
            Told::Some | Told::Nothing | Told::Behind => {}
        }
        Ok(told)
    }

    async fn tell_worker(
        &mut self,
        live: &Arc<LiveSession>,
        index: usize,
        filter: &Filter,
        out: &mut Outbound,
    ) -> Result<Told, ReplayError> {
        let Some(leg) = self.legs.get(index) else {
            return Ok(Told::Nothing);
        };
        let (id, depth) = (leg.id, leg.depth);
        if leg.live.ring.closed() == Some(Closed::Quarantined) {
            return Ok(self.lost(live, id, Some("worker_quarantined")));
        }
        if leg.is_over() {
            // Those below it that were named are told to their end first.
            if self.employs(id) {
                return Ok(Told::Nothing);
            }
            self.leave(id);
            return Ok(Told::Some);
        }
        if let Some(wait) = leg.course.wait {
            if !self.is_told(wait) {
                return Ok(Told::Nothing);
            }
            self.leave(wait.worker);
            self.course_of(id).pass(wait.end);
        }
        let Some(leg) = self.legs.iter_mut().find(|leg| leg.id == id) else {
            return Ok(Told::Nothing);
        };
        let told = leg.course.tell(&mut leg.place, &leg.live, filter, out);
        let told = match Box::pin(told).await {
            Ok(told) => told,
            Err(ReplayError::Session(Error::SessionNotFound)) => {
                return Ok(self.lost(live, id, None));
            }
            Err(ReplayError::Session(Error::Quarantined)) => {
                leg.live.quarantine();
                return Ok(self.lost(live, id, Some("worker_quarantined")));
            }
            Err(error) => return Err(error),
        };
        match told {
            Told::Began(worker) => self.began(live, worker, id, depth + 1),
            Told::Ending(worker, end) => {
                let wait = Box::pin(self.before_end(live, filter, worker, end)).await?;
                match wait {
                    Some(wait) => self.course_of(id).stand(wait),
                    None => self.course_of(id).pass(end),
                }
            }
            // It was deleted, and all that came before is told.
            Told::Nothing if leg.live.ring.is_ended() => return Ok(self.lost(live, id, None)),
            Told::Some | Told::Nothing | Told::Behind => {}
        }
        Ok(told)
    }

    fn course_of(&mut self, id: SessionId) -> &mut Course {
        match self.legs.iter_mut().find(|leg| leg.id == id) {
            Some(leg) => &mut leg.course,
            None => &mut self.course,
        }
    }

    /// A worker that cannot be told any more.
    fn lost(&mut self, live: &Arc<LiveSession>, id: SessionId, why: Option<&'static str>) -> Told {
        if let Some(why) = why {
            self.warn(live, why);
        }
        self.leave(id);
        Told::Some
    }

    /// Lets a worker go, and its own with it.
    fn leave(&mut self, id: SessionId) {
        let mut gone = vec![id];
        while let Some(id) = gone.pop() {
            self.awaited
                .retain(|worker| worker.id != id && worker.of != id);
            self.legs.retain(|leg| leg.id != id);
            gone.extend(
                self.legs
                    .iter()
                    .filter(|leg| leg.of == id)
                    .map(|leg| leg.id),
            );
        }
    }

    /// A worker's start was told.
    fn began(&mut self, live: &Arc<LiveSession>, id: SessionId, of: SessionId, depth: u8) {
        let look = Some((Instant::now(), LOOK_FIRST));
        if self.legs.iter().any(|leg| leg.id == id) {
            return;
        }
        if let Some(worker) = self.awaited.iter_mut().find(|worker| worker.id == id) {
            worker.look = look;
            return;
        }
        if depth > WORKER_DEPTH_MAX || self.is_full() {
            return self.warn(live, "too_many_workers");
        }
        let mut worker = Awaited::new(id, of, depth, Whence::Start);
        worker.look = look;
        self.awaited.push(worker);
    }

    /// Whether no more workers come along.
    fn is_full(&self) -> bool {
        let due = self.awaited.iter().filter(|worker| worker.look.is_some());
        self.legs.len() + due.count() >= self.streams.options.workers_max
    }
}

#[cfg(test)]
mod tests;
