//! Queued turns: rows of the turn table in the state `queued`, ordered by their place.

use rusqlite::{Connection, Transaction, params};
use turnwire_event::row::{PlacedChange, QueuedRow, RowChange};
use turnwire_event::{Position, SessionId};

use crate::error::ReadError;
use crate::sqlite::column::{json, parsed, query_rows, word};

/// Queues a turn. Its start is not known yet; the position after the tail is not after it.
pub(crate) fn put(tx: &Transaction<'_>, sid: i64, placed: &PlacedChange) -> rusqlite::Result<()> {
    let RowChange::TurnQueued {
        turn_id,
        kind,
        on_disconnect,
        disconnect_grace_ms,
        trace,
        wire_version,
        place,
        input,
    } = &placed.change
    else {
        return Ok(());
    };
    let after = Position::persisted(placed.at.epoch, placed.at.seq.next());
    tx.prepare_cached(
        "INSERT INTO turn (id, sid, kind, state, on_disconnect, disconnect_grace_ms, trace, started, started_at, \
         wire_version, queue_place, queued) VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        turn_id.to_string(), sid, word(kind), word(on_disconnect), *disconnect_grace_ms as i64,
        trace.as_ref().map(json), after.to_string(), placed.time.as_millis(), wire_version, place, input
    ])?;
    Ok(())
}

pub(crate) fn queued_turns(
    c: &Connection,
    session: SessionId,
) -> Result<Vec<QueuedRow>, ReadError> {
    let sql = "SELECT t.id, t.queue_place, t.queued FROM turn t JOIN session s ON s.sid = t.sid \
         WHERE s.id = ?1 AND t.state = 'queued' ORDER BY t.queue_place";
    query_rows(c, sql, [session.to_string()], |row| {
        Ok(QueuedRow {
            turn_id: parsed(row, 0)?,
            place: row.get(1)?,
            input: row.get(2)?,
        })
    })
}

pub(crate) fn queued_sessions(c: &Connection) -> Result<Vec<SessionId>, ReadError> {
    let sql = "SELECT s.id FROM session s WHERE s.sid IN (SELECT t.sid FROM turn t WHERE t.state = 'queued') ORDER BY s.id";
    query_rows(c, sql, [], |row| parsed(row, 0))
}
