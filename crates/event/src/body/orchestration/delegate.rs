//! `delegate.*`: a turn delegates work to a worker session. The session is durable before
//! `delegate.started` names it, `delegate.started` before the worker starts, and the worker's own
//! terminal before its end is reported here.

use serde::{Deserialize, Serialize};

use crate::body::Body;
use crate::code::{FailureMode, StopOutcome};
use crate::id::{SessionId, ToolUseId};

/// Characters of a task and of an answer in events.
const SUMMARY_CHARS_MAX: usize = 256;

/// What the events of a worker show of its task and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryDetail {
    /// The beginning of the text: the orchestrator delegates.
    Text,
    /// The size of the text: a sub-agent delegates (D-46).
    Size,
}

impl SummaryDetail {
    /// The summary of `text`.
    pub fn summary(self, text: &str) -> String {
        match self {
            Self::Size => format!("{} bytes", text.len()),
            Self::Text if text.chars().nth(SUMMARY_CHARS_MAX).is_none() => text.to_owned(),
            Self::Text => {
                let beginning = text.chars().take(SUMMARY_CHARS_MAX - 1);
                beginning.chain(['…']).collect()
            }
        }
    }
}

/// A worker is about to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelegateStarted {
    /// The session that the worker runs in.
    pub worker_session_id: SessionId,
    /// The tool use that started the worker.
    pub tool_use_id: ToolUseId,
    /// The worker's task, shortened.
    pub task_summary: String,
}

/// A worker's turn ended by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelegateCompleted {
    /// The session that the worker runs in.
    pub worker_session_id: SessionId,
    /// True if the worker's turn did not fail.
    pub success: bool,
    /// The worker's answer, shortened.
    pub summary: String,
}

/// A worker was cancelled, timed out or failed to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelegateFailed {
    /// The session that the worker runs in.
    pub worker_session_id: SessionId,
    pub failure_mode: FailureMode,
}

impl DelegateFailed {
    /// The outcome of the worker in the cancel receipt of its parent.
    pub const fn stop_outcome(&self) -> StopOutcome {
        match self.failure_mode {
            FailureMode::CancelledByUser => StopOutcome::Stopped,
            FailureMode::Timeout | FailureMode::Error => StopOutcome::Finished,
        }
    }
}

/// The end of a worker, as its parent's log reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum DelegateEnd {
    Completed(DelegateCompleted),
    Failed(DelegateFailed),
}

impl DelegateEnd {
    /// The session that the worker ran in.
    pub const fn worker(&self) -> SessionId {
        match self {
            Self::Completed(end) => end.worker_session_id,
            Self::Failed(end) => end.worker_session_id,
        }
    }

    /// The outcome of the worker in the cancel receipt of its parent.
    pub const fn stop_outcome(&self) -> StopOutcome {
        match self {
            Self::Completed(_) => StopOutcome::Finished,
            Self::Failed(end) => end.stop_outcome(),
        }
    }

    /// The event that reports the end.
    pub fn into_body(self) -> Body {
        match self {
            Self::Completed(end) => Body::DelegateCompleted(end),
            Self::Failed(end) => Body::DelegateFailed(end),
        }
    }
}
