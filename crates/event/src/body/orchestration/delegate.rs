//! `delegate.*`: a turn delegates work to a worker session. `delegate.started` is durable before the
//! worker starts, and the worker's own terminal is durable before its end is reported here.

use serde::{Deserialize, Serialize};

use crate::code::FailureMode;
use crate::id::{SessionId, ToolUseId};

/// A worker is about to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Started"))]
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
#[cfg_attr(feature = "schema", schemars(rename = "Completed"))]
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
#[cfg_attr(feature = "schema", schemars(rename = "Failed"))]
pub struct DelegateFailed {
    /// The session that the worker runs in.
    pub worker_session_id: SessionId,
    pub failure_mode: FailureMode,
}
