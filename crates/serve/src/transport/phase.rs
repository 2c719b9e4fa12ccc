//! Whether connections may stay open: a word that costs one atomic read, and a bell that wakes
//! every connection when it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::task::AtomicWaker;
use turnwire_hub::{Bell, Seat};

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const STOPPED: u8 = 2;

/// How far the server is in its shutdown.
#[derive(Debug, Default)]
pub struct ServerPhase {
    now: AtomicU8,
    bell: Arc<Bell>,
}

impl ServerPhase {
    /// Wakes `waker` at every change, until the seat is dropped.
    pub(super) fn sit(&self, waker: Arc<AtomicWaker>) -> Seat {
        self.bell.sit(waker)
    }

    /// The phase as a number, to be compared with a later one.
    pub(super) fn now(&self) -> u8 {
        self.now.load(Ordering::Acquire)
    }

    /// Lets connections stay until their turns are over.
    pub fn drain(&self) {
        self.now.fetch_max(DRAINING, Ordering::AcqRel);
        self.bell.ring();
    }

    /// Closes connections once they have delivered what there is.
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
