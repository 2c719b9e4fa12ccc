//! `approval.*`: a tool waits for a person's approval. A turn that requests one ends as paused;
//! the decisions start another turn, which continues where the paused one stopped.

use serde::{Deserialize, Serialize};

use crate::code::{Decision, ToolType};
use crate::id::{ApprovalId, ToolUseId};

/// A tool needs a person's approval before it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRequested {
    /// Names the question in its decision and in `/turns/{turn_id}/approvals`.
    pub approval_id: ApprovalId,
    /// The tool use that waits for the approval.
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
    /// The tool's input, shortened.
    pub input_summary: String,
    /// True if `input_summary` is not the whole input, which is at
    /// `/turns/{turn_id}/approvals/{approval_id}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input_truncated: bool,
    /// The length of the whole input as JSON text, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_bytes: Option<u64>,
    /// The SHA-256 of the whole input as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
}

/// An approval request was decided. The event belongs to no turn: the requesting turn has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalResolved {
    /// The question, as in its `approval.requested`.
    pub approval_id: ApprovalId,
    pub decision: Decision,
    /// Who decided: `user`, `reviewer` for another person of the tenant, or `system` where the
    /// conversation continued without a decision.
    pub by: String,
    /// The person's comment; the requesting model sees the comment of a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A decision as it is passed to the resumed turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolvedApproval {
    /// The question, as in its `approval.requested`.
    pub approval_id: ApprovalId,
    /// The tool use that waited for the decision.
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
    pub tool_type: ToolType,
    pub decision: Decision,
    /// The SHA-256 of the input that was decided on; the tool does not run with another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
    /// The person's comment, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}
