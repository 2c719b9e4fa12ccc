//! Sessions: how many are held in memory, and how much of one is read at a time.

use turnwire_session::{LISTED_PATH_BYTES_MAX, WORKER_DEPTH_MAX};

use super::setting::{number, section};

section! {
    /// Settings of all sessions.
    Session, "session" {
        /// Maximum number of sessions in memory. Beside its events (`stream.rings_bytes`) and messages
        /// (`session.history_cache_bytes`) an idle one costs a few kB, and it is unloaded.
        open_max: usize = "20000", number(1..=10_000_000);
        /// Maximum number of sessions of one principal in memory: a quarter of all. Only sessions with
        /// a turn, a queue or a client count; the next one gets 429.
        open_max_per_owner: usize = "5000", number(1..=10_000_000);
        /// Idle time after which a session without clients and turns is unloaded from memory.
        idle_unload_ms: u64 = "60000", number(10..=86_400_000);
        /// Bytes of the messages that all sessions together keep in memory for their next turns, a
        /// quarter of it for one principal: 3,000 conversations of 20 kB. The next turn of a session
        /// that does not fit reads its messages from the database, which takes about a millisecond.
        history_cache_bytes: usize = "67108864", number(0..=1_099_511_627_776);
        /// Maximum number of workers per turn, in sequence or in parallel: each is a session with
        /// its own model calls, and a person can follow a handful.
        workers_max: usize = "8", number(0..=1_000);
        /// Maximum number of workers at all levels below one user turn: four times the limit of one
        /// turn, so that nested workers cannot multiply without bound.
        workers_all_max: usize = "32", number(0..=10_000);
        /// Maximum nesting depth of workers: each level multiplies what one turn can start.
        worker_depth_max: usize = "3", number(0..=u64::from(WORKER_DEPTH_MAX));
        /// Maximum number of turns of workers that run at the same time, beside `turn.running_max`.
        /// Further workers are refused, and the model goes on without them.
        workers_running_max: usize = "1024", number(1..=1_000_000);
        /// Maximum number of turns of one principal's workers that run at the same time: eight
        /// turns with all of their workers.
        workers_running_max_per_owner: usize = "256", number(1..=1_000_000);
        /// Maximum number of stored `bus.subscriber_*` events of a session, and of its stored
        /// `bus.handler_warning`: together some 400 kB of a session that clients come to for years.
        /// The last one says so; further ones are dropped and counted in
        /// `turnwire_session_bus_events_dropped_total`.
        bus_events_max: u64 = "1000", number(2..=1_000_000);
        /// Interval of checkpoints of streaming messages: the text that a crash may lose.
        checkpoint_ms: u64 = "250", number(10..=60_000);
        /// Maximum size of the metadata of a session or a turn, as JSON, and of a `workspace_path`,
        /// in bytes: labels and ids, not documents. They are kept in memory with their session.
        metadata_max_bytes: usize = "16384", number(64..=LISTED_PATH_BYTES_MAX as u64);
        /// Default page size of messages (S3-008).
        messages_page: usize = "50", number(1..=10_000);
        /// Maximum page size of messages.
        messages_page_max: usize = "200", number(1..=10_000);
        /// Default page size of sessions, turns and tool calls.
        list_page: usize = "50", number(1..=10_000);
        /// Maximum page size of sessions, turns and tool calls.
        list_page_max: usize = "200", number(1..=10_000);
        /// Default page size of events.
        events_page: usize = "200", number(1..=100_000);
        /// Maximum page size of events.
        events_page_max: usize = "1000", number(1..=100_000);
        /// Maximum size of a page of events: a thousand usual events. A page ends before the event
        /// that would exceed it, but has one event at least.
        events_page_bytes: usize = "524288", number(1_024..=67_108_864);
    }
}
