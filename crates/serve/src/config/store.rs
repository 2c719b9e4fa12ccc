//! The store: durability, reserved disk space and retention.

use super::setting::{choice, number, section};

/// When an event counts as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilitySetting {
    /// When the event is on disk.
    Full,
    /// When the operating system has it; a power loss may lose the last events.
    Relaxed,
}

const DURABILITY: &[(&str, DurabilitySetting)] = &[
    ("full", DurabilitySetting::Full),
    ("relaxed", DurabilitySetting::Relaxed),
];

section! {
    /// Settings of the store.
    Store, "store" {
        /// `full`: no client sees an event before it is on disk. `relaxed`: faster on slow disks,
        /// but a power loss may lose the last events.
        durability: DurabilitySetting = "full", choice(DURABILITY);
        /// Disk space reserved so that running turns can end when the disk is full.
        reserve_bytes: u64 = "16777216", number(0..=1_073_741_824);
        /// Retention time of events: 30 days (D-43).
        retention_s: u64 = "2592000", number(1..=3_153_600_000);
        /// Interval of the retention sweep.
        retention_sweep_ms: u64 = "3600000", number(100..=86_400_000);
    }
}
