//! When the next delta is due.
//!
//! Due times are counted from the last due time, not from when the consumer came back, so that a
//! thousand deltas a second are a thousand although timers tick in milliseconds.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How much a consumer that was held up is given back at once.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// The wait of one stream.
#[derive(Default)]
pub(super) struct Pace {
    due: Option<Instant>,
    /// Made once and reset, so that a paced stream does not allocate a timer a delta.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Pace {
    /// Waits for `wait` after what was due last.
    pub(super) fn follow(&mut self, wait: Duration) {
        let now = Instant::now();
        let earliest = now.checked_sub(BEHIND_MAX).unwrap_or(now);
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

    /// Waits for `wait` from now: a pause is not there to be caught up with.
    pub(super) fn pause(&mut self, wait: Duration) {
        self.due = None;
        self.follow(wait);
    }

    /// Ready when nothing is waited for; says whether there was a wait.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let waited = self.waiting;
        if let Some(timer) = self.timer.as_mut().filter(|_| waited) {
            ready!(timer.as_mut().poll(cx));
            self.waiting = false;
        }
        Poll::Ready(waited)
    }
}
