//! `/sessions/{id}/tool-calls`: which tools ran, and how they ended.

use serde::{Deserialize, Serialize};
use turnwire_event::code::{ToolState, ToolType};
use turnwire_event::row::ToolCallRow;
use turnwire_event::{Timestamp, ToolUseId, TurnId};

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// In which turn.
    pub turn_id: TurnId,
    /// Which tool.
    pub tool_name: String,
    /// What kind of tool.
    pub tool_type: ToolType,
    /// Where it stands.
    pub status: ToolState,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl From<ToolCallRow> for ToolCall {
    fn from(row: ToolCallRow) -> Self {
        Self {
            tool_use_id: row.tool_use_id,
            turn_id: row.turn_id,
            tool_name: row.tool_name,
            tool_type: row.tool_type,
            status: row.status,
            started_at: row.started_at,
            ended_at: row.ended_at,
        }
    }
}

/// 200 of `GET /sessions/{id}/tool-calls`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ToolCallList"))]
pub struct List {
    /// The tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// What to send as `before` for older ones.
    pub next: Option<ToolUseId>,
}
