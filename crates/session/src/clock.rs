//! The clock file: the only place that reads the wall clock and generates identifiers.

pub(crate) mod trusted;

use turnwire_event::{Clock, IdGenerator, Timestamp, Ulid};
use turnwire_log::Uptime;

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

/// The time since the boot of the machine, as Linux tells it; `None` elsewhere. No change of the wall
/// clock moves it, and it goes on while no server runs.
pub(crate) fn machine_uptime() -> Option<Uptime> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some(Uptime {
        boot: u64::from_str_radix(digits.get(..16)?, 16)
            .ok()?
            .cast_signed(),
        millis: (seconds * 1e3) as i64,
    })
}

/// An [`IdGenerator`] of identifiers from UUIDv7 bits: unique across processes, increasing within one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIdGenerator;

impl IdGenerator for SystemIdGenerator {
    fn ulid(&self) -> Ulid {
        Ulid(uuid::Uuid::now_v7().as_u128())
    }
}
