//! `tool.*`: a tool runs. `tool.called` is durable before the tool runs.

use serde::{Deserialize, Serialize};

use crate::code::{ToolErrorClass, ToolType};
use crate::id::{ToolUseId, UpstreamId};

/// A tool is about to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCalled {
    /// The tool use of the model's message that asks for this call.
    pub tool_use_id: ToolUseId,
    /// The id that an agent elsewhere gave to the tool call; clients of the chat wire get this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_id: Option<UpstreamId>,
    pub tool_name: String,
    pub tool_type: ToolType,
    /// The tool's input, shortened.
    pub input_summary: String,
}

/// A tool returned its result. `result_sha256` covers the result's message row of the same commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCompleted {
    /// The tool use, as in its `tool.called`.
    pub tool_use_id: ToolUseId,
    /// The id that an agent elsewhere gave to the tool call; clients of the chat wire get this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_id: Option<UpstreamId>,
    pub tool_name: String,
    pub tool_type: ToolType,
    /// How long the tool ran.
    pub duration_ms: u64,
    /// The tool's result, shortened.
    pub result_summary: String,
    /// SHA-256 of the result as stored, lower-case hex.
    pub result_sha256: String,
}

/// A tool failed, was refused or was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolFailed {
    /// The tool use of the model's message that asked for this call.
    pub tool_use_id: ToolUseId,
    /// The id that an agent elsewhere gave to the tool call; clients of the chat wire get this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_id: Option<UpstreamId>,
    pub tool_name: String,
    pub tool_type: ToolType,
    pub error_class: ToolErrorClass,
    /// True if `tool.called` was written before; set by the session's emitter.
    #[serde(default)]
    pub called: bool,
}
