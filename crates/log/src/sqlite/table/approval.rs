//! The approval table: requests for a person's approval of a tool call, and their decisions.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::row::{ApprovalRow, PlacedChange, RowChange};
use turnwire_event::{ApprovalId, Owner, SessionId, TurnId};

use crate::error::ReadError;
use crate::sqlite::column::{optional_time, owner, parsed, query_rows, time, value, word};

/// Applies a row change of an approval; ignores every other change.
pub(crate) fn apply(tx: &Transaction<'_>, sid: i64, placed: &PlacedChange) -> rusqlite::Result<()> {
    let at = placed.time.as_millis();
    match &placed.change {
        RowChange::ApprovalPut {
            approval_id,
            turn_id,
            tool_use_id,
            tool_name,
            input_summary,
        } => {
            tx.prepare_cached(
                "INSERT INTO approval (id, sid, turn, tool_use, name, input_summary, state, requested_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7) ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                approval_id.to_string(),
                sid,
                turn_id.to_string(),
                tool_use_id.to_string(),
                tool_name,
                input_summary,
                at,
            ])?;
        }
        RowChange::ApprovalResolved {
            approval_id,
            decision,
            by,
            comment,
        } => resolve(tx, (*approval_id, *decision), (by, comment.as_deref()), at)?,
        _ => {}
    }
    Ok(())
}

fn resolve(
    tx: &Transaction<'_>,
    (id, decision): (ApprovalId, Decision),
    (by, comment): (&str, Option<&str>),
    at: i64,
) -> rusqlite::Result<()> {
    let state = match decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Reject => ApprovalState::Rejected,
    };
    let id = id.to_string();
    let changed = tx
        .prepare_cached(
            "UPDATE approval SET state = ?2, resolved_at = ?3, resolved_by = ?4, comment = ?5 \
             WHERE id = ?1 AND state = 'pending'",
        )?
        .execute(params![id, word(&state), at, by, comment])?;
    if changed > 0 && decision == Decision::Reject {
        tx.prepare_cached(
            "UPDATE tool_call SET status = 'cancelled', ended_at = ?2 WHERE status = 'pending' \
             AND id = (SELECT tool_use FROM approval WHERE id = ?1)",
        )?
        .execute(params![id, at])?;
    }
    Ok(())
}

const SELECT: &str = "SELECT a.id, s.id, a.turn, a.tool_use, a.name, a.input_summary, a.state, a.requested_at, \
    a.resolved_at, a.resolved_by, s.tenant, s.principal, a.comment FROM approval a JOIN session s ON s.sid = a.sid";

fn read_approval(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    Ok(ApprovalRow {
        id: parsed(row, 0)?,
        session_id: parsed(row, 1)?,
        turn_id: parsed(row, 2)?,
        tool_use_id: parsed(row, 3)?,
        tool_name: row.get(4)?,
        input_summary: row.get(5)?,
        state: value(row, 6)?,
        requested_at: time(row, 7)?,
        resolved_at: optional_time(row, 8)?,
        by: row.get(9)?,
        comment: row.get(12)?,
    })
}

pub(crate) fn approval(
    c: &Connection,
    id: ApprovalId,
) -> Result<Option<(Owner, ApprovalRow)>, ReadError> {
    let sql = format!("{SELECT} WHERE a.id = ?1");
    let read = |row: &Row<'_>| Ok((owner(row, 10)?, read_approval(row)?));
    Ok(c.prepare_cached(&sql)?
        .query_row([id.to_string()], read)
        .optional()?)
}

pub(crate) fn turn_approvals(c: &Connection, turn: TurnId) -> Result<Vec<ApprovalRow>, ReadError> {
    let sql = format!("{SELECT} WHERE a.turn = ?1 ORDER BY a.id");
    query_rows(c, &sql, [turn.to_string()], read_approval)
}

pub(crate) fn open_approvals(
    c: &Connection,
    session: SessionId,
) -> Result<Vec<ApprovalRow>, ReadError> {
    let sql = format!("{SELECT} WHERE s.id = ?1 AND a.state = 'pending' ORDER BY a.id");
    query_rows(c, &sql, [session.to_string()], read_approval)
}
