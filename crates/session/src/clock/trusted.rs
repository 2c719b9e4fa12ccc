//! The time by which stored data expires. The wall clock alone decides no removal: it may be wrong
//! for a moment, and what is removed is gone.
//!
//! ```text
//!   trusted(t) = min(wall clock, last trusted time + time that passed since)
//!                                                     └─ monotonic clock, or the machine's uptime
//!                                                        where that was longer (suspend, restart)
//! ```
//!
//! A clock that leaps ahead moves the trusted time by nothing, so that data is kept longer, until the
//! operator confirms the time. A clock that is set back takes the trusted time with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::{Clock, Timestamp};
use turnwire_log::{ClockMark, Maintenance, ReadError, Uptime};

use super::machine_uptime;

/// The lead of the wall clock that is reported, unless a tenth of the retention is less.
const LEAP_MAX: Duration = Duration::from_secs(3600);
/// The least lead that is reported: restarts and corrections of the clock stay below.
const LEAP_MIN: Duration = Duration::from_secs(10);

/// The interval between two stored marks, other than a confirmed one.
const MARK_EVERY: Duration = Duration::from_secs(60);

/// A clock that advances no faster than time has passed.
pub(crate) struct TrustedClock {
    clock: Arc<dyn Clock>,
    uptime: fn() -> Option<Uptime>,
    /// The lead of the wall clock that is reported.
    leap: Duration,
    state: Mutex<TrustedState>,
}

/// A trusted time, and the readings from which the time since is measured.
struct TrustedState {
    anchor: Timestamp,
    at: Instant,
    uptime: Option<Uptime>,
    /// The trusted time of the last sweep.
    swept: Timestamp,
    /// The lead that was reported.
    reported: Duration,
    /// When the last mark was taken.
    marked: Instant,
}

impl TrustedState {
    /// The latest time that can be trusted, without the uptime.
    fn limit(&self) -> Timestamp {
        after(self.anchor, self.at.elapsed())
    }
}

fn after(time: Timestamp, passed: Duration) -> Timestamp {
    let passed = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_add(passed))
}

/// The time between two readings of one boot; 0 if they are of different boots.
fn passed(from: Option<Uptime>, to: Option<Uptime>) -> Duration {
    match (from, to) {
        (Some(from), Some(to)) if from.boot == to.boot => {
            let millis = to.millis.saturating_sub(from.millis);
            Duration::from_millis(u64::try_from(millis).unwrap_or(0))
        }
        _ => Duration::ZERO,
    }
}

impl TrustedClock {
    /// Continues from the mark in `store`. A store without one is trusted up to its newest event, a
    /// new store up to now.
    pub(crate) fn load(
        clock: Arc<dyn Clock>,
        store: &(impl Maintenance + ?Sized),
        retention: Duration,
    ) -> Result<Self, ReadError> {
        Self::load_at(clock, store, retention, machine_uptime)
    }

    fn load_at(
        clock: Arc<dyn Clock>,
        store: &(impl Maintenance + ?Sized),
        retention: Duration,
        uptime: fn() -> Option<Uptime>,
    ) -> Result<Self, ReadError> {
        let (wall, running) = (clock.now(), uptime());
        let mark = store.clock_mark()?;
        let (limit, swept) = match &mark {
            Some(mark) => (
                after(mark.trusted, passed(mark.uptime, running)),
                mark.swept,
            ),
            None => {
                let newest = store.newest_event_time()?.unwrap_or(wall);
                (newest, newest)
            }
        };
        let anchor = limit.min(wall);
        Ok(Self {
            clock,
            uptime,
            leap: (retention / 10).clamp(LEAP_MIN, LEAP_MAX),
            state: Mutex::new(TrustedState {
                anchor,
                at: Instant::now(),
                uptime: running,
                swept: swept.min(anchor),
                reported: Duration::ZERO,
                marked: Instant::now(),
            }),
        })
    }

    /// The latest time by which data may expire now.
    pub(crate) fn now(&self) -> Timestamp {
        self.state.lock().limit().min(self.clock.now())
    }

    /// Measures the time again, follows a clock that was set back, and reports a clock that leapt
    /// ahead. Called periodically.
    pub(crate) fn check(&self) {
        let (wall, running) = (self.clock.now(), (self.uptime)());
        let mut state = self.state.lock();
        let by_uptime = after(state.anchor, passed(state.uptime, running));
        let limit = state.limit().max(by_uptime);
        // A new anchor only where it matters: each one rounds.
        if wall < limit || by_uptime > state.limit() {
            state.anchor = limit.min(wall);
            state.at = Instant::now();
            state.uptime = running;
        }
        let trusted = limit.min(wall);
        let lead = Duration::from_millis(wall.ms_since(trusted));
        if lead < self.leap {
            state.reported = Duration::ZERO;
        } else if lead >= state.reported + self.leap {
            state.reported = lead;
            tracing::warn!(
                clock = %wall,
                trusted = %trusted,
                "the clock is ahead of the time that passed since this data was last served: until you \
                 confirm it, events expire by the trusted time and are kept longer. If the clock is \
                 right, run `turnwire retention confirm`; if not, set the clock"
            );
        }
    }

    /// Trusts `time`, which the operator has confirmed, unless the wall clock is behind it.
    pub(crate) fn confirm(&self, time: Timestamp) -> Timestamp {
        let mut state = self.state.lock();
        state.anchor = time.min(self.clock.now());
        state.at = Instant::now();
        state.uptime = (self.uptime)();
        state.reported = Duration::ZERO;
        state.anchor
    }

    /// True if the last sweep is `interval` ago; the next one counts from now.
    pub(crate) fn begin_sweep(&self, interval: Duration) -> bool {
        let now = self.now();
        let mut state = self.state.lock();
        // After the clock was set back the last sweep may be in the future.
        state.swept = state.swept.min(now);
        let is_due = u128::from(now.ms_since(state.swept)) >= interval.as_millis();
        if is_due {
            state.swept = now;
        }
        is_due
    }

    /// True if the stored mark is old: a crash loses the time since.
    pub(crate) fn is_mark_due(&self) -> bool {
        self.state.lock().marked.elapsed() >= MARK_EVERY
    }

    /// The mark to store.
    pub(crate) fn mark(&self) -> ClockMark {
        let now = self.now();
        let uptime = (self.uptime)();
        let mut state = self.state.lock();
        state.marked = Instant::now();
        ClockMark {
            trusted: now,
            swept: state.swept.min(now),
            uptime,
        }
    }
}

#[cfg(test)]
mod tests;
