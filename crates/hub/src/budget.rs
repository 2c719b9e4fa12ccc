//! One budget of bytes over all rings: [`RingBudget`] counts what every [`Ring`](crate::Ring) holds,
//! entries and frames, and evicts what no reader needs.
//!
//! ```text
//!   0 ───────────── target ──────── sweep ──────── max
//!                   ½ max           ¾ max          a ring that publishes shrinks itself at once
//!                     ▲──────────────┘
//!                     the task evicts: rings nobody watches, then the largest of the others
//! ```
//!
//! Publishing adds to one atomic number. The list of rings is locked when a ring is created or
//! dropped and by the task, never by a publisher.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes that a ring keeps when it shrinks itself because the budget is used up: some hundred
/// deltas, so that a client that keeps up still reads the ring. 1,000 rings that publish at the same
/// time then hold 64 MB.
const KEEP_BYTES: usize = 64 << 10;

/// The pause between two sweeps: what watched rings must keep can be above the target, and a
/// sweep looks at every ring.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);

/// A ring, as the budget sees it: independent of the type of its state.
pub(crate) trait EvictEntries: Send + Sync {
    /// Bytes that the ring holds.
    fn weight(&self) -> usize;

    /// True if a reader waits for events of the ring.
    fn is_watched(&self) -> bool;

    /// Evicts the oldest entries until the rest weighs at most `keep`.
    fn evict(&self, keep: usize);
}

/// The bytes that all rings of a server may hold together.
pub struct RingBudget {
    max: usize,
    used: AtomicUsize,
    evicted: AtomicU64,
    rings: Mutex<RegisteredRings>,
    sweep: Notify,
    /// True from the first publisher above the threshold until the task has swept.
    is_requested: AtomicBool,
}

#[derive(Default)]
struct RegisteredRings {
    last_id: u64,
    rings: HashMap<u64, Weak<dyn EvictEntries>>,
}

impl RingBudget {
    /// A budget of `max` bytes, with the task that evicts; the task ends when the budget is dropped.
    pub fn start(max: usize) -> Arc<Self> {
        let budget = Self::without_task(max);
        let weak = Arc::downgrade(&budget);
        tokio::spawn(async move {
            while let Some(budget) = weak.upgrade() {
                // Dropped while the task waits, so that the budget can end: looked at again then.
                let requested = tokio::time::timeout(SWEEP_PAUSE * 10, budget.sweep.notified());
                if requested.await.is_ok() {
                    budget.sweep();
                    drop(budget);
                    tokio::time::sleep(SWEEP_PAUSE).await;
                }
            }
        });
        budget
    }

    pub(crate) fn without_task(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            used: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            rings: Mutex::default(),
            sweep: Notify::new(),
            is_requested: AtomicBool::new(false),
        })
    }

    /// Bytes that all rings hold.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Events that were evicted to stay within the budget.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    pub(crate) fn register(&self, ring: Weak<dyn EvictEntries>) -> u64 {
        let mut registered = self.rings.lock();
        registered.last_id += 1;
        let id = registered.last_id;
        registered.rings.insert(id, ring);
        id
    }

    pub(crate) fn unregister(&self, id: u64) {
        self.rings.lock().rings.remove(&id);
    }

    /// Counts bytes that a ring holds from now on. Returns the bytes that the ring may keep if the
    /// budget is used up.
    pub(crate) fn add(&self, bytes: usize) -> Option<usize> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > self.sweep_above() && !self.is_requested.swap(true, Ordering::AcqRel) {
            self.sweep.notify_one();
        }
        (used > self.max).then_some(KEEP_BYTES)
    }

    /// Uncounts bytes that a ring no longer holds.
    pub(crate) fn sub(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_evicted(&self, events: u64) {
        self.evicted.fetch_add(events, Ordering::Relaxed);
    }

    fn sweep_above(&self) -> usize {
        self.max / 4 * 3
    }

    /// Evicts down to half of the budget: rings that nobody watches lose everything, then the
    /// largest watched ones are cut to an equal share.
    pub(crate) fn sweep(&self) {
        // Cleared first: a publisher during the sweep requests another one.
        self.is_requested.store(false, Ordering::Release);
        if self.used() <= self.sweep_above() {
            return;
        }
        let target = self.max / 2;
        let rings: Vec<_> = {
            let registered = self.rings.lock();
            registered
                .rings
                .values()
                .filter_map(Weak::upgrade)
                .collect()
        };
        let rings = rings.into_iter().map(|ring| (ring.weight(), ring));
        let mut rings: Vec<_> = rings.filter(|(weight, _)| *weight > 0).collect();
        rings.sort_by_key(|(weight, _)| Reverse(*weight));
        let (watched, unwatched): (Vec<_>, Vec<_>) =
            rings.into_iter().partition(|(_, ring)| ring.is_watched());
        let share = target / watched.len().max(1);
        for (rings, keep) in [(unwatched, 0), (watched, share)] {
            for (_, ring) in rings {
                if self.used() <= target {
                    return;
                }
                ring.evict(keep);
            }
        }
    }
}

impl std::fmt::Debug for RingBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingBudget")
            .field("max", &self.max)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}
