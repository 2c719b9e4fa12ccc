//! The clients of a session, counted: how many watch now, how often the last one left, and since
//! when the session is idle.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The watchers of one session; streams of turns are watchers too.
pub(crate) struct SessionPresence {
    watchers: AtomicUsize,
    /// Connections to a parent session that deliver the events of this one too.
    deliveries: AtomicUsize,
    /// How often the last watcher has left: a grace period belongs to one departure.
    departures: AtomicUsize,
    /// The newest departure that was not quiet.
    last_noticed: AtomicUsize,
    idle_since: Mutex<Instant>,
}

impl SessionPresence {
    pub(crate) fn new() -> Self {
        Self {
            watchers: AtomicUsize::new(0),
            deliveries: AtomicUsize::new(0),
            departures: AtomicUsize::new(0),
            last_noticed: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) > 0
    }

    /// Whether a client is sent the events of the session: by its own connection, or by one to a
    /// parent.
    pub(crate) fn is_delivered(&self) -> bool {
        self.is_watched() || self.deliveries.load(Ordering::Acquire) > 0
    }

    /// Adds a connection to a parent.
    pub(crate) fn start_delivery(&self) {
        self.deliveries.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a connection to a parent.
    pub(crate) fn end_delivery(&self) {
        self.deliveries.fetch_sub(1, Ordering::AcqRel);
    }

    /// Adds a watcher to the count.
    pub(crate) fn enter(&self) {
        self.watchers.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a watcher; true if it was the last one.
    pub(crate) fn leave(&self) -> bool {
        self.watchers.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Counts a departure of the last watcher, and returns its number. A quiet departure only ends
    /// the grace periods of earlier ones.
    pub(crate) fn count_departure(&self, quiet: bool) -> usize {
        let departure = self.departures.fetch_add(1, Ordering::AcqRel) + 1;
        if !quiet {
            self.last_noticed.fetch_max(departure, Ordering::AcqRel);
        }
        departure
    }

    /// How often the last watcher has left.
    pub(crate) fn departures(&self) -> usize {
        self.departures.load(Ordering::Acquire)
    }

    /// Whether nobody has come back since this departure.
    pub(crate) fn is_away_since(&self, departure: usize) -> bool {
        !self.is_watched() && self.departures() == departure
    }

    /// Whether the last watcher has left, not quietly, after the first `departures` departures,
    /// and nobody has come back.
    pub(crate) fn left_after(&self, departures: usize) -> bool {
        let last_noticed = self.last_noticed.load(Ordering::Acquire);
        last_noticed > departures && self.is_away_since(last_noticed)
    }

    /// Restarts the idle time.
    pub(crate) fn touch(&self) {
        *self.idle_since.lock() = Instant::now();
    }

    /// The time since a watcher left or a turn ended.
    pub(crate) fn idle_time(&self) -> Duration {
        self.idle_since.lock().elapsed()
    }
}
