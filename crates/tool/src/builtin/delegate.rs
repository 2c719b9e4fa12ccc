//! A tool that gives a task to another agent, in a session of its own.
//!
//! ```text
//! delegate.started │ durable │ the worker runs │ its terminal is durable │ delegate.completed
//! ```
//! The model gets the last message of the worker and nothing before it (S3-089, S3-090).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::delegate::{DelegateCompleted, DelegateFailed, DelegateStarted};
use turnwire_event::code::{FailureMode, ToolErrorClass, ToolType};
use turnwire_event::port::{Emission, EmitRefusal, WorkerEnd, WorkerRefusal, WorkerTask};
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
/// Characters of a task and of an answer in events.
const SUMMARY_CHARS_MAX: usize = 256;

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
        let id = delegate.reserve().map_err(|error| no_worker(&error))?;
        let started = Body::DelegateStarted(DelegateStarted {
            worker_session_id: id,
            tool_use_id: call.tool_use_id,
            task_summary: summary(&call, &task),
        });
        let position = emit(&call, id, started).await?;
        // After this a crash leaves a log that names the worker, which may have acted.
        call.emitter.committed(position).await.map_err(refused)?;
        let end = delegate.run(WorkerTask {
            worker_session_id: id,
            tool_use_id: call.tool_use_id,
            agent: self.agent.clone(),
            task,
            limit: self.timeout,
            trace: call.context.trace.clone(),
        });
        match end.await {
            WorkerEnd::Completed { success, text } => {
                let completed = Body::DelegateCompleted(DelegateCompleted {
                    worker_session_id: id,
                    success,
                    summary: summary(&call, &text),
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

fn input_schema() -> Value {
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

/// The summary of a text in events: its beginning for the orchestrator, its size for a sub-agent
/// (D-46).
fn summary(call: &ToolInvocation, text: &str) -> String {
    if call.context.agent.is_some() {
        return format!("{} bytes", text.len());
    }
    if text.chars().nth(SUMMARY_CHARS_MAX).is_none() {
        return text.to_owned();
    }
    let beginning = text.chars().take(SUMMARY_CHARS_MAX - 1);
    beginning.chain(['…']).collect()
}

#[cfg(test)]
mod tests;
