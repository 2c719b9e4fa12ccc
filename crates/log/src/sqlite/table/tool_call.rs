//! The tool call table: one row a call, updated with the state of the call.

use rusqlite::{Connection, Row, Transaction, params};
use turnwire_event::code::ToolState;
use turnwire_event::row::{PlacedChange, RowChange, ToolCallRow};
use turnwire_event::{SessionId, ToolUseId, TurnId};

use crate::error::ReadError;
use crate::sqlite::column::{cursor, optional_time, parsed, query_rows, value, word};

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
    let time = placed.time.as_millis();
    let started = matches!(status, ToolState::Running).then_some(time);
    let ended = matches!(
        status,
        ToolState::Completed | ToolState::Failed | ToolState::Cancelled
    )
    .then_some(time);
    tx.prepare_cached(
        "INSERT INTO tool_call (id, sid, turn, name, type, status, started_at, ended_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
         ON CONFLICT (id) DO UPDATE SET status = ?6, started_at = coalesce(started_at, ?7), ended_at = ?8",
    )?
    .execute(params![
        tool_use_id.to_string(),
        sid,
        turn_id.to_string(),
        tool_name,
        word(tool_type),
        word(status),
        started,
        ended
    ])?;
    Ok(())
}

const SELECT: &str = "SELECT t.id, t.turn, t.name, t.type, t.status, t.started_at, t.ended_at \
    FROM tool_call t JOIN session s ON s.sid = t.sid";

fn read_tool_call(row: &Row<'_>) -> rusqlite::Result<ToolCallRow> {
    Ok(ToolCallRow {
        tool_use_id: parsed(row, 0)?,
        turn_id: parsed(row, 1)?,
        tool_name: row.get(2)?,
        tool_type: value(row, 3)?,
        status: value(row, 4)?,
        started_at: optional_time(row, 5)?,
        ended_at: optional_time(row, 6)?,
    })
}

pub(crate) fn tool_calls(
    c: &Connection,
    session: SessionId,
    before: Option<ToolUseId>,
    limit: usize,
) -> Result<Vec<ToolCallRow>, ReadError> {
    let sql = format!("{SELECT} WHERE s.id = ?1 AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3");
    query_rows(
        c,
        &sql,
        params![session.to_string(), cursor(before), limit as i64],
        read_tool_call,
    )
}

pub(crate) fn turn_tool_calls(c: &Connection, turn: TurnId) -> Result<Vec<ToolCallRow>, ReadError> {
    query_rows(
        c,
        &format!("{SELECT} WHERE t.turn = ?1 ORDER BY t.id"),
        [turn.to_string()],
        read_tool_call,
    )
}
