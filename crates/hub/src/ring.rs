//! The ring of one session: its newest released events, the state folded from all of its events,
//! and the frames that the wires have projected so far.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use turnwire_event::{EventFilter, Position};
use turnwire_log::{EventSink, ReleasedEvent};

use crate::budget::{EvictEntries, RingBudget};
use crate::entry::RingEntry;
use crate::pump::{WakePump, WakeWaiters};
use crate::track::{FrameRun, FrameTrack, ProjectFn, TRACK_COUNT};
use crate::waker_set::{WakerGuard, WakerSet};

/// State that a [`Ring`] folds from released events, under the lock that publishes them.
pub trait RingState: Send + 'static {
    /// Updates the state with the next event.
    fn apply(&mut self, event: &ReleasedEvent);
}

/// The size limits of a [`Ring`]; the oldest entries leave it first.
#[derive(Clone, Copy, Debug)]
pub struct RingBounds {
    /// The largest number of entries.
    pub events: usize,
    /// The largest memory of all entries. The newest entry stays even if it is larger.
    pub bytes: usize,
}

/// The reason why a [`Ring`] publishes no more events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingClosed {
    /// The session was deleted.
    Deleted,
    /// The stored bytes of the session do not match its hash chain.
    Quarantined,
}

/// The entries after a cursor, from [`Ring::count_passing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassingCount {
    /// Entries of the ring that pass the filter.
    pub passing: u64,
    /// Entries that have left the ring without being looked at.
    pub left: u64,
    /// How many of `left` were persisted events.
    pub left_persisted: u64,
    /// The index behind the newest entry.
    pub end: u64,
    /// The position of the newest entry.
    pub at: Position,
}

/// The result of [`Ring::read`].
#[derive(Debug)]
pub enum RingRead {
    /// Frames were passed to the reader; its next cursor.
    Advanced(u64),
    /// There is no event at or after the cursor.
    Empty,
    /// The entry at the cursor has left the ring by its bounds: the reader was too slow, or
    /// continues from the store.
    Behind,
    /// The entry at the cursor was evicted for the [`RingBudget`]: the reader was not too slow, and
    /// continues from the store.
    Evicted,
}

/// Up to this number of waiters the publisher wakes them itself, which costs less than a trip
/// through the queue of the [`WakePump`].
const DIRECT_WAKES_MAX: usize = 8;

struct RingCore<S> {
    state: S,
    entries: VecDeque<RingEntry>,
    /// The memory of `entries`.
    weight: usize,
    /// The index of `entries[0]`. Indexes count the entries since the ring was created.
    first: u64,
    /// The position of the event before the first entry.
    floor: Position,
    tail: Position,
    closed: Option<RingClosed>,
}

impl<S> RingCore<S> {
    /// Removes the oldest entries while `is_above`.
    fn pop_while(&mut self, is_above: impl Fn(&Self) -> bool) {
        while is_above(self)
            && let Some(oldest) = self.entries.pop_front()
        {
            self.weight -= oldest.weight();
            self.floor = oldest.head.position;
            self.first += 1;
        }
    }
}

/// The newest released events of one session, shared by all of its connections.
pub struct Ring<S> {
    core: Mutex<RingCore<S>>,
    tracks: [Mutex<FrameTrack>; TRACK_COUNT],
    bounds: RingBounds,
    /// The index of the first entry and the index behind the last, readable without the lock.
    first: AtomicU64,
    end: AtomicU64,
    /// The index behind the last entry that was evicted for the budget.
    evicted_until: AtomicU64,
    is_closed: AtomicBool,
    /// True while the ring is in the queue of the pump.
    is_queued: AtomicBool,
    wakers: Arc<WakerSet>,
    pump: WakePump,
    budget: Arc<RingBudget>,
    /// The number of the ring in the budget.
    budget_id: u64,
    this: Weak<Self>,
}

