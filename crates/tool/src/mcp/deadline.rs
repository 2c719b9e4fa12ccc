//! How long a start, a listing or a call may take.

use std::time::Duration;

use tokio::time::Instant;

/// A timeout and the instant at which it elapses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// For messages: the timeout that the pack sets.
    pub(crate) timeout: Duration,
    pub(crate) at: Instant,
}

impl Deadline {
    /// Elapses `timeout` from now.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self {
            timeout,
            at: Instant::now() + timeout,
        }
    }

    /// Elapses `wait` from now if that is earlier.
    pub(crate) fn at_most(self, wait: Duration) -> Self {
        Self {
            at: self.at.min(Instant::now() + wait),
            ..self
        }
    }
}
