//! Turns: how long one may take, how many may wait, how long a submit can be repeated.

use turnwire_wire::rest::content::BLOCKS_READ_MAX;

use super::setting::{list, number, section};

section! {
    /// Settings of all turns.
    Turn, "turn" {
        /// Time limit of a turn, after which it is cancelled (D-44): longer than any answer a
        /// person waits for.
        timeout_ms: u64 = "600000", number(10..=86_400_000);
        /// Maximum time in which nothing of a turn happens: no event, and no model call, tool,
        /// sub-agent or worker that has a time limit of its own. Then the turn is cancelled with
        /// `IDLE_TIMEOUT` (D-13): longer than any step of the server itself takes.
        idle_ms: u64 = "120000", number(10..=86_400_000);
        /// How long the end of a turn waits for processes and workers that are being stopped: the
        /// 5 s grace of a process, and the time to kill it. Never less than `tool.grace_ms` plus
        /// 2 s; for workers 2 s more per allowed level below.
        stop_wait_ms: u64 = "7000", number(0..=600_000);
        /// Maximum number of turns that run at the same time, workers aside: each has a model call
        /// and takes about 400 KiB while it streams, with its events in memory: 1,024 take 400 MiB.
        /// The next one gets 429.
        running_max: usize = "1024", number(1..=1_000_000);
        /// Maximum number of turns of one principal that run at the same time, workers aside: as many
        /// as it may have chat streams, and a quarter of all; never more than three quarters. The
        /// next one gets 429; a turn from a queue waits.
        running_max_per_owner: usize = "256", number(1..=1_000_000);
        /// Maximum number of queued turns per session: more than a person types ahead, and few
        /// enough that the last is not forgotten. The next one gets 429.
        queue_max: usize = "8", number(0..=1_000);
        /// Maximum number of queued turns of all sessions: each is held with its whole input, of 1 MiB
        /// at most (`http.body_max_bytes`).
        queued_max: usize = "1024", number(1..=1_000_000);
        /// Maximum number of queued turns of one principal, in all of its sessions. The next one gets
        /// 429.
        queued_max_per_owner: usize = "256", number(1..=1_000_000);
        /// Bytes that the inputs above 64 KiB of all running and queued turns may have together: an
        /// input of 1 MiB takes about 6 MiB while its turn runs, so 64 MiB stay under 400 MiB. The next
        /// turn gets 429.
        inputs_bytes_max: usize = "67108864", number(1_048_576..=1_099_511_627_776);
        /// Bytes of these inputs per principal: a quarter of all, sixteen inputs of 1 MiB at the same
        /// time. An input that is larger takes the whole share.
        inputs_bytes_max_per_owner: usize = "16777216", number(1_048_576..=1_099_511_627_776);
        /// Maximum number of content blocks in a message: a client that sends paragraphs or quotes as
        /// blocks has some dozens. Each block costs about 1 KB while the turn runs: 1,000 are 1 MB, as
        /// much as the text of the largest message.
        message_blocks_max: usize = "1000", number(1..=BLOCKS_READ_MAX as u64);
        /// Lifetime of an `Idempotency-Key`: one day, so that a client that was offline overnight
        /// finds its turn.
        key_ttl_s: u64 = "86400", number(1..=31_536_000);
        /// Maximum number of jobs of schedulers that one principal may make known in its tenant: more
        /// than a crontab has lines. The next one gets 429.
        jobs_max: usize = "256", number(1..=100_000);
        /// Kinds of messages (`dm_type`) with their own metric label, separated by commas; others
        /// are counted as `other`, because each label is a separate series.
        dm_types: Vec<String> = "", list;
    }
}
