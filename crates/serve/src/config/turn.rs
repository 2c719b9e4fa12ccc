//! Turns: how long one may take, how many may wait, how long a submit can be repeated.

use super::setting::section::section;
use super::setting::value::{list, number};

section! {
    /// Turns.
    Turn, "turn" {
        /// Time after which a turn is cancelled (D-44): longer than any answer a person waits
        /// for.
        timeout_ms: u64 = "600000", number(10..=86_400_000);
        /// How long the end of a turn waits for processes and workers that were told to end: the
        /// 5 s that a process has before it is killed, and what killing takes. Never less than
        /// `tool.grace_ms` and 2 s; for workers 2 s more for each level that may be below.
        stop_wait_ms: u64 = "7000", number(0..=600_000);
        /// Turns that may wait in a session: more than a person types ahead, and few enough that
        /// the last is not forgotten; the next one gets 429.
        queue_max: usize = "8", number(0..=1_000);
        /// How long an Idempotency-Key stands for its turn: a day, so that a client that was
        /// offline over night finds its turn.
        key_ttl_s: u64 = "86400", number(1..=31_536_000);
        /// Kinds of messages (`dm_type`) that are counted by name, between commas; others are
        /// counted as `other`, because each name is a series of its own.
        dm_types: Vec<String> = "", list;
    }
}
