//! The turn table: a turn starts, is cancelled, ends; turns are read by id, by session and by state.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use turnwire_event::row::{PlacedChange, RowChange, TurnRow};
use turnwire_event::{EventType, Owner, SessionId, TurnId};

use crate::error::ReadError;
use crate::sqlite::column::{
    cursor, json, optional, optional_id, optional_time, owner, parsed, query_rows, time,
    unreadable, value, word,
};

/// Starts a turn: inserts its row, or takes over the row that it had in the queue.
pub(crate) fn start(tx: &Transaction<'_>, sid: i64, placed: &PlacedChange) -> rusqlite::Result<()> {
    let RowChange::TurnStarted {
        turn_id,
        kind,
        on_disconnect,
        disconnect_grace_ms,
        trace,
        wire_version,
        agent_definition,
        resumes,
    } = &placed.change
    else {
        return Ok(());
    };
    let time = placed.time.as_millis();
    let changed = tx
        .prepare_cached(
            "INSERT INTO turn (id, sid, kind, state, on_disconnect, disconnect_grace_ms, trace, started, started_at, \
             wire_version, agent_definition, resumes) \
             VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
             ON CONFLICT (id) DO UPDATE SET state = 'running', started = ?7, started_at = ?8, \
             agent_definition = ?10, queued = NULL, queue_place = NULL \
             WHERE turn.state = 'queued' AND turn.sid = ?2",
        )?
        .execute(params![
            turn_id.to_string(), sid, word(kind), word(on_disconnect), *disconnect_grace_ms as i64,
            trace.as_ref().map(json), placed.at.to_string(), time, wire_version, agent_definition,
            resumes.map(|id| id.to_string())
        ])?;
    if changed != 1 {
        return Err(rusqlite::Error::StatementChangedRows(changed)); // it has started before
    }
    tx.prepare_cached(
        "UPDATE session SET turn_count = turn_count + 1, updated_at = ?2 WHERE sid = ?1",
    )?
    .execute(params![sid, time])?;
    Ok(())
}

/// Marks a turn that has not ended as being cancelled.
pub(crate) fn cancel(tx: &Transaction<'_>, turn: TurnId) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE turn SET state = 'cancelling' WHERE id = ?1 AND ended IS NULL")?
        .execute([turn.to_string()])?;
    Ok(())
}

/// Ends a turn with its terminal event.
pub(crate) fn end(
    tx: &Transaction<'_>,
    sid: i64,
    (turn, terminal, payload): (TurnId, EventType, &str),
    placed: &PlacedChange,
) -> rusqlite::Result<()> {
    let time = placed.time.as_millis();
    let state = if terminal == EventType::TurnCancelled {
        "cancelled"
    } else {
        "completed"
    };
    tx.prepare_cached(
        "UPDATE turn SET state = ?2, ended = ?3, ended_at = ?4, terminal_type = ?5, terminal = ?6 WHERE id = ?1",
    )?
    .execute(params![turn.to_string(), state, placed.at.to_string(), time, terminal.name(), payload])?;
    tx.prepare_cached("UPDATE session SET updated_at = ?2 WHERE sid = ?1")?
        .execute(params![sid, time])?;
    Ok(())
}

const SELECT: &str = "SELECT t.id, s.id, t.kind, t.state, t.on_disconnect, t.disconnect_grace_ms, t.trace, t.started, \
    t.started_at, t.ended, t.ended_at, t.terminal_type, t.terminal, s.tenant, s.principal, t.wire_version, t.agent_definition, \
    t.resumes \
    FROM turn t JOIN session s ON s.sid = t.sid";

fn read_turn(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    let terminal = match row.get::<_, Option<String>>(11)? {
        None => None,
        Some(kind) => Some((kind.parse().map_err(|_| unreadable(11))?, value(row, 12)?)),
    };
    Ok(TurnRow {
        id: parsed(row, 0)?,
        session_id: parsed(row, 1)?,
        kind: value(row, 2)?,
        state: value(row, 3)?,
        on_disconnect: value(row, 4)?,
        disconnect_grace_ms: row.get::<_, i64>(5)? as u64,
        trace: optional(row, 6)?,
        wire_version: row.get(15)?,
        agent_definition: row.get(16)?,
        resumes: optional_id(row, 17)?,
        started: parsed(row, 7)?,
        started_at: time(row, 8)?,
        ended: optional_id(row, 9)?,
        ended_at: optional_time(row, 10)?,
        terminal,
    })
}

pub(crate) fn turn(c: &Connection, id: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError> {
    let sql = format!("{SELECT} WHERE t.id = ?1");
    let read = |row: &Row<'_>| Ok((owner(row, 13)?, read_turn(row)?));
    Ok(c.prepare_cached(&sql)?
        .query_row([id.to_string()], read)
        .optional()?)
}

pub(crate) fn resuming_turn(c: &Connection, paused: TurnId) -> Result<Option<TurnRow>, ReadError> {
    let sql = format!("{SELECT} WHERE t.resumes = ?1");
    Ok(c.prepare_cached(&sql)?
        .query_row([paused.to_string()], read_turn)
        .optional()?)
}

pub(crate) fn turns(
    c: &Connection,
    session: SessionId,
    before: Option<TurnId>,
    limit: usize,
) -> Result<Vec<TurnRow>, ReadError> {
    let sql = format!("{SELECT} WHERE s.id = ?1 AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3");
    query_rows(
        c,
        &sql,
        params![session.to_string(), cursor(before), limit as i64],
        read_turn,
    )
}

pub(crate) fn open_turns(c: &Connection) -> Result<Vec<TurnRow>, ReadError> {
    query_rows(
        c,
        &format!("{SELECT} WHERE t.ended IS NULL AND t.state <> 'queued' ORDER BY t.id"),
        [],
        read_turn,
    )
}
