//! The tool call table: one row a call, updated with the state of the call.

use rusqlite::{Row, Transaction, params};
use turnwire_event::code::ToolState;
use turnwire_event::row::{PlacedChange, RowChange, ToolCallRow};

use crate::sqlite::column::{SelectRow, code_name, execute, optional_time, parsed, value};

/// Writes the state of a tool call, with the time at which it started or ended.
pub(crate) fn put(tx: &Transaction<'_>, sid: i64, placed: &PlacedChange) -> rusqlite::Result<()> {
    let RowChange::ToolCall {
        tool_use_id,
        turn_id,
        tool_name,
        tool_type,
        status,
    } = &placed.change
    else {
        return Ok(());
    };
    let time = Some(placed.time.as_millis());
    let (started, ended) = match status {
        ToolState::Pending => (None, None),
        ToolState::Running => (time, None),
        ToolState::Completed | ToolState::Failed | ToolState::Cancelled => (None, time),
    };
    execute(
        tx,
        "INSERT INTO tool_call (id, sid, turn, name, type, status, started_at, ended_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
         ON CONFLICT (id) DO UPDATE SET status = ?6, started_at = coalesce(started_at, ?7), ended_at = ?8",
        params![
            tool_use_id.to_string(),
            sid,
            turn_id.to_string(),
            tool_name,
            code_name(tool_type),
            code_name(status),
            started,
            ended
        ],
    )
    .map(drop)
}

impl SelectRow for ToolCallRow {
    const SELECT: &str = "SELECT t.id, t.turn, t.name, t.type, t.status, t.started_at, t.ended_at \
        FROM tool_call t JOIN session s ON s.sid = t.sid";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            tool_use_id: parsed(row, 0)?,
            turn_id: parsed(row, 1)?,
            tool_name: row.get(2)?,
            tool_type: value(row, 3)?,
            status: value(row, 4)?,
            started_at: optional_time(row, 5)?,
            ended_at: optional_time(row, 6)?,
        })
    }
}
