//! The approval table: requests for a person's approval of a tool call, and their decisions.

use rusqlite::{Row, Transaction, params};
use turnwire_event::body::approval::{ApprovalRequested, ApprovalResolved};
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::row::ApprovalRow;
use turnwire_event::{Timestamp, TurnId};

use crate::sqlite::column::{SelectRow, code_name, execute, optional_time, parsed, time, value};

/// Writes a pending request. A request that is there already keeps its state.
pub(crate) fn put(
    tx: &Transaction<'_>,
    sid: i64,
    (turn, requested): (TurnId, &ApprovalRequested),
    at: Timestamp,
) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO approval (id, sid, turn, tool_use, name, input_summary, input_bytes, input_sha256, \
         state, requested_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', ?9) ON CONFLICT (id) DO NOTHING",
        params![
            requested.approval_id.to_string(),
            sid,
            turn.to_string(),
            requested.tool_use_id.to_string(),
            requested.tool_name,
            requested.input_summary,
            requested.input_bytes.map(u64::cast_signed),
            requested.input_sha256,
            at.as_millis(),
        ],
    )
    .map(drop)
}

/// Writes the decision on a pending request; a rejection cancels the tool call.
pub(crate) fn resolve(
    tx: &Transaction<'_>,
    resolved: &ApprovalResolved,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let (id, at) = (resolved.approval_id.to_string(), at.as_millis());
    let state = match resolved.decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Reject => ApprovalState::Rejected,
    };
    let changed = execute(
        tx,
        "UPDATE approval SET state = ?2, resolved_at = ?3, resolved_by = ?4, comment = ?5 \
         WHERE id = ?1 AND state = 'pending'",
        params![id, code_name(&state), at, resolved.by, resolved.comment],
    )?;
    if changed > 0 && state == ApprovalState::Rejected {
        execute(
            tx,
            "UPDATE tool_call SET status = 'cancelled', ended_at = ?2 WHERE status = 'pending' \
             AND id = (SELECT tool_use FROM approval WHERE id = ?1)",
            params![id, at],
        )?;
    }
    Ok(())
}

impl SelectRow for ApprovalRow {
    const SELECT: &str = "SELECT a.id, s.id, a.turn, a.tool_use, a.name, a.input_summary, a.input_bytes, \
        a.input_sha256, a.state, a.requested_at, a.resolved_at, a.resolved_by, a.comment FROM approval a JOIN session s ON s.sid = a.sid";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: parsed(row, 0)?,
            session_id: parsed(row, 1)?,
            turn_id: parsed(row, 2)?,
            tool_use_id: parsed(row, 3)?,
            tool_name: row.get(4)?,
            input_summary: row.get(5)?,
            input_bytes: row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned),
            input_sha256: row.get(7)?,
            state: value(row, 8)?,
            requested_at: time(row, 9)?,
            resolved_at: optional_time(row, 10)?,
            by: row.get(11)?,
            comment: row.get(12)?,
        })
    }
}
