//! The task that wakes the connections of rings with many waiters, so that publishing an event
//! costs the publisher the same whether no client or a thousand clients are connected.

use std::sync::Arc;

use tokio::sync::mpsc;

/// A ring, as the pump's task sees it: independent of the type of its state.
pub(crate) trait WakeWaiters: Send + Sync {
    fn wake_waiters(&self);
}

/// A handle to the task that wakes the waiters of rings.
///
/// The task owns the receiving end of the queue and ends when the last handle is dropped. A ring
/// is in the queue at most once, so the number of open rings bounds the queue.
#[derive(Clone)]
pub struct WakePump {
    queue: mpsc::UnboundedSender<Arc<dyn WakeWaiters>>,
}

impl WakePump {
    /// Spawns the task on the current runtime.
    pub fn start() -> Self {
        let (queue, mut queued) = mpsc::unbounded_channel::<Arc<dyn WakeWaiters>>();
        tokio::spawn(async move {
            while let Some(ring) = queued.recv().await {
                ring.wake_waiters();
            }
        });
        Self { queue }
    }

    pub(crate) fn push(&self, ring: Arc<dyn WakeWaiters>) {
        // The send fails only while the runtime shuts down; then no connection is left to wake.
        let _ = self.queue.send(ring);
    }
}

impl std::fmt::Debug for WakePump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pump")
    }
}
