//! The clock file: the only place that reads the wall clock and generates identifiers.

use turnwire_event::{Clock, IdGenerator, Timestamp, Ulid};

/// A [`Clock`] that reads the wall clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock file")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_millis(
            since_epoch.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

/// An [`IdGenerator`] of identifiers from UUIDv7 bits: unique across processes, increasing within one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIdGenerator;

impl IdGenerator for SystemIdGenerator {
    fn ulid(&self) -> Ulid {
        Ulid(uuid::Uuid::now_v7().as_u128())
    }
}
