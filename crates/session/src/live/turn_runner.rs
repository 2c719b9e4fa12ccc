//! What runs the turns of all sessions: the producer, the runtime, and the switch that stops new
//! turns when the server drains.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use turnwire_event::port::TurnProducer;

use crate::error::SharedResource;
use crate::options::Options;
use crate::submit::input_bytes::InputBytes;
use crate::submit::owner_limit::OwnerLimit;

/// Runs the turns of all sessions.
pub(crate) struct TurnRunner {
    pub(crate) producer: Arc<dyn TurnProducer>,
    /// The version of the agent definition that the newest turn was bound to.
    pub(crate) agent_definition: Mutex<String>,
    /// The tasks of running turns and of turns being accepted; a drain waits for them.
    pub(crate) turn_tasks: TaskTracker,
    /// The runtime for tasks that are spawned outside of one, as in `Drop`.
    pub(crate) runtime: Handle,
    /// The turns that run, those of workers aside. A turn that starts from a queue waits for its
    /// slot; any other is refused.
    pub(crate) running: OwnerLimit,
    /// The turns in queues.
    pub(crate) queued: OwnerLimit,
    /// The turns of workers that run. Slots of their own, and never waited for: a turn that holds
    /// one of `running` until its workers end must not wait for what other such turns hold.
    pub(crate) workers: OwnerLimit,
    /// The bytes of the inputs of running and queued turns.
    pub(crate) inputs: InputBytes,
    draining: AtomicBool,
}

impl TurnRunner {
    pub(crate) fn new(producer: Arc<dyn TurnProducer>, runtime: Handle, options: &Options) -> Self {
        Self {
            running: OwnerLimit::new(
                SharedResource::RunningTurns,
                options.running_max,
                options.running_max_per_owner,
            ),
            queued: OwnerLimit::new(
                SharedResource::QueuedTurns,
                options.queued_max,
                options.queued_max_per_owner,
            ),
            workers: OwnerLimit::new(
                SharedResource::RunningWorkers,
                options.workers_running_max,
                options.workers_running_max_per_owner,
            ),
            inputs: InputBytes::new(options),
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
