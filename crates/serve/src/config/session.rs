//! Sessions: how many are held in memory, and how much of one is read at a time.

use turnwire_session::WORKER_DEPTH_MAX;

use super::section::section;
use super::value::number;

section! {
    /// Sessions.
    Session, "session" {
        /// Sessions held in memory at once; idle ones cost a few kB and leave by themselves.
        open_max: usize = "20000", number(1..=10_000_000);
        /// Time after which a session that nobody watches and nothing runs in leaves memory.
        idle_unload_ms: u64 = "60000", number(10..=86_400_000);
        /// Workers that one turn may have, one after the other or at once: each is a session with
        /// model calls of its own, and a handful is what a person can follow.
        workers_max: usize = "8", number(0..=1_000);
        /// Workers at every level under one turn of a person: four times what one turn may have,
        /// so that workers of workers cannot multiply without end.
        workers_all_max: usize = "32", number(0..=10_000);
        /// How deep workers may have workers: each level multiplies what one turn can start.
        worker_depth_max: usize = "3", number(0..=u64::from(WORKER_DEPTH_MAX));
        /// How often messages in flight are stored: what a crash may cost of their text.
        checkpoint_ms: u64 = "250", number(10..=60_000);
        /// Messages a page when nobody says how many (S3-008).
        messages_page: usize = "50", number(1..=10_000);
        /// Messages a page at most.
        messages_page_max: usize = "200", number(1..=10_000);
        /// Sessions, turns or tool calls a page when nobody says how many.
        list_page: usize = "50", number(1..=10_000);
        /// Sessions, turns or tool calls a page at most.
        list_page_max: usize = "200", number(1..=10_000);
        /// Events a page when nobody says how many.
        events_page: usize = "200", number(1..=100_000);
        /// Events a page at most: about 500 kB of answer.
        events_page_max: usize = "1000", number(1..=100_000);
    }
}
