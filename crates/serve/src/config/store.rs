//! The store: how durable, how much room is kept back, how long events live.

use super::setting::section::section;
use super::setting::value::{choice, number};

/// When an event counts as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the disk.
    Full,
    /// When the system has it; power loss may cost the last moments.
    Relaxed,
}

const DURABILITY: &[(&str, Durability)] =
    &[("full", Durability::Full), ("relaxed", Durability::Relaxed)];

section! {
    /// The store.
    Store, "store" {
        /// `full`: nobody sees an event before it is on the disk. `relaxed`: faster on slow
        /// disks, and power loss may cost the last moments.
        durability: Durability = "full", choice(DURABILITY);
        /// Bytes kept back so that running turns can end when the disk is full.
        reserve_bytes: u64 = "16777216", number(0..=1_073_741_824);
        /// How old events may get: 30 days (D-43).
        retention_s: u64 = "2592000", number(1..=3_153_600_000);
        /// How often old events are looked for.
        retention_sweep_ms: u64 = "3600000", number(100..=86_400_000);
    }
}
