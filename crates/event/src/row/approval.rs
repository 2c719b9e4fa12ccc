//! A question whether a tool may act, as stored.

use crate::clock::Timestamp;
use crate::code::ApprovalState;
use crate::id::{ApprovalId, SessionId, ToolUseId, TurnId};

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Which question.
    pub id: ApprovalId,
    /// In which session.
    pub session_id: SessionId,
    /// The turn that asked and paused.
    pub turn_id: TurnId,
    /// The tool use that waits.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// The input, shortened.
    pub input_summary: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// When it was answered.
    pub resolved_at: Option<Timestamp>,
    /// Who answered.
    pub by: Option<String>,
    /// What they said with it.
    pub comment: Option<String>,
}
