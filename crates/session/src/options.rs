//! Settings of the session service, with their default values.

use std::time::Duration;

use turnwire_log::PieceBudget;

use crate::metering::quota::QuotaLimits;

/// How long a turn waits for its aborted producer to end; then the turn ends without the producer.
/// The turn's emitter accepts no event of the producer after the abort, so the value has no effect
/// on the log.
pub(crate) const PRODUCER_STOP_WAIT: Duration = Duration::from_secs(1);

/// Settings of the [`SessionService`](crate::SessionService).
#[derive(Clone, Debug)]
pub struct Options {
    /// Direct-message types with a metric series of their own; others are counted as `other`.
    pub dm_types: Vec<String>,
    /// The quotas of each principal.
    pub principal_quota: QuotaLimits,
    /// The quotas of each tenant.
    pub tenant_quota: QuotaLimits,
    /// The longest time that a turn may run; then it is cancelled (D-44).
    pub turn_timeout: Duration,
    /// The longest time without an event while nothing of the turn runs that has a time limit of its
    /// own; then it is cancelled (D-13, D-44).
    pub turn_idle: Duration,
    /// How long a turn that ends waits for its processes and workers to stop.
    pub stop_wait: Duration,
    /// Released events that a session keeps in memory; older ones are read from the store.
    pub ring_events: usize,
    /// Bytes of released events that a session keeps in memory.
    pub ring_bytes: usize,
    /// Bytes of released events and their frames that all sessions keep in memory.
    pub rings_bytes: usize,
    /// Bytes of the messages that all sessions keep in memory for their next turns.
    pub history_cache_bytes: usize,
    /// Reads of the store at once, each on a thread of its own.
    pub read_slots: usize,
    /// Reads of one owner's requests at once, and as many of its turns.
    pub read_slots_per_owner: usize,
    /// Reads of one owner's requests that wait for a slot, and as many of its turns.
    pub reads_waiting_per_owner: usize,
    /// Writes of requests that the writer has at once.
    pub write_slots: usize,
    /// Writes of one owner's requests that the writer has at once.
    pub write_slots_per_owner: usize,
    /// Writes of one owner's requests that wait for a slot.
    pub writes_waiting_per_owner: usize,
    /// The most bytes that the inputs of all running and queued turns have together.
    pub inputs_bytes_max: usize,
    /// The most of these bytes that one owner has.
    pub inputs_bytes_max_per_owner: usize,
    /// The most large writes of requests that the writer has at once; an owner has one of them.
    pub large_write_slots: usize,
    /// Bytes of events that a replay reads at once; a single event may be larger.
    pub replay_bytes: usize,
    /// Events that one read of the log looks at to find those that a filter selects.
    pub scan_max: usize,
    /// A session without watching clients and open turns is unloaded from memory after this time.
    pub idle_unload: Duration,
    /// Sessions in memory at once.
    pub open_max: usize,
    /// Sessions of one owner in memory at once.
    pub open_max_per_owner: usize,
    /// Turns that run at once, workers aside.
    pub running_max: usize,
    /// Turns of one owner that run at once, workers aside.
    pub running_max_per_owner: usize,
    /// Queued turns of one session, each of which is stored with its whole input.
    pub queue_max: usize,
    /// Queued turns of all sessions.
    pub queued_max: usize,
    /// Queued turns of all sessions of one owner.
    pub queued_max_per_owner: usize,
    /// Turns of workers that run at once.
    pub workers_running_max: usize,
    /// Turns of the workers of one owner that run at once.
    pub workers_running_max_per_owner: usize,
    /// Workers that one turn may start in all, in parallel or in sequence. Each is a session.
    pub workers_max: usize,
    /// Workers that one turn of a user's session may start in all, including the workers of its
    /// workers.
    pub workers_all_max: usize,
    /// Levels of workers below a user's session. At the lowest level a worker can start no workers.
    pub worker_depth_max: usize,
    /// Stored `bus.subscriber_*` events of one session, and as many `bus.handler_warning`.
    pub bus_events_max: u64,
    /// How long an idempotency key refers to its turn.
    pub idempotency_ttl: Duration,
    /// Interval between checkpoints of streaming messages: a crash loses at most the text of one
    /// interval.
    pub checkpoint_interval: Duration,
    /// Age at which events are removed from the log.
    pub retention: Duration,
    /// Interval between removals of events older than [`retention`](Self::retention).
    pub retention_interval: Duration,
    /// Age at which records of the audit are removed, and jobs forgotten that did not fire since.
    pub audit_retention: Duration,
    /// Jobs of a tenant that one principal may make known by starting turns of them.
    pub jobs_max: usize,
    /// The bounds of one piece of background work: retention, removal of deleted sessions, vacuum.
    pub piece: PieceBudget,
    /// Free bytes that the database file keeps for reuse; more are given back.
    pub free_bytes_max: u64,
    /// Interval at which what removed rows have left in the files is overwritten.
    pub erase_interval: Duration,
    /// The model reported for a session before its first turn.
    pub default_model: String,
    /// The version of the routing policy until
    /// [`reload_routing_policy`](crate::SessionService::reload_routing_policy) sets another.
    pub routing_policy_version: String,
}

