//! The record of an approval request.

use crate::clock::Timestamp;
use crate::code::ApprovalState;
use crate::id::{ApprovalId, SessionId, ToolUseId, TurnId};

/// An approval request and its decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub session_id: SessionId,
    /// The turn that requested the approval and paused.
    pub turn_id: TurnId,
    /// The tool use that waits for the decision.
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
    /// The tool's input, shortened.
    pub input_summary: String,
    /// The length of the whole input as JSON text; `None` for a request of an older release.
    pub input_bytes: Option<u64>,
    /// The SHA-256 of the whole input as JSON text; `None` for a request of an older release.
    pub input_sha256: Option<String>,
    pub state: ApprovalState,
    pub requested_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    /// Who decided: `user` or `system`.
    pub by: Option<String>,
    pub comment: Option<String>,
}
