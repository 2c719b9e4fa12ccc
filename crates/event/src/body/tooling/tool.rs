//! `tool.*`: a tool runs. `tool.called` is durable before the tool acts.

use serde::{Deserialize, Serialize};

use crate::code::{ToolErrorClass, ToolType};
use crate::id::ToolUseId;

/// A tool is about to act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Called {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// What kind of tool.
    pub tool_type: ToolType,
    /// The input, shortened.
    pub input_summary: String,
}

/// A tool gave its result. Vouches for the result's message row of the same commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completed {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// What kind of tool.
    pub tool_type: ToolType,
    /// How long it took.
    pub duration_ms: u64,
    /// The result, shortened.
    pub result_summary: String,
    /// SHA-256 of the result as stored, lower-case hex.
    pub result_sha256: String,
}

/// A tool gave none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failed {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// What kind of tool.
    pub tool_type: ToolType,
    /// Why.
    pub error_class: ToolErrorClass,
    /// Whether its `tool.called` was written; stamped by the writer.
    #[serde(default)]
    pub called: bool,
}
