//! The gauge of running engine tasks. It also falls when a task panics or is dropped (S1-112).

use turnwire_event::metric;

/// One running task. Move it into the task: the gauge counts it until it is dropped.
#[derive(Debug)]
pub struct LiveTask(());

impl LiveTask {
    /// Counts one more task.
    pub fn begin() -> Self {
        metrics::gauge!(metric::ENGINE_TASKS_LIVE).increment(1.0);
        Self(())
    }
}

impl Drop for LiveTask {
    fn drop(&mut self) {
        metrics::gauge!(metric::ENGINE_TASKS_LIVE).decrement(1.0);
    }
}
