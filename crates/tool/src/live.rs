//! Tasks of the engine that are alive, counted: up when one begins, down when it ends, also when
//! it breaks or is dropped (S1-112).

use turnwire_event::metric;

/// One task that is alive. Put it into the task; it counts until it is dropped.
#[derive(Debug)]
pub struct Live(());

impl Live {
    /// One more.
    pub fn begin() -> Self {
        metrics::gauge!(metric::ENGINE_TASKS_LIVE).increment(1.0);
        Self(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        metrics::gauge!(metric::ENGINE_TASKS_LIVE).decrement(1.0);
    }
}
