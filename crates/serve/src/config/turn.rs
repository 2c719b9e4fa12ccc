//! Turns: how long one may take, how many may wait, how long a submit can be repeated.

use super::setting::{list, number, section};

section! {
    /// Settings of all turns.
    Turn, "turn" {
        /// Time limit of a turn, after which it is cancelled (D-44): longer than any answer a
        /// person waits for.
        timeout_ms: u64 = "600000", number(10..=86_400_000);
        /// How long the end of a turn waits for processes and workers that are being stopped: the
        /// 5 s grace of a process, and the time to kill it. Never less than `tool.grace_ms` plus
        /// 2 s; for workers 2 s more per allowed level below.
        stop_wait_ms: u64 = "7000", number(0..=600_000);
        /// Maximum number of queued turns per session: more than a person types ahead, and few
        /// enough that the last is not forgotten. The next one gets 429.
        queue_max: usize = "8", number(0..=1_000);
        /// Lifetime of an `Idempotency-Key`: one day, so that a client that was offline overnight
        /// finds its turn.
        key_ttl_s: u64 = "86400", number(1..=31_536_000);
        /// Kinds of messages (`dm_type`) with their own metric label, separated by commas; others
        /// are counted as `other`, because each label is a separate series.
        dm_types: Vec<String> = "", list;
    }
}
