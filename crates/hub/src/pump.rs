//! The pump: one task that wakes the viewers of every ring that has news, so that publishing
//! costs the publisher the same whether nobody or a thousand watch.

use std::sync::Arc;

use tokio::sync::mpsc;

/// Something with viewers to wake.
pub(crate) trait Wake: Send + Sync {
    /// Wakes them all.
    fn wake(&self);
}

/// Hands rings to the pump. The receiving end is the pump's task; it ends when the last handle
/// is dropped. A ring is in the queue at most once, so the queue is bounded by the open rings.
#[derive(Clone)]
pub struct Pump {
    queue: mpsc::UnboundedSender<Arc<dyn Wake>>,
}

impl Pump {
    /// Starts the task on the current runtime.
    pub fn start() -> Self {
        let (queue, mut due) = mpsc::unbounded_channel::<Arc<dyn Wake>>();
        tokio::spawn(async move {
            while let Some(ring) = due.recv().await {
                ring.wake();
            }
        });
        Self { queue }
    }

    pub(crate) fn push(&self, ring: Arc<dyn Wake>) {
        // Only a runtime that is going away has no pump; then nobody is left to wake.
        let _ = self.queue.send(ring);
    }
}

impl std::fmt::Debug for Pump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pump")
    }
}
