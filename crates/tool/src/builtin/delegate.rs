//! A tool that gives a task to another agent, in a session of its own.
//!
//! ```text
//! the worker's session │ durable │ delegate.started │ durable │ the worker runs │ its terminal │ durable │ delegate.completed
//! ```
//! The model gets the last message of the worker and nothing before it (S3-089, S3-090).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::delegate::{
    DelegateCompleted, DelegateFailed, DelegateStarted, SummaryDetail,
};
use turnwire_event::code::{FailureMode, ToolErrorClass, ToolType};
use turnwire_event::port::{
    Emission, EmitRefusal, WorkerEnd, WorkerLauncher, WorkerRefusal, WorkerTask,
};
use turnwire_event::{Actor, Body, Position, SessionId};
use turnwire_pack::ToolDef;

use crate::input::{InputFields, object_schema};
use crate::pack_tool::PackTool;
use crate::tool::{ToolFailure, ToolInvocation, deliver};

/// The default of `timeout_ms`: half of the time of a turn.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Added to the timeout of the worker, so that the worker ends first and says why: a worker that is
/// stopped may have to kill programs, and so may its own workers.
const MARGIN: Duration = Duration::from_secs(30);
/// Characters of a task: several pages.
const TASK_CHARS_MAX: usize = 16_000;

/// Gives tasks to one agent.
pub(crate) struct DelegateTool {
    agent: String,
    timeout: Duration,
}

impl DelegateTool {
    pub(crate) fn build(def: &ToolDef, agent: &str) -> PackTool {
        let mut def = def.clone();
        def.input_schema = input_schema();
        let timeout = def.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
        let agent = agent.to_owned();
        let action = Arc::new(Self { agent, timeout });
        let run = move |call| Arc::clone(&action).run(call);
        PackTool::new(def, ToolType::Delegate, Some(timeout + MARGIN), run)
    }

    fn failure(&self, mode: FailureMode) -> ToolFailure {
        match mode {
            FailureMode::CancelledByUser => {
                ToolFailure::new(ToolErrorClass::Cancelled, "The worker was stopped.")
            }
            FailureMode::Timeout => {
                let timeout = self.timeout.as_millis();
                let message = format!("The worker did not finish within {timeout} ms.");
                ToolFailure::new(ToolErrorClass::Timeout, message)
            }
            FailureMode::Error => ToolFailure::internal("The worker failed and has no result."),
        }
    }

    async fn run(self: Arc<Self>, call: ToolInvocation) -> Result<Value, ToolFailure> {
        let task = task(&call.input)?;
        let delegate = &call.context.delegate;
        let detail = detail(&call);
        let created = delegate.create(&self.agent).await;
        let id = created.map_err(|error| no_worker(&error))?;
        let mut unnamed = UnnamedWorker(Some((delegate.as_ref(), id)));
        let started = Body::DelegateStarted(DelegateStarted {
            worker_session_id: id,
            tool_use_id: call.tool_use_id,
            task_summary: detail.summary(&task),
        });
        let position = emit(&call, id, started).await?;
        unnamed.0 = None;
        // After this a crash leaves a log that names the worker, which may have acted.
        call.emitter.committed(position).await.map_err(refused)?;
        let end = delegate.run(WorkerTask {
            worker_session_id: id,
            tool_use_id: call.tool_use_id,
            task,
            limit: self.timeout,
            detail,
            trace: Some(call.worker_trace()),
            propagation: call.context.propagation.clone(),
        });
        match end.await {
            WorkerEnd::Completed { success, text } => {
                let completed = Body::DelegateCompleted(DelegateCompleted {
                    worker_session_id: id,
                    success,
                    summary: detail.summary(&text),
                });
                emit(&call, id, completed).await?;
                Ok(json!({"success": success, "answer": text}))
            }
            WorkerEnd::Failed(failure_mode) => {
                let failed = Body::DelegateFailed(DelegateFailed {
                    worker_session_id: id,
                    failure_mode,
                });
                emit(&call, id, failed).await?;
                Err(self.failure(failure_mode))
            }
        }
    }
}

/// Deletes a worker that no event has named, when the turn stops before its `delegate.started`.
struct UnnamedWorker<'a>(Option<(&'a dyn WorkerLauncher, SessionId)>);

impl Drop for UnnamedWorker<'_> {
    fn drop(&mut self) {
        if let Some((delegate, id)) = self.0 {
            delegate.discard(id);
        }
    }
}

pub(super) fn input_schema() -> Value {
    let task = json!({"task": {
        "type": "string",
        "minLength": 1,
        "maxLength": TASK_CHARS_MAX,
        "description": "What to do, in plain words and with all that must be known: the \
                        worker sees nothing else.",
    }});
    object_schema(task, &["task"])
}

fn task(input: &Value) -> Result<String, ToolFailure> {
    let task = InputFields::new(input, &["task"])?.text("task")?;
    let is_short = task.chars().nth(TASK_CHARS_MAX).is_none();
    ToolFailure::require(is_short && !task.trim().is_empty(), || {
        format!("`task` must have from 1 to {TASK_CHARS_MAX} characters.")
    })?;
    Ok(task.to_owned())
}

/// The failure without a worker; no event has announced one.
fn no_worker(error: &WorkerRefusal) -> ToolFailure {
    ToolFailure::internal(match error {
        WorkerRefusal::TooMany => "This turn has used all of its workers; do it without one.",
        WorkerRefusal::TooDeep => "A worker this deep cannot have workers; do it without one.",
        WorkerRefusal::Unavailable => "Workers are not available; do it without one.",
    })
}

async fn emit(call: &ToolInvocation, id: SessionId, body: Body) -> Result<Position, ToolFailure> {
    let emission = Emission::new(Actor::worker(id), body);
    deliver(&*call.emitter, emission).await.map_err(refused)
}

/// The turn has ended, so nobody reads this failure.
fn refused(_: EmitRefusal) -> ToolFailure {
    ToolFailure::new(ToolErrorClass::Cancelled, "The turn has ended.")
}

/// What events show of the task and the answer: the text of a sub-agent stays private (D-46).
fn detail(call: &ToolInvocation) -> SummaryDetail {
    match call.context.agent {
        None => SummaryDetail::Text,
        Some(_) => SummaryDetail::Size,
    }
}

#[cfg(test)]
mod tests;
