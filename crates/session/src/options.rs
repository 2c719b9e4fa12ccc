//! Settings of sessions, with the numbers in force unless the operator says otherwise.

use std::time::Duration;

/// How long a stopped producer may take to let go before the turn is ended without it. Its
/// events are refused from the first moment on, so nothing depends on this but tidiness.
pub(crate) const LET_GO: Duration = Duration::from_secs(1);

/// How sessions behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kinds of messages that are counted by name; others are counted as `other`.
    pub dm_types: Vec<String>,
    /// A turn that takes longer is cancelled (D-44).
    pub turn_timeout: Duration,
    /// How long a turn's end waits for processes and workers that were told to end.
    pub stop_wait: Duration,
    /// How long an attach token is good for (D-39).
    pub token_ttl: Duration,
    /// Attach tokens outstanding: each is 100 bytes, so this bounds a flood at 10 MB.
    pub tokens_max: usize,
    /// Released events kept in memory a session; what is older is read from the store.
    pub ring_events: usize,
    /// Bytes of them.
    pub ring_bytes: usize,
    /// A session nobody watches and nothing runs in leaves memory after this.
    pub idle_unload: Duration,
    /// Sessions held in memory.
    pub open_max: usize,
    /// Turns that may wait in one session: each is kept with its whole input.
    pub queue_max: usize,
    /// Workers that one turn may have, one after the other or at once: each is a session.
    pub workers_max: usize,
    /// Workers at every level under one turn of a person: it bounds what one message can start.
    pub workers_all_max: usize,
    /// How deep workers of workers may go: each level multiplies what a turn may start.
    pub worker_depth_max: usize,
    /// How long the key of a submit stands for its turn.
    pub idempotency_ttl: Duration,
    /// How often messages in flight are checkpointed: what a crash may cost of their text.
    pub checkpoint: Duration,
    /// How old events may get.
    pub retention: Duration,
    /// How often old events are looked for.
    pub retention_sweep: Duration,
    /// The model of sessions that have had no turn.
    pub default_model: String,
    /// The routing policy in force at the start.
    pub routing_policy_version: String,
}

/// What a worker's end may take beyond the bounds of its own stop: its terminal has to become
/// durable, and the machine may be slow.
const WORKER_SLACK: Duration = Duration::from_secs(1);

impl Options {
    /// How much longer than `stop_wait` a turn of a session so deep waits for its workers. They
    /// are told to stop in the same moment and have the same bounds, at every level below: their
    /// terminals stand before its own (S3-081).
    pub(crate) fn worker_wait(&self, depth: usize) -> Duration {
        let below = self.worker_depth_max.saturating_sub(depth);
        (LET_GO + WORKER_SLACK) * u32::try_from(below).unwrap_or(u32::MAX)
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
