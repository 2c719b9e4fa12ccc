//! The workers of a turn: how many the turn may start, and the end of workers whose tool has failed.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use turnwire_event::body::delegate::DelegateEnd;
use turnwire_event::code::{FailureMode, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, WorkerEnd, WorkerLauncher, WorkerRefusal, WorkerTask};
use turnwire_event::{Actor, Body, SessionId, ToolUseId};
use turnwire_tool::ToolContext;

/// A [`WorkerLauncher`] that starts at most a number of workers.
pub(crate) struct WorkerQuota {
    inner: Arc<dyn WorkerLauncher>,
    remaining: Arc<AtomicU32>,
}

impl WorkerQuota {
    pub(crate) fn new(inner: Arc<dyn WorkerLauncher>, workers_max: u32) -> Self {
        Self {
            inner,
            remaining: Arc::new(AtomicU32::new(workers_max)),
        }
    }
}

impl WorkerLauncher for WorkerQuota {
    fn create(&self, agent: &str) -> BoxFuture<'static, Result<SessionId, WorkerRefusal>> {
        let decrement = |remaining: u32| remaining.checked_sub(1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let decremented = self.remaining.fetch_update(set, fetch, decrement);
        if decremented.is_err() {
            return Box::pin(ready(Err(WorkerRefusal::TooMany)));
        }
        let (created, remaining) = (self.inner.create(agent), Arc::clone(&self.remaining));
        Box::pin(async move {
            // A worker that could not be created does not count.
            created.await.inspect_err(|_| {
                remaining.fetch_add(1, Ordering::AcqRel);
            })
        })
    }

    fn discard(&self, worker: SessionId) {
        self.inner.discard(worker);
    }

    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        self.inner.run(task)
    }

    fn left(
        &self,
        tool_use_id: ToolUseId,
        stopped: FailureMode,
    ) -> BoxFuture<'static, Vec<DelegateEnd>> {
        self.inner.left(tool_use_id, stopped)
    }
}

/// The events that end the workers of a failed tool of `tool_type`, as each of them ended. Waits until
/// the workers have stopped; the events are emitted before the end of the tool.
pub(crate) async fn abandoned_worker_events(
    tool_context: &ToolContext,
    (tool_use_id, tool_type): (ToolUseId, ToolType),
    class: ToolErrorClass,
) -> Vec<(Actor, Body)> {
    if tool_type != ToolType::Delegate {
        return Vec::new();
    }
    let stopped = match class {
        ToolErrorClass::Cancelled => FailureMode::CancelledByUser,
        ToolErrorClass::Timeout => FailureMode::Timeout,
        ToolErrorClass::EnvelopeError
        | ToolErrorClass::PrincipalMismatch
        | ToolErrorClass::InvalidInput
        | ToolErrorClass::NotExecuted
        | ToolErrorClass::Internal => FailureMode::Error,
    };
    let ends = tool_context.delegate.left(tool_use_id, stopped).await;
    let events = ends.into_iter();
    let events = events.map(|end| (Actor::worker(end.worker()), end.into_body()));
    events.collect()
}
