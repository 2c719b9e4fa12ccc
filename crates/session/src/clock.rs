//! The clock file: the one place that reads the wall clock and makes identifiers.

use turnwire_event::{Clock, Mint, Timestamp, Ulid};

/// The system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock file")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_millis(
            since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

/// Identifiers from UUIDv7 bits: unique across processes, rising within one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemMint;

impl Mint for SystemMint {
    fn ulid(&self) -> Ulid {
        Ulid(uuid::Uuid::now_v7().as_u128())
    }
}
