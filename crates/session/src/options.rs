//! Settings of the session service, with their default values.

use std::time::Duration;

/// How long an aborted producer may take to end before its turn ends without it. The turn's
/// emitter refuses its events from the start of this time, so no event depends on the value.
pub(crate) const PRODUCER_STOP_WAIT: Duration = Duration::from_secs(1);

/// Settings of the [`SessionService`](crate::SessionService).
#[derive(Clone, Debug)]
pub struct Options {
    /// Direct-message types with a metric series of their own; others are counted as `other`.
    pub dm_types: Vec<String>,
    /// A turn that runs longer is cancelled (D-44).
    pub turn_timeout: Duration,
    /// How long the end of a turn waits for processes and workers that were told to stop.
    pub stop_wait: Duration,
    /// Lifetime of an attach token (D-39).
    pub token_ttl: Duration,
    /// Unused attach tokens at once: each is 100 bytes, so the default bounds a flood at 10 MB.
    pub tokens_max: usize,
    /// Released events that a session keeps in memory; older ones are read from the store.
    pub ring_events: usize,
    /// Bytes of released events that a session keeps in memory.
    pub ring_bytes: usize,
    /// A session without watchers and turns is unloaded from memory after this time.
    pub idle_unload: Duration,
    /// Sessions in memory at once.
    pub open_max: usize,
    /// Queued turns of one session: each is stored with its whole input.
    pub queue_max: usize,
    /// Workers that one turn may start, at once or one after the other: each is a session.
    pub workers_max: usize,
    /// Workers at every level below one turn of a person: bounds what one message can start.
    pub workers_all_max: usize,
    /// Levels of workers below a person's session: each level multiplies what a turn may start.
    pub worker_depth_max: usize,
    /// How long an idempotency key refers to its turn.
    pub idempotency_ttl: Duration,
    /// Interval between checkpoints of messages in flight: a crash loses at most this much text.
    pub checkpoint: Duration,
    /// Age at which events are removed.
    pub retention: Duration,
    /// Interval between searches for events older than [`retention`](Self::retention).
    pub retention_sweep: Duration,
    /// The model reported for a session before its first turn.
    pub default_model: String,
    /// The version of the routing policy at the start.
    pub routing_policy_version: String,
}

/// Time that a worker's end may take beyond the bounds of its own stop: its terminal must become
/// durable, and the machine may be slow.
const WORKER_SLACK: Duration = Duration::from_secs(1);

impl Options {
    /// How much longer than [`stop_wait`](Self::stop_wait) a turn of a session at `depth` waits for its workers. All
    /// levels below are stopped in the same moment with the same bounds, and the terminals of
    /// workers precede the terminal of their parent (S3-081).
    pub(crate) fn worker_wait(&self, depth: usize) -> Duration {
        let levels_below = self.worker_depth_max.saturating_sub(depth);
        (PRODUCER_STOP_WAIT + WORKER_SLACK) * u32::try_from(levels_below).unwrap_or(u32::MAX)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dm_types: Vec::new(),
            turn_timeout: Duration::from_secs(600),
            stop_wait: Duration::from_secs(7),
            token_ttl: Duration::from_secs(60),
            tokens_max: 100_000,
            ring_events: 4096,
            ring_bytes: 4 << 20,
            idle_unload: Duration::from_secs(60),
            open_max: 20_000,
            queue_max: 8,
            workers_max: 8,
            workers_all_max: 32,
            worker_depth_max: 3,
            idempotency_ttl: Duration::from_secs(24 * 3600),
            checkpoint: Duration::from_millis(250),
            retention: Duration::from_secs(30 * 24 * 3600),
            retention_sweep: Duration::from_secs(3600),
            default_model: "scripted:default".into(),
            routing_policy_version: "builtin-1".into(),
        }
    }
}
