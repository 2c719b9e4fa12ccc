//! `delegate.*`: work is given to a worker session. `delegate.started` is durable before the
//! worker begins, and the worker's own terminal before its end is told here.

use serde::{Deserialize, Serialize};

use crate::code::FailureMode;
use crate::id::{SessionId, ToolUseId};

/// A worker is about to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// Its session.
    pub worker_session_id: SessionId,
    /// The tool use that asked for it.
    pub tool_use_id: ToolUseId,
    /// What it is to do, shortened.
    pub task_summary: String,
}

/// A worker has ended its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completed {
    /// Its session.
    pub worker_session_id: SessionId,
    /// Whether it did what it was to do.
    pub success: bool,
    /// What it said, shortened.
    pub summary: String,
}

/// A worker did not get to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failed {
    /// Its session.
    pub worker_session_id: SessionId,
    /// Why.
    pub failure_mode: FailureMode,
}
