//! Decides when the next delta is due.
//!
//! Due times are counted from the last due time, not from the next poll, so that a thousand deltas
//! per second stay a thousand although timers tick in milliseconds.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How much of a delay a slow consumer may catch up on at once.
const CATCH_UP_MAX: Duration = Duration::from_millis(100);

/// The timer of one stream.
#[derive(Default)]
pub(super) struct DeltaTimer {
    due: Option<Instant>,
    /// Created once and reset, so that a paced stream does not allocate a timer per delta.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl DeltaTimer {
    /// Waits for `wait` after the last due time.
    pub(super) fn wait_after_due(&mut self, wait: Duration) {
        let now = Instant::now();
        let earliest = now.checked_sub(CATCH_UP_MAX).unwrap_or(now);
        let due = self.due.unwrap_or(now).max(earliest) + wait;
        self.due = Some(due);
        if due <= now {
            return;
        }
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(due),
            None => self.timer = Some(Box::pin(sleep_until(due))),
        }
        self.waiting = true;
    }

    /// Waits for `wait` from now: a pause is not caught up on.
    pub(super) fn wait_from_now(&mut self, wait: Duration) {
        self.due = None;
        self.wait_after_due(wait);
    }

    /// Ready when no wait is pending; true if there was one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let waited = self.waiting;
        if let Some(timer) = self.timer.as_mut().filter(|_| waited) {
            ready!(timer.as_mut().poll(cx));
            self.waiting = false;
        }
        Poll::Ready(waited)
    }
}
