//! One session's ring: the newest released events, the state folded from all of them, and the
//! frames made of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use turnwire_event::Position;
use turnwire_log::{EventSink, ReleasedEvent};

use crate::bell::{Bell, Seat};
use crate::entry::Entry;
use crate::pump::{Pump, Wake};
use crate::track::{Project, Run, TRACKS, Track};

/// State that is folded from released events under the lock that publishes them.
pub trait Fold: Send + 'static {
    /// Takes in one event.
    fn apply(&mut self, event: &ReleasedEvent);
}

/// Bounds of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events kept.
    pub events: usize,
    /// Bytes of events kept.
    pub bytes: usize,
}

/// Why a ring has ended for its viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The session was deleted.
    Deleted,
    /// The session's log is damaged.
    Quarantined,
}

/// What a cursor finds.
#[derive(Debug)]
pub enum Read {
    /// Frames were lent; the cursor stands here after them.
    Upto(u64),
    /// Nothing new.
    Empty,
    /// The cursor's next event is no longer here.
    Behind,
}

/// Viewers that a publisher wakes itself: cheaper than asking the pump, and a bound.
const FEW: usize = 8;

struct Core<S> {
    state: S,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The number of the first entry.
    first: u64,
    /// What stands before the first entry.
    floor: Position,
    tail: Position,
    closed: Option<Closed>,
}

/// A ring and those who watch it.
pub struct Ring<S> {
    core: Mutex<Core<S>>,
    tracks: [Mutex<Track>; TRACKS],
    bounds: Bounds,
    /// The number of the first entry and the one after the last, for a look without the lock.
    first: AtomicU64,
    end: AtomicU64,
    ended: AtomicBool,
    dirty: AtomicBool,
    bell: Arc<Bell>,
    pump: Pump,
    this: Weak<Self>,
}

impl<S: Fold> Ring<S> {
    /// An empty ring whose next event comes after `tail`; `state` is what was folded up to there.
    pub fn new(tail: Position, state: S, bounds: Bounds, pump: Pump) -> Arc<Self> {
        let core = Core {
            state,
            entries: VecDeque::new(),
            bytes: 0,
            first: 0,
            floor: tail,
            tail,
            closed: None,
        };
        Arc::new_cyclic(|this| Self {
            core: Mutex::new(core),
            tracks: Default::default(),
            bounds,
            first: AtomicU64::new(0),
            end: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            dirty: AtomicBool::new(false),
            bell: Arc::default(),
            pump,
            this: this.clone(),
        })
    }

    /// Looks at the state, the tail and the cursor behind it, all of one moment.
    pub fn look<T>(&self, look: impl FnOnce(&S, Position, u64) -> T) -> T {
        let core = self.core.lock();
        look(
            &core.state,
            core.tail,
            core.first + core.entries.len() as u64,
        )
    }

    /// Changes the state outside of any event: bookkeeping that no client sees.
    pub fn touch<T>(&self, touch: impl FnOnce(&mut S) -> T) -> T {
        touch(&mut self.core.lock().state)
    }

    /// The cursor behind everything up to `position`, if all that came after it is still here.
    pub fn seek(&self, position: Position) -> Option<u64> {
        let core = self.core.lock();
        if position < core.floor || position > core.tail {
            return None;
        }
        let passed = core
            .entries
            .partition_point(|entry| entry.head.position <= position);
        Some(core.first + passed as u64)
    }

    /// The number after the last entry: what a cursor is compared with.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The number of the first entry that is still here.
    pub fn first(&self) -> u64 {
        self.first.load(Ordering::Acquire)
    }

    /// A place among those who are told of news.
    pub fn sit(&self, waker: Arc<AtomicWaker>) -> Seat {
        self.bell.sit(waker)
    }

    /// Ready when there is something after `cursor` or the ring has ended; else the task is woken
    /// through `waker`, which has a seat.
    pub fn poll_news(&self, waker: &AtomicWaker, cursor: u64, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the look: news in between finds the waker.
        waker.register(cx.waker());
        if self.end() > cursor || self.is_ended() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether the ring has ended.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Why the ring has ended, if it has.
    pub fn closed(&self) -> Option<Closed> {
        self.core.lock().closed
    }

    /// Lends frames of `track` from `cursor` on, made by `project` where nobody has wanted them yet.
    /// `take` is called under the track's lock and must be quick.
    pub fn read(
        &self,
        track: usize,
        cursor: u64,
        events_max: usize,
        project: Project<'_>,
        take: &mut dyn FnMut(Run<'_>),
    ) -> Read {
        if cursor >= self.end() {
            return Read::Empty;
        }
        let mut track = self.tracks[track].lock();
        if track.next() < self.end() {
            let (first, fresh) = self.fresh(track.next());
            track.trim(first);
            let from = track.next();
            track.extend(from, &fresh, project);
        }
        // Entries leave the ring before their frames leave the track.
        if cursor < self.first.load(Ordering::Acquire) {
            return Read::Behind;
        }
        Read::Upto(track.read(cursor, events_max, take))
    }

    /// The entries from number `from` on, and the number of the first entry kept.
    fn fresh(&self, from: u64) -> (u64, Vec<Entry>) {
        let core = self.core.lock();
        let skip = from.max(core.first) - core.first;
        (
            core.first,
            core.entries.iter().skip(skip as usize).cloned().collect(),
        )
    }

    /// Ends the ring: viewers find out at once.
    pub fn close(&self, why: Closed) {
        self.core.lock().closed.get_or_insert(why);
        self.ended.store(true, Ordering::Release);
        self.signal();
    }

    fn signal(&self) {
        if self.bell.taken() <= FEW {
            return self.bell.ring();
        }
        if !self.dirty.swap(true, Ordering::AcqRel)
            && let Some(this) = self.this.upgrade()
        {
            self.pump.push(this);
        }
    }
}

impl<S: Fold> Wake for Ring<S> {
    fn wake(&self) {
        // Cleared first: news that comes while we wake gets a round of its own.
        self.dirty.store(false, Ordering::Release);
        self.bell.ring();
    }
}

impl<S: Fold> EventSink for Ring<S> {
    fn publish(&self, events: &mut Vec<ReleasedEvent>) {
        let mut core = self.core.lock();
        for event in events.drain(..) {
            core.state.apply(&event);
            core.tail = event.head.position;
            core.bytes += event.bytes.len();
            core.entries.push_back(Entry {
                head: event.head,
                bytes: event.bytes,
            });
        }
        while core.entries.len() > self.bounds.events
            || (core.bytes > self.bounds.bytes && core.entries.len() > 1)
        {
            let Some(gone) = core.entries.pop_front() else {
                break;
            };
            core.bytes -= gone.bytes.len();
            core.floor = gone.head.position;
            core.first += 1;
        }
        self.first.store(core.first, Ordering::Release);
        self.end
            .store(core.first + core.entries.len() as u64, Ordering::Release);
        drop(core);
        self.signal();
    }

    fn quarantined(&self) {
        self.close(Closed::Quarantined);
    }
}

impl<S> std::fmt::Debug for Ring<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
