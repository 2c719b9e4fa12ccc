//! A turn that delegates to a worker, as the `delegate` tool does.

use std::time::Duration;

use turnwire_event::body::delegate::{
    DelegateCompleted, DelegateFailed, DelegateStarted, SummaryDetail,
};
use turnwire_event::body::tool::{self, ToolCalled};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::port::{Emission, TurnContext, WorkerEnd, WorkerRefusal, WorkerTask};
use turnwire_event::{Actor, Body, SessionId, ToolUseId};

use super::{emit, ids};

/// The time limit of workers in tests without a timeout.
pub const LONG_LIMIT: Duration = Duration::from_secs(60);

/// Creates a worker, and emits the tool call and the `delegate.started` of it.
pub async fn announce_worker(turn: &TurnContext) -> Result<WorkerTask, WorkerRefusal> {
    let (.., tool_use_id) = ids();
    emit(
        turn,
        Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: "delegate".into(),
            tool_type: ToolType::Delegate,
            input_summary: String::new(),
        }),
    );
    let id = turn.delegate.create("counter").await?;
    let started = Body::DelegateStarted(DelegateStarted {
        worker_session_id: id,
        tool_use_id,
        task_summary: "count".into(),
    });
    let at = turn
        .emitter
        .emit(Emission::new(Actor::worker(id), started))
        .expect("accepted");
    turn.emitter.committed(at).await.expect("durable");
    Ok(WorkerTask {
        worker_session_id: id,
        tool_use_id,
        task: "count to three".into(),
        limit: LONG_LIMIT,
        detail: SummaryDetail::Text,
        trace: None,
        propagation: Default::default(),
    })
}

/// Emits the end of a worker and of its tool.
pub fn report_worker_end(
    turn: &TurnContext,
    (id, tool_use_id): (SessionId, ToolUseId),
    end: &WorkerEnd,
) {
    let (body, ok) = match end {
        WorkerEnd::Completed { success, text } => (
            Body::DelegateCompleted(DelegateCompleted {
                worker_session_id: id,
                success: *success,
                summary: text.clone(),
            }),
            true,
        ),
        WorkerEnd::Failed(failure_mode) => (
            Body::DelegateFailed(DelegateFailed {
                worker_session_id: id,
                failure_mode: *failure_mode,
            }),
            false,
        ),
    };
    // Refused if the turn has ended.
    let _ = turn.emitter.emit(Emission::new(Actor::worker(id), body));
    let (tool_name, tool_type) = ("delegate".to_owned(), ToolType::Delegate);
    let body = if ok {
        Body::ToolCompleted(tool::ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            duration_ms: 1,
            result_summary: String::new(),
            result_sha256: String::new(),
        })
    } else {
        Body::ToolFailed(tool::ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            error_class: ToolErrorClass::Internal,
            called: true,
        })
    };
    let _ = turn.emitter.emit(Emission::new(Actor::ORCHESTRATOR, body));
}

/// Runs a worker, with all its events.
pub async fn delegate_task(
    turn: &TurnContext,
    limit: Duration,
) -> Result<WorkerEnd, WorkerRefusal> {
    let task = WorkerTask {
        limit,
        ..announce_worker(turn).await?
    };
    let ids = (task.worker_session_id, task.tool_use_id);
    let end = turn.delegate.run(task).await;
    report_worker_end(turn, ids, &end);
    Ok(end)
}
