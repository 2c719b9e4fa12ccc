//! The store: durability, reserved disk space, retention and the bounds of background work.

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
        /// Maximum number of events that one read looks at to find those that a filter selects:
        /// some ten milliseconds. A page that ends there has a `next`.
        scan_max: usize = "10000", number(100..=1_000_000);
        /// Maximum number of reads of the database at once, each on a thread of its own: more would
        /// only wait for each other inside SQLite.
        read_slots: usize = "16", number(1..=256);
        /// Maximum number of reads of one principal at once: a quarter of all, so that four must
        /// compete before anybody waits for them. A free slot goes to who has the fewest.
        read_slots_per_owner: usize = "4", number(1..=256);
        /// Maximum number of waiting reads of one principal: at a millisecond each the last of them
        /// waits for a quarter of a second. The next one gets 429.
        reads_waiting_per_owner: usize = "1024", number(1..=1_000_000);
        /// Maximum number of writes that the writer has at once from requests of all principals:
        /// four principals at their bound. Events of running turns do not count.
        write_slots: usize = "64", number(1..=4_096);
        /// Maximum number of writes that the writer has at once from requests of one principal: it
        /// commits them together, in a few milliseconds on most disks, and another principal waits
        /// for one such commit at most.
        write_slots_per_owner: usize = "16", number(1..=4_096);
        /// Maximum number of waiting writes of one principal: at 2,000 a second the last of them waits
        /// for half a second. The next one gets 429.
        writes_waiting_per_owner: usize = "1024", number(1..=1_000_000);
        /// Maximum number of writes above 64 KiB that the writer has at once from requests, one of
        /// them per principal: a megabyte takes as long as hundreds of small writes.
        large_write_slots: usize = "4", number(1..=4_096);
        /// Retention time of events: 30 days (D-43).
        retention_s: u64 = "2592000", number(1..=3_153_600_000);
        /// Retention time of the audit: a year, so that a yearly review finds all of it. A record takes
        /// some 300 bytes: a million turns of schedulers a year are 300 MB. A job that did not fire for
        /// so long is forgotten with them, unless it is paused.
        audit_retention_s: u64 = "31536000", number(1..=3_153_600_000);
        /// Interval of the retention sweep.
        retention_sweep_ms: u64 = "3600000", number(100..=86_400_000);
        /// Longest work of one piece of retention, removal or vacuum before its commit: writes wait
        /// for one piece at most, and pieces take a fifth of the writer's time.
        piece_ms: u64 = "10", number(1..=1_000);
        /// Bytes removed in one piece: 4 MiB are about 1,000 pages to free.
        piece_bytes: u64 = "4194304", number(4_096..=268_435_456);
        /// Free space that the database file keeps for new events; more is given back to the disk.
        free_bytes_max: u64 = "4194304", number(0..=1_099_511_627_776);
        /// Interval at which what deleted sessions and expired events have left in unused parts of the
        /// database file and in the write-ahead log is overwritten: an hour is soon enough for a
        /// deletion, and one pass reads the file once. A pass runs only if something was removed.
        erase_ms: u64 = "3600000", number(100..=86_400_000);
        /// Size of the write-ahead log above which it starts again, also while reads overlap: large
        /// enough that checkpoints are rare, small enough that a start after a crash is fast.
        wal_bytes_max: u64 = "33554432", number(1_048_576..=4_294_967_296);
    }
}
