//! The turn table: a turn starts, is cancelled, and ends.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use turnwire_event::row::{PlacedChange, TurnRow, TurnSettings};
use turnwire_event::{EventType, Owner, Position, SessionId, TurnId, UpstreamId};

use crate::sqlite::column::{
    SelectRow, code_name, execute, json, optional, optional_id, optional_time, owner, parsed,
    query_value, time, unreadable, value,
};

/// Starts a turn: inserts its row, or takes over the row that it had in the queue.
pub(crate) fn start(
    tx: &Transaction<'_>,
    sid: i64,
    (turn, agent_definition, resumes): (&TurnSettings, &str, Option<TurnId>),
    placed: &PlacedChange,
) -> rusqlite::Result<()> {
    let time = placed.time.as_millis();
    let changed = execute(
        tx,
        "INSERT INTO turn (id, sid, kind, state, on_disconnect, disconnect_grace_ms, trace, started, started_at, \
         wire_version, agent_definition, resumes) \
         VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
         ON CONFLICT (id) DO UPDATE SET state = 'running', started = ?7, started_at = ?8, \
         agent_definition = ?10, queued = NULL, queue_place = NULL \
         WHERE turn.state = 'queued' AND turn.sid = ?2",
        params![
            turn.turn_id.to_string(),
            sid,
            code_name(&turn.kind),
            code_name(&turn.on_disconnect),
            turn.disconnect_grace_ms as i64,
            turn.trace.as_ref().map(json),
            placed.at.to_string(),
            time,
            turn.wire_version,
            agent_definition,
            resumes.map(|id| id.to_string())
        ],
    )?;
    if changed != 1 {
        return Err(rusqlite::Error::StatementChangedRows(changed)); // it has started before
    }
    let counted = "UPDATE session SET turn_count = turn_count + 1, updated_at = ?2 WHERE sid = ?1";
    execute(tx, counted, [sid, time]).map(drop)
}

/// Marks a turn that has not ended as being cancelled.
pub(crate) fn cancel(tx: &Transaction<'_>, turn: TurnId) -> rusqlite::Result<()> {
    let sql = "UPDATE turn SET state = 'cancelling' WHERE id = ?1 AND ended IS NULL";
    execute(tx, sql, [turn.to_string()]).map(drop)
}

/// Stores the id that the upstream of a turn gave to its response.
pub(crate) fn put_response_id(
    tx: &Transaction<'_>,
    turn: TurnId,
    id: &UpstreamId,
) -> rusqlite::Result<()> {
    let sql = "UPDATE turn SET response_id = ?2, response_owner = \
         (SELECT tenant || ' ' || principal FROM session s WHERE s.sid = turn.sid) WHERE id = ?1";
    execute(tx, sql, [turn.to_string(), id.to_string()]).map(drop)
}

/// Returns the turn of `owner` whose response has this id.
pub(crate) fn of_response(
    c: &Connection,
    owner: &Owner,
    id: &UpstreamId,
) -> rusqlite::Result<Option<TurnId>> {
    // A deleted session has no row any more, its turns may have theirs for a while.
    let sql = "SELECT t.id FROM turn t JOIN session s ON s.sid = t.sid \
         WHERE t.response_owner = ?1 AND t.response_id = ?2";
    let owner = format!("{} {}", owner.tenant, owner.principal);
    let turn = query_value::<String>(c, sql, [owner, id.to_string()]).optional()?;
    Ok(turn.and_then(|turn| turn.parse().ok()))
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
    execute(
        tx,
        "UPDATE turn SET state = ?2, ended = ?3, ended_at = ?4, terminal_type = ?5, terminal = ?6 WHERE id = ?1",
        params![
            turn.to_string(),
            state,
            placed.at.to_string(),
            time,
            terminal.name(),
            payload
        ],
    )?;
    let updated = "UPDATE session SET updated_at = ?2 WHERE sid = ?1";
    execute(tx, updated, [sid, time]).map(drop)
}

/// The last terminal of a session at a position or before: one look into the index for each type.
const LAST_TERMINAL: &str = "SELECT turn FROM (\
    SELECT * FROM (SELECT seq, turn FROM event INDEXED BY event_type \
      WHERE sid = ?1 AND type = 'turn.completed' AND seq <= ?2 ORDER BY seq DESC LIMIT 1) \
    UNION ALL \
    SELECT * FROM (SELECT seq, turn FROM event INDEXED BY event_type \
      WHERE sid = ?1 AND type = 'turn.cancelled' AND seq <= ?2 ORDER BY seq DESC LIMIT 1)) \
  ORDER BY seq DESC LIMIT 1";

/// Returns the turn of a session whose terminal is the last one at `upto` or before. If the event has
/// been trimmed, this is the newest turn that had ended.
pub(crate) fn last_ended(
    c: &Connection,
    session: SessionId,
    upto: Position,
) -> rusqlite::Result<Option<TurnRow>> {
    let session = session.to_string();
    let sql = "SELECT sid FROM session WHERE id = ?1";
    let Some(sid) = query_value::<i64>(c, sql, [&session]).optional()? else {
        return Ok(None);
    };
    let upto_seq = i64::try_from(upto.seq.0).unwrap_or(i64::MAX);
    let terminal: Option<String> = query_value(c, LAST_TERMINAL, [sid, upto_seq]).optional()?;
    match terminal {
        Some(turn) => TurnRow::one(c, "WHERE t.id = ?1", [turn]),
        None => {
            let ended = "WHERE s.id = ?1 AND t.ended <= ?2 ORDER BY t.id DESC LIMIT 1";
            TurnRow::one(c, ended, [session, upto.to_string()])
        }
    }
}

impl SelectRow for TurnRow {
    const SELECT: &str = "SELECT t.id, s.id, t.kind, t.state, t.on_disconnect, t.disconnect_grace_ms, t.trace, \
        t.wire_version, t.agent_definition, t.resumes, t.started, t.started_at, t.ended, t.ended_at, \
        t.terminal_type, t.terminal, s.tenant, s.principal, t.response_id FROM turn t JOIN session s ON s.sid = t.sid";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let terminal = match row.get::<_, Option<String>>(14)? {
            None => None,
            Some(kind) => Some((kind.parse().map_err(|_| unreadable(14))?, value(row, 15)?)),
        };
        Ok(Self {
            id: parsed(row, 0)?,
            session_id: parsed(row, 1)?,
            kind: value(row, 2)?,
            state: value(row, 3)?,
            on_disconnect: value(row, 4)?,
            disconnect_grace_ms: row.get::<_, i64>(5)? as u64,
            trace: optional(row, 6)?,
            wire_version: row.get(7)?,
            agent_definition: row.get(8)?,
            resumes: optional_id(row, 9)?,
            response_id: optional_id(row, 18)?,
            started: parsed(row, 10)?,
            started_at: time(row, 11)?,
            ended: optional_id(row, 12)?,
            ended_at: optional_time(row, 13)?,
            terminal,
        })
    }
}

impl SelectRow for (Owner, TurnRow) {
    const SELECT: &str = TurnRow::SELECT;

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok((owner(row, 16)?, TurnRow::read(row)?))
    }
}