/// The time for a worker to commit its terminal after everything that it started has stopped, also
/// on a slow machine.
const WORKER_SLACK: Duration = Duration::from_secs(1);

impl Options {
    /// The time that a turn of a session at `depth` waits for its workers in addition to
    /// [`stop_wait`](Self::stop_wait). All levels below stop at the same moment with the same
    /// bounds, and the terminals of workers precede the terminal of their parent (S3-081).
    pub(crate) fn extra_worker_wait(&self, depth: usize) -> Duration {
        let levels_below = self.worker_depth_max.saturating_sub(depth);
        (PRODUCER_STOP_WAIT + WORKER_SLACK) * u32::try_from(levels_below).unwrap_or(u32::MAX)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dm_types: Vec::new(),
            principal_quota: QuotaLimits::default(),
            tenant_quota: QuotaLimits::default(),
            turn_timeout: Duration::from_secs(600),
            turn_idle: Duration::from_secs(120),
            stop_wait: Duration::from_secs(7),
            ring_events: 4096,
            ring_bytes: 4 << 20,
            rings_bytes: 256 << 20,
            history_cache_bytes: 64 << 20,
            read_slots: 16,
            read_slots_per_owner: 4,
            reads_waiting_per_owner: 1_024,
            write_slots: 64,
            write_slots_per_owner: 16,
            writes_waiting_per_owner: 1_024,
            large_write_slots: 4,
            inputs_bytes_max: 64 << 20,
            inputs_bytes_max_per_owner: 16 << 20,
            replay_bytes: 256 << 10,
            scan_max: 10_000,
            idle_unload: Duration::from_secs(60),
            open_max: 20_000,
            open_max_per_owner: 5_000,
            running_max: 1_024,
            running_max_per_owner: 256,
            queue_max: 8,
            queued_max: 1_024,
            queued_max_per_owner: 256,
            workers_running_max: 1_024,
            workers_running_max_per_owner: 256,
            workers_max: 8,
            workers_all_max: 32,
            worker_depth_max: 3,
            bus_events_max: 1_000,
            idempotency_ttl: Duration::from_secs(24 * 3600),
            checkpoint_interval: Duration::from_millis(250),
            retention: Duration::from_secs(30 * 24 * 3600),
            retention_interval: Duration::from_secs(3600),
            audit_retention: Duration::from_secs(365 * 24 * 3600),
            jobs_max: 256,
            piece: PieceBudget::default(),
            free_bytes_max: 4 << 20,
            erase_interval: Duration::from_secs(3600),
            default_model: "scripted:default".into(),
            routing_policy_version: "builtin-1".into(),
        }
    }
}
