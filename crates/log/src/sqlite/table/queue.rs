//! Queued turns: rows of the turn table in the state `queued`, ordered by their place.

use rusqlite::{Row, Transaction, params};
use turnwire_event::Position;
use turnwire_event::row::{PlacedChange, QueuedRow, TurnSettings};

use crate::sqlite::column::{SelectRow, code_name, execute, json, parsed};

/// Queues a turn. Its start is not known yet; the position after the tail is not after it.
pub(crate) fn put(
    tx: &Transaction<'_>,
    sid: i64,
    (turn, place, input): (&TurnSettings, i64, &str),
    placed: &PlacedChange,
) -> rusqlite::Result<()> {
    let after = Position::persisted(placed.at.epoch, placed.at.seq.next());
    execute(
        tx,
        "INSERT INTO turn (id, sid, kind, state, on_disconnect, disconnect_grace_ms, trace, started, started_at, \
         wire_version, queue_place, queued) VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            turn.turn_id.to_string(), sid, code_name(&turn.kind), code_name(&turn.on_disconnect),
            turn.disconnect_grace_ms as i64, turn.trace.as_ref().map(json), after.to_string(),
            placed.time.as_millis(), turn.wire_version, place, input
        ],
    )
    .map(drop)
}

impl SelectRow for QueuedRow {
    const SELECT: &str =
        "SELECT t.id, t.queue_place, t.queued FROM turn t JOIN session s ON s.sid = t.sid";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            turn_id: parsed(row, 0)?,
            place: row.get(1)?,
            input: row.get(2)?,
        })
    }
}
