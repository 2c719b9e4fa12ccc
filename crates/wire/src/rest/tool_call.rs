//! `/sessions/{id}/tool-calls`: the tool calls of a session and how they ended.

use serde::{Deserialize, Serialize};
use turnwire_event::code::{ToolState, ToolType};
use turnwire_event::row::ToolCallRow;
use turnwire_event::{Timestamp, ToolUseId, TurnId};

/// A tool call of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ToolCall")
)]
pub struct ToolCallRecord {
    /// The tool use that requested the call.
    pub tool_use_id: ToolUseId,
    /// The turn that made the call.
    pub turn_id: TurnId,
    /// The name of the tool.
    pub tool_name: String,
    /// The type of the tool.
    pub tool_type: ToolType,
    /// Whether the call is running, and how it ended.
    pub status: ToolState,
    /// When the tool started; null if it did not start.
    pub started_at: Option<Timestamp>,
    /// When the call ended; null while it runs.
    pub ended_at: Option<Timestamp>,
}

impl From<ToolCallRow> for ToolCallRecord {
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

/// 200 of `GET /sessions/{id}/tool-calls`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCallList {
    /// One page of calls.
    pub tool_calls: Vec<ToolCallRecord>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<ToolUseId>,
}