impl<S: RingState> Ring<S> {
    /// An empty ring whose next event follows `tail`; `state` is folded from all events up to it.
    /// `budget` counts what the ring holds, together with all others.
    pub fn new(
        tail: Position,
        state: S,
        bounds: RingBounds,
        pump: WakePump,
        budget: Arc<RingBudget>,
    ) -> Arc<Self> {
        let core = RingCore {
            state,
            entries: VecDeque::new(),
            weight: 0,
            first: 0,
            floor: tail,
            tail,
            closed: None,
        };
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            core: Mutex::new(core),
            tracks: Default::default(),
            bounds,
            first: AtomicU64::new(0),
            end: AtomicU64::new(0),
            evicted_until: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            is_queued: AtomicBool::new(false),
            wakers: Arc::default(),
            pump,
            budget_id: budget.register(this.clone()),
            budget,
            this: this.clone(),
        })
    }

    /// Reads the state, the position of the newest event and the cursor behind it, all at the same
    /// moment. `read` runs under the ring's lock.
    pub fn with_state<T>(&self, read: impl FnOnce(&S, Position, u64) -> T) -> T {
        let core = self.core.lock();
        read(
            &core.state,
            core.tail,
            core.first + core.entries.len() as u64,
        )
    }

    /// Changes the state without an event, for bookkeeping that no client sees. `change` runs under
    /// the ring's lock.
    pub fn with_state_mut<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        change(&mut self.core.lock().state)
    }

    /// The cursor behind `position`, or `None` if an event after `position` has left the ring or
    /// `position` is ahead of the newest event.
    pub fn cursor_after(&self, position: Position) -> Option<u64> {
        let core = self.core.lock();
        if position < core.floor || position > core.tail {
            return None;
        }
        let preceding = core
            .entries
            .partition_point(|entry| entry.head.position <= position);
        Some(core.first + preceding as u64)
    }

    /// The index behind the newest entry: a cursor with this value has nothing left to read.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The index of the oldest entry.
    pub fn first(&self) -> u64 {
        self.first.load(Ordering::Acquire)
    }

    /// Registers `waker` to be woken when an event is published or the ring closes.
    pub fn register(&self, waker: Arc<AtomicWaker>) -> WakerGuard {
        self.wakers.register(waker)
    }

    /// Ready if there is an event at or after `cursor`, or if the ring is closed. Otherwise the
    /// task is woken through `waker`, which must be registered with [`Ring::register`].
    pub fn poll_readable(
        &self,
        waker: &AtomicWaker,
        cursor: u64,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // Registered before the check: an event published in between finds the waker.
        waker.register(cx.waker());
        if self.end() > cursor || self.is_closed() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// True once [`Ring::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The reason of the first call of [`Ring::close`], or `None` while the ring is open.
    pub fn close_reason(&self) -> Option<RingClosed> {
        self.core.lock().closed
    }

    /// Passes the frames of `track` from `cursor` on to `receive`, at most `events_max` events.
    /// `project` makes the frames that no reader has requested before. `receive` runs under the
    /// lock of the track and must return quickly.
    pub fn read(
        &self,
        track: usize,
        cursor: u64,
        events_max: usize,
        project: ProjectFn<'_>,
        receive: &mut dyn FnMut(FrameRun<'_>),
    ) -> RingRead {
        if cursor >= self.end() {
            return RingRead::Empty;
        }
        let mut track = self.tracks[track].lock();
        if track.next() < self.end() {
            let (first, unprojected) = self.entries_from(track.next());
            self.budget.sub(track.trim(first));
            let from = track.next();
            // Frames are of entries that were counted before: only a publisher shrinks its ring.
            self.budget.add(track.extend(from, &unprojected, project));
        }
        // Entries leave the ring before their frames leave the track.
        if cursor < self.first.load(Ordering::Acquire) {
            let is_evicted = cursor < self.evicted_until.load(Ordering::Acquire);
            return match is_evicted {
                true => RingRead::Evicted,
                false => RingRead::Behind,
            };
        }
        RingRead::Advanced(track.read(cursor, events_max, receive))
    }

    /// Counts the entries from index `from` on that pass `filter`. `at` is the position of the entry
    /// before `from`.
    pub fn count_passing(&self, from: u64, at: Position, filter: &EventFilter) -> PassingCount {
        let core = self.core.lock();
        let (first, end) = (core.first, core.first + core.entries.len() as u64);
        let oldest = core.entries.front().map_or(at, |entry| entry.head.position);
        let newest = core.entries.back().map_or(at, |entry| entry.head.position);
        let left = first.saturating_sub(from);
        let persisted = oldest.seq.0.saturating_sub(at.seq.0);
        let entries = core
            .entries
            .iter()
            .skip(from.saturating_sub(first) as usize);
        let passing = entries.filter(|entry| filter.matches(&entry.head)).count();
        PassingCount {
            passing: passing as u64,
            left,
            left_persisted: left.min(persisted - u64::from(persisted > 0 && oldest.is_persisted())),
            end,
            at: newest,
        }
    }

    /// The entries from index `from` on, and the index of the oldest entry.
    fn entries_from(&self, from: u64) -> (u64, Vec<RingEntry>) {
        let core = self.core.lock();
        let skip = from.max(core.first) - core.first;
        (
            core.first,
            core.entries.iter().skip(skip as usize).cloned().collect(),
        )
    }

    /// Evicts the oldest entries for the budget while `is_above`. The caller holds the lock of the
    /// core; frames leave their tracks later.
    fn evict_entries(&self, core: &mut RingCore<S>, is_above: impl Fn(&RingCore<S>) -> bool) {
        let (first, weight) = (core.first, core.weight);
        core.pop_while(is_above);
        if core.first == first {
            return;
        }
        core.entries.shrink_to(core.entries.len() * 2);
        self.evicted_until.store(core.first, Ordering::Release);
        self.first.store(core.first, Ordering::Release);
        self.budget.sub(weight - core.weight);
        self.budget.count_evicted(core.first - first);
    }

    /// Closes the ring and wakes all waiters. The first reason is kept.
    pub fn close(&self, reason: RingClosed) {
        self.core.lock().closed.get_or_insert(reason);
        self.is_closed.store(true, Ordering::Release);
        self.notify();
    }

    fn notify(&self) {
        if self.wakers.len() <= DIRECT_WAKES_MAX {
            return self.wakers.wake_all();
        }
        if !self.is_queued.swap(true, Ordering::AcqRel)
            && let Some(this) = self.this.upgrade()
        {
            self.pump.push(this);
        }
    }
}

impl<S: RingState> WakeWaiters for Ring<S> {
    fn wake_waiters(&self) {
        // Cleared first: an event published during the wake queues the ring again.
        self.is_queued.store(false, Ordering::Release);
        self.wakers.wake_all();
    }
}

impl<S: RingState> EventSink for Ring<S> {
    fn publish(&self, events: &mut Vec<ReleasedEvent>) {
        let mut core = self.core.lock();
        let weight_before = core.weight;
        for event in events.drain(..) {
            core.state.apply(&event);
            core.tail = event.head.position;
            let entry = RingEntry {
                head: event.head,
                bytes: event.bytes,
            };
            core.weight += entry.weight();
            core.entries.push_back(entry);
        }
        let bounds = self.bounds;
        core.pop_while(|core| {
            core.entries.len() > bounds.events
                || (core.weight > bounds.bytes && core.entries.len() > 1)
        });
        let (before, after) = (weight_before, core.weight);
        if after < before {
            self.budget.sub(before - after);
        } else if let Some(keep) = self.budget.add(after - before) {
            self.evict_entries(&mut core, |core| {
                core.weight > keep && core.entries.len() > 1
            });
        }
        self.first.store(core.first, Ordering::Release);
        self.end
            .store(core.first + core.entries.len() as u64, Ordering::Release);
        drop(core);
        self.notify();
    }

    fn quarantined(&self) {
        self.close(RingClosed::Quarantined);
    }
}

impl<S: RingState> EvictEntries for Ring<S> {
    fn weight(&self) -> usize {
        let tracks = self.tracks.iter().map(|track| track.lock().weight());
        let frames: usize = tracks.sum();
        self.core.lock().weight + frames
    }

    fn is_watched(&self) -> bool {
        self.wakers.len() > 0
    }

    fn evict(&self, keep: usize) {
        // The frames of an entry weigh about as much as the entry.
        let is_read = |track: &Mutex<FrameTrack>| track.lock().weight() > 0;
        let tracks_used = self.tracks.iter().filter(|track| is_read(track)).count();
        let keep_entries = keep / (1 + tracks_used);
        let first = {
            let mut core = self.core.lock();
            self.evict_entries(&mut core, |core| core.weight > keep_entries);
            core.first
        };
        for track in &self.tracks {
            self.budget.sub(track.lock().trim(first));
        }
    }
}

impl<S> Drop for Ring<S> {
    fn drop(&mut self) {
        self.budget.unregister(self.budget_id);
        let tracks = self.tracks.iter_mut().map(|track| track.get_mut().weight());
        let frames: usize = tracks.sum();
        self.budget.sub(self.core.get_mut().weight + frames);
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
