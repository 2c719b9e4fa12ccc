//! `approval.*`: a tool waits for a person. A turn that asks ends as paused; the answers open
//! another, which goes on where it stopped.

use serde::{Deserialize, Serialize};

use crate::code::{Decision, ToolType};
use crate::id::{ApprovalId, ToolUseId};

/// A person is asked whether a tool may act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requested {
    /// Which question.
    pub approval_id: ApprovalId,
    /// The tool use that waits.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// The input, shortened.
    pub input_summary: String,
}

/// The question has its answer. It belongs to no turn: the one that asked has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolved {
    /// Which question.
    pub approval_id: ApprovalId,
    /// The answer.
    pub decision: Decision,
    /// Who gave it: `user`, or `system` where the conversation went on without.
    pub by: String,
    /// What they said with it; whoever asked for the tool is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// An answer as the turn that goes on is told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Which question.
    pub approval_id: ApprovalId,
    /// The tool use that waited.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// What kind of tool.
    pub tool_type: ToolType,
    /// The answer.
    pub decision: Decision,
    /// What was said with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}
