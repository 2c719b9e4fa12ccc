//! The workers of a turn: how many the turn may start, and the end of workers whose tool has failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use turnwire_event::body::delegate::DelegateFailed;
use turnwire_event::code::{FailureMode, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, WorkerEnd, WorkerLauncher, WorkerRefusal, WorkerTask};
use turnwire_event::{Actor, Body, SessionId, ToolUseId};
use turnwire_tool::ToolContext;

/// A [`WorkerLauncher`] that starts at most a number of workers.
pub(crate) struct WorkerQuota {
    inner: Arc<dyn WorkerLauncher>,
    remaining: AtomicU32,
}

impl WorkerQuota {
    pub(crate) fn new(inner: Arc<dyn WorkerLauncher>, workers_max: u32) -> Self {
        Self {
            inner,
            remaining: AtomicU32::new(workers_max),
        }
    }
}

impl WorkerLauncher for WorkerQuota {
    fn reserve(&self) -> Result<SessionId, WorkerRefusal> {
        let decrement = |remaining: u32| remaining.checked_sub(1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let decremented = self.remaining.fetch_update(set, fetch, decrement);
        decremented.map_err(|_| WorkerRefusal::TooMany)?;
        // A worker that could not be reserved does not count.
        self.inner.reserve().inspect_err(|_| {
            self.remaining.fetch_add(1, Ordering::AcqRel);
        })
    }

    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        self.inner.run(task)
    }

    fn left(&self, tool_use_id: ToolUseId) -> BoxFuture<'static, Vec<SessionId>> {
        self.inner.left(tool_use_id)
    }
}

/// The events that end the workers of a failed tool of `tool_type`. Waits until the workers have
/// stopped; the events are emitted before the end of the tool.
pub(crate) async fn abandoned_worker_events(
    tool_context: &ToolContext,
    (tool_use_id, tool_type): (ToolUseId, ToolType),
    class: ToolErrorClass,
) -> Vec<(Actor, Body)> {
    if tool_type != ToolType::Delegate {
        return Vec::new();
    }
    let failure_mode = match class {
        ToolErrorClass::Cancelled => FailureMode::CancelledByUser,
        ToolErrorClass::Timeout => FailureMode::Timeout,
        ToolErrorClass::EnvelopeError
        | ToolErrorClass::PrincipalMismatch
        | ToolErrorClass::InvalidInput
        | ToolErrorClass::Internal => FailureMode::Error,
    };
    let workers = tool_context.delegate.left(tool_use_id).await.into_iter();
    let events = workers.map(|worker_session_id| {
        let body = Body::DelegateFailed(DelegateFailed {
            worker_session_id,
            failure_mode,
        });
        (Actor::worker(worker_session_id), body)
    });
    events.collect()
}
