//! A tool that gives work to another agent, in a session of its own.
//!
//! ```text
//! delegate.started │ durable │ the worker runs │ its terminal is durable │ delegate.completed
//! ```
//! The model is told what the worker said last, and nothing before that (S3-089, S3-090).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::delegate::{Completed, Failed, Started};
use turnwire_event::code::{FailureMode, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Emission, NoWorker, Refusal, Task, WorkerEnd};
use turnwire_event::{Actor, Body, SessionId};
use turnwire_pack::ToolDef;

use crate::deliver::deliver;
use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// What a worker has if the pack does not say: half of what a turn has.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Beyond its own limit, so that the tool's own words about it come first: a worker that is
/// stopped may have to kill programs, and so may those that work for it.
const MARGIN: Duration = Duration::from_secs(30);
/// Characters of a task: several pages.
const TASK_CHARS_MAX: usize = 16_000;
/// Characters of a task and an answer that events show.
const SUMMARY_CHARS_MAX: usize = 256;

/// A tool that delegates.
pub(crate) struct Delegate {
    def: ToolDef,
    plan: Arc<Plan>,
}

/// What is the same for every call.
struct Plan {
    agent: String,
    limit: Duration,
}

impl Delegate {
    pub(crate) fn new(def: &ToolDef, agent: &str) -> Self {
        Self {
            def: def.clone(),
            plan: Arc::new(Plan {
                agent: agent.to_owned(),
                limit: def.timeout_ms.map_or(TIMEOUT, Duration::from_millis),
            }),
        }
    }
}

impl Tool for Delegate {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"task": {
                "type": "string",
                "minLength": 1,
                "maxLength": TASK_CHARS_MAX,
                "description": "What to do, in plain words and with all that must be known: the \
                                worker sees nothing else.",
            }},
            "required": ["task"],
            "additionalProperties": false,
        })
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Delegate
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.plan.limit + MARGIN)
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn approval(&self) -> bool {
        self.def.approval
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let plan = Arc::clone(&self.plan);
        Box::pin(async move { plan.run(call).await })
    }
}

impl Plan {
    async fn run(&self, call: Call) -> Result<Value, ToolFailure> {
        let task = task(&call.input)?;
        let delegate = &call.scene.delegate;
        let id = delegate.reserve().map_err(|why| none(&why))?;
        let started = Body::DelegateStarted(Started {
            worker_session_id: id,
            tool_use_id: call.tool_use_id,
            task_summary: shown(&call, &task),
        });
        let at = tell(&call, id, started).await?;
        // A crash after this leaves a log that names everyone who may have acted.
        call.emitter.committed(at).await.map_err(refused)?;
        let end = delegate.run(Task {
            worker_session_id: id,
            tool_use_id: call.tool_use_id,
            agent: self.agent.clone(),
            task,
            limit: self.limit,
            trace: call.scene.trace.clone(),
        });
        match end.await {
            WorkerEnd::Completed { success, text } => {
                let completed = Body::DelegateCompleted(Completed {
                    worker_session_id: id,
                    success,
                    summary: shown(&call, &text),
                });
                tell(&call, id, completed).await?;
                Ok(json!({"success": success, "answer": text}))
            }
            WorkerEnd::Failed(failure_mode) => {
                let failed = Body::DelegateFailed(Failed {
                    worker_session_id: id,
                    failure_mode,
                });
                tell(&call, id, failed).await?;
                Err(self.failure(failure_mode))
            }
        }
    }

    fn failure(&self, mode: FailureMode) -> ToolFailure {
        match mode {
            FailureMode::CancelledByUser => {
                ToolFailure::new(ToolErrorClass::Cancelled, "The worker was stopped.")
            }
            FailureMode::Timeout => {
                let limit = self.limit.as_millis();
                let told = format!("The worker did not get done within {limit} ms.");
                ToolFailure::new(ToolErrorClass::Timeout, told)
            }
            FailureMode::Error => ToolFailure::internal("The worker broke and gave no result."),
        }
    }
}

fn task(input: &Value) -> Result<String, ToolFailure> {
    let task = Input::new(input, &["task"])?.text("task")?;
    let fits = task.chars().nth(TASK_CHARS_MAX).is_none();
    if task.trim().is_empty() || !fits {
        let told = format!("`task` must have from 1 to {TASK_CHARS_MAX} characters.");
        return Err(ToolFailure::invalid_input(told));
    }
    Ok(task.to_owned())
}

/// There is no worker, and nobody was told that there would be.
fn none(why: &NoWorker) -> ToolFailure {
    ToolFailure::internal(match why {
        NoWorker::TooMany => "This turn has had as many workers as it may; do it without one.",
        NoWorker::TooDeep => "A worker this deep cannot have workers; do it without one.",
        NoWorker::Unavailable => "There are no workers now; do it without one.",
    })
}

async fn tell(
    call: &Call,
    id: SessionId,
    body: Body,
) -> Result<turnwire_event::Position, ToolFailure> {
    let emission = Emission::new(Actor::worker(id), body);
    deliver(&*call.emitter, emission).await.map_err(refused)
}

/// The turn is over: nobody reads this.
fn refused(_: Refusal) -> ToolFailure {
    ToolFailure::new(ToolErrorClass::Cancelled, "The turn has ended.")
}

/// What events show of a text: little of the speaker's, of a sub-agent's only its size (D-46).
fn shown(call: &Call, text: &str) -> String {
    if call.scene.agent.is_some() {
        return format!("{} bytes", text.len());
    }
    if text.chars().nth(SUMMARY_CHARS_MAX).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(SUMMARY_CHARS_MAX - 1);
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests;
