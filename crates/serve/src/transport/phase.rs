//! Whether connections may stay: a word that costs one atomic read, and a bell when it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::task::AtomicWaker;
use turnwire_hub::{Bell, Seat};

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const STOPPED: u8 = 2;

/// How far the server is on its way out.
#[derive(Debug, Default)]
pub struct Phase {
    now: AtomicU8,
    bell: Arc<Bell>,
}

impl Phase {
    /// A place among those who are told of a change.
    pub(super) fn sit(&self, waker: Arc<AtomicWaker>) -> Seat {
        self.bell.sit(waker)
    }

    /// The word, to compare later.
    pub(super) fn now(&self) -> u8 {
        self.now.load(Ordering::Acquire)
    }

    /// The server goes away: connections leave when their turn is over.
    pub fn drain(&self) {
        self.now.fetch_max(DRAINING, Ordering::AcqRel);
        self.bell.ring();
    }

    /// The server is gone: connections leave now.
    pub fn stop(&self) {
        self.now.fetch_max(STOPPED, Ordering::AcqRel);
        self.bell.ring();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.now() != OPEN
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.now() == STOPPED
    }
}
