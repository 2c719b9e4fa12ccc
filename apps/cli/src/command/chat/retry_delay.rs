//! The delay before a request is repeated: doubled after each failure.

use std::time::Duration;

const DELAY_MAX: Duration = Duration::from_secs(5);

/// The delays between the attempts of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryDelay {
    first: Duration,
    next: Duration,
}

impl RetryDelay {
    pub(super) const fn from_millis(first: u64) -> Self {
        let first = Duration::from_millis(first);
        Self { first, next: first }
    }

    /// True before the first failure.
    pub(super) fn is_first(self) -> bool {
        self.next == self.first
    }

    /// The delay after one more failure.
    pub(super) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(DELAY_MAX);
        delay
    }
}

impl Default for RetryDelay {
    fn default() -> Self {
        Self::from_millis(50)
    }
}
