//! The workers of a turn: how many it may have, and the end of those that a tool has let go of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use turnwire_event::body::delegate::Failed;
use turnwire_event::code::{FailureMode, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Delegate, NoWorker, Task, WorkerEnd};
use turnwire_event::{Actor, Body, SessionId, ToolUseId};
use turnwire_tool::ToolContext;

/// Whoever has workers, and how many more of them a turn may have.
pub(crate) struct Crew {
    inner: Arc<dyn Delegate>,
    left: AtomicU32,
}

impl Crew {
    pub(crate) fn new(inner: Arc<dyn Delegate>, workers_max: u32) -> Self {
        Self {
            inner,
            left: AtomicU32::new(workers_max),
        }
    }
}

impl Delegate for Crew {
    fn reserve(&self) -> Result<SessionId, NoWorker> {
        let one_less = |left: u32| left.checked_sub(1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let taken = self.left.fetch_update(set, fetch, one_less);
        taken.map_err(|_| NoWorker::TooMany)?;
        // Only those that there are count.
        self.inner.reserve().inspect_err(|_| {
            self.left.fetch_add(1, Ordering::AcqRel);
        })
    }

    fn run(&self, task: Task) -> BoxFuture<'static, WorkerEnd> {
        self.inner.run(task)
    }

    fn left(&self, tool_use_id: ToolUseId) -> BoxFuture<'static, Vec<SessionId>> {
        self.inner.left(tool_use_id)
    }
}

/// The ends of workers that a tool of `tool_type` has let go of when it failed: told before its
/// own, and not before they have stopped.
pub(crate) async fn lost(
    scene: &ToolContext,
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
    let left = scene.delegate.left(tool_use_id).await.into_iter();
    let failed = left.map(|worker_session_id| {
        let body = Body::DelegateFailed(Failed {
            worker_session_id,
            failure_mode,
        });
        (Actor::worker(worker_session_id), body)
    });
    failed.collect()
}
