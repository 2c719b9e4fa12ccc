//! Whether connections may stay open: a state that costs one atomic read, and wakers of every
//! connection for its changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::task::AtomicWaker;
use turnwire_hub::{WakerGuard, WakerSet};

/// The progress of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    None,
    /// Connections stay until their turns are over.
    Draining,
    /// Connections close once they have delivered all pending events.
    Stopped,
}

/// The `Shutdown` state of the server, watched by every connection.
#[derive(Debug, Default)]
pub struct ServerPhase {
    /// A [`Shutdown`] as a number; it only grows.
    shutdown: AtomicU8,
    bell: Arc<WakerSet>,
}

impl ServerPhase {
    /// Wakes `waker` at every change, until the [`WakerGuard`] is dropped.
    pub(super) fn register(&self, waker: Arc<AtomicWaker>) -> WakerGuard {
        self.bell.register(waker)
    }

    pub(super) fn shutdown(&self) -> Shutdown {
        match self.shutdown.load(Ordering::Acquire) {
            0 => Shutdown::None,
            1 => Shutdown::Draining,
            _ => Shutdown::Stopped,
        }
    }

    fn advance(&self, shutdown: Shutdown) {
        self.shutdown.fetch_max(shutdown as u8, Ordering::AcqRel);
        self.bell.wake_all();
    }

    /// Starts the drain: connections stay until their turns have ended.
    pub fn drain(&self) {
        self.advance(Shutdown::Draining);
    }

    /// Closes connections once they have delivered all pending events.
    pub fn stop(&self) {
        self.advance(Shutdown::Stopped);
    }
}
