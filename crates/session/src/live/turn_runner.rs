//! What runs the turns of all sessions: the producer, the runtime, and the switch that stops new
//! turns when the server drains.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use turnwire_event::port::TurnProducer;

/// Runs the turns of all sessions.
pub(crate) struct TurnRunner {
    pub(crate) producer: Arc<dyn TurnProducer>,
    /// The version of the agent definition that the newest turn was bound to.
    pub(crate) agent_definition: Mutex<String>,
    /// The tasks of running turns and of turns being accepted; a drain waits for them.
    pub(crate) turn_tasks: TaskTracker,
    /// The runtime for tasks that are spawned outside of one, as in `Drop`.
    pub(crate) runtime: Handle,
    draining: AtomicBool,
}

impl TurnRunner {
    pub(crate) fn new(producer: Arc<dyn TurnProducer>, runtime: Handle) -> Self {
        Self {
            producer,
            agent_definition: Mutex::default(),
            turn_tasks: TaskTracker::new(),
            runtime,
            draining: AtomicBool::new(false),
        }
    }

    /// Stops the start of new turns.
    pub(crate) fn start_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether no turn starts any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}
