//! The trusted clock over a store in memory and a clock that is set by hand.

use std::sync::atomic::{AtomicI64, Ordering};

use turnwire_log::{AppendError, PieceBudget, Progress};

use super::*;

const DAY_MS: i64 = 24 * 3600 * 1000;
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Default)]
struct HandClock(AtomicI64);

impl HandClock {
    fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Default)]
struct MarkStore {
    mark: Option<ClockMark>,
    newest: Option<Timestamp>,
}

#[rustfmt::skip]
impl Maintenance for MarkStore {
    fn remove_deleted(&self, _: &PieceBudget) -> Result<Progress, AppendError> { Ok(Progress::Done) }
    fn release_pages(&self, _: u64, _: &PieceBudget) -> Result<Progress, AppendError> { Ok(Progress::Done) }
    fn erase_removed(&self, _: &PieceBudget) -> Result<Progress, AppendError> { Ok(Progress::Done) }
    fn clock_mark(&self) -> Result<Option<ClockMark>, ReadError> { Ok(self.mark) }
    fn set_clock_mark(&self, _: &ClockMark) -> Result<(), AppendError> { Ok(()) }
    fn newest_event_time(&self) -> Result<Option<Timestamp>, ReadError> { Ok(self.newest) }
}

fn load(clock: &Arc<HandClock>, store: &MarkStore, uptime: fn() -> Option<Uptime>) -> TrustedClock {
    let loaded = TrustedClock::load_at(clock.clone(), store, RETENTION, uptime);
    loaded.expect("a clock")
}

/// Days since the epoch of the trusted time; tests run for less than a day.
fn days(clock: &TrustedClock) -> i64 {
    clock.now().as_millis() / DAY_MS
}

fn mark(day: i64, uptime: Option<Uptime>) -> MarkStore {
    let time = Timestamp::from_millis(day * DAY_MS);
    MarkStore {
        mark: Some(ClockMark {
            trusted: time,
            swept: time,
            uptime,
        }),
        newest: None,
    }
}

#[test]
fn leap_of_the_clock_moves_nothing_until_confirmed() {
    let wall = Arc::new(HandClock::default());
    wall.set(100 * DAY_MS);
    let clock = load(&wall, &MarkStore::default(), || None);
    assert_eq!(days(&clock), 100, "a new store trusts the clock");
    wall.set(140 * DAY_MS);
    clock.check();
    assert_eq!(days(&clock), 100);
    assert!(!clock.begin_sweep(Duration::from_secs(3600)));
    assert_eq!(clock.mark().trusted.as_millis() / DAY_MS, 100);
    clock.confirm(Timestamp::from_millis(140 * DAY_MS));
    assert_eq!(days(&clock), 140);
    assert!(clock.begin_sweep(Duration::from_secs(3600)));
    clock.confirm(Timestamp::from_millis(999 * DAY_MS));
    assert_eq!(days(&clock), 140, "never ahead of the wall clock");
}

#[test]
fn clock_that_was_set_back_is_followed() {
    let wall = Arc::new(HandClock::default());
    wall.set(140 * DAY_MS);
    let clock = load(&wall, &MarkStore::default(), || None);
    wall.set(100 * DAY_MS);
    clock.check();
    wall.set(140 * DAY_MS);
    clock.check();
    assert_eq!(days(&clock), 100, "events of day 100 are not 40 days old");
    assert!(!clock.begin_sweep(Duration::from_secs(3600)));
}

#[test]
fn start_trusts_the_mark_and_the_uptime_of_one_boot() {
    let up = |boot, millis| Some(Uptime { boot, millis });
    let wall = Arc::new(HandClock::default());
    wall.set(140 * DAY_MS);
    let now: fn() -> Option<Uptime> = || {
        Some(Uptime {
            boot: 7,
            millis: 5 * DAY_MS,
        })
    };
    let started = |stored| days(&load(&wall, &mark(100, stored), now));
    assert_eq!(started(None), 100);
    assert_eq!(started(up(8, 2 * DAY_MS)), 100, "another boot");
    assert_eq!(started(up(7, 2 * DAY_MS)), 103, "three days of uptime");
    assert_eq!(started(up(7, 9 * DAY_MS)), 100, "never less than the mark");
    wall.set(101 * DAY_MS);
    assert_eq!(started(up(7, 2 * DAY_MS)), 101, "never ahead of the clock");
}

#[test]
fn store_without_a_mark_is_trusted_up_to_its_newest_event() {
    let wall = Arc::new(HandClock::default());
    wall.set(140 * DAY_MS);
    let store = MarkStore {
        mark: None,
        newest: Some(Timestamp::from_millis(100 * DAY_MS)),
    };
    assert_eq!(days(&load(&wall, &store, || None)), 100);
}
