//! Turns that wait and keys of submits: their rows, written with what they belong to, read when
//! a session is opened or a key comes again.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use turnwire_event::row::{KeyRow, KeyScope, Placed, QueuedRow, RowChange};
use turnwire_event::{Position, SessionId, Timestamp, TurnId};

use crate::error::{AppendError, ReadError};
use crate::sqlite::column::{json, word};
use crate::sqlite::connection::classify;

type Result<T> = std::result::Result<T, ReadError>;

/// Writes a turn that waits. Where it will start is not known: the place after the tail comes
/// before all of it.
pub(crate) fn put_turn(tx: &Transaction<'_>, sid: i64, placed: &Placed) -> rusqlite::Result<()> {
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

/// Writes a turn that starts: a new row, or the one it had while it waited.
pub(crate) fn start_turn(tx: &Transaction<'_>, sid: i64, placed: &Placed) -> rusqlite::Result<()> {
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
        return Err(rusqlite::Error::StatementChangedRows(changed)); // it had started before
    }
    tx.prepare_cached(
        "UPDATE session SET turn_count = turn_count + 1, updated_at = ?2 WHERE sid = ?1",
    )?
    .execute(params![sid, time])?;
    Ok(())
}

/// Writes a key; one that was there before had expired.
pub(crate) fn put_key(
    tx: &Transaction<'_>,
    sid: i64,
    (scope, turn, body_sha256): (&KeyScope, TurnId, &[u8; 32]),
    time: Timestamp,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO idempotency (tenant, principal, route, session, key, turn, body_sha256, created_at, sid) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        scope.owner.tenant.to_string(), scope.owner.principal.as_str(), scope.route, session(scope), scope.key,
        turn.to_string(), &body_sha256[..], time.as_millis(), sid
    ])?;
    Ok(())
}

fn session(scope: &KeyScope) -> String {
    scope.session.map(|id| id.to_string()).unwrap_or_default()
}

fn parsed<T: std::str::FromStr>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    let kind = rusqlite::types::Type::Text;
    text.parse()
        .map_err(|_| rusqlite::Error::InvalidColumnType(at, "unreadable".into(), kind))
}

pub(crate) fn queued(c: &Connection, id: SessionId) -> Result<Vec<QueuedRow>> {
    let mut statement = c.prepare_cached(
        "SELECT t.id, t.queue_place, t.queued FROM turn t JOIN session s ON s.sid = t.sid \
         WHERE s.id = ?1 AND t.state = 'queued' ORDER BY t.queue_place",
    )?;
    let rows = statement.query_map([id.to_string()], |row| {
        Ok(QueuedRow {
            turn_id: parsed(row, 0)?,
            place: row.get(1)?,
            input: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn queues(c: &Connection) -> Result<Vec<SessionId>> {
    let mut statement = c.prepare_cached(
        "SELECT s.id FROM session s WHERE s.sid IN (SELECT t.sid FROM turn t WHERE t.state = 'queued') ORDER BY s.id",
    )?;
    let rows = statement.query_map([], |row| parsed(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn key(c: &Connection, scope: &KeyScope) -> Result<Option<KeyRow>> {
    let mut statement = c.prepare_cached(
        "SELECT turn, body_sha256, created_at FROM idempotency \
         WHERE tenant = ?1 AND principal = ?2 AND route = ?3 AND session = ?4 AND key = ?5",
    )?;
    let values = params![
        scope.owner.tenant.to_string(),
        scope.owner.principal.as_str(),
        scope.route,
        session(scope),
        scope.key
    ];
    let found = statement.query_row(values, |row| {
        Ok(KeyRow {
            turn_id: parsed(row, 0)?,
            body_sha256: row.get(1)?,
            created_at: Timestamp::from_millis(row.get(2)?),
        })
    });
    Ok(found.optional()?)
}

/// About what removing so many keys adds to the side file: keys of one time are spread over the
/// table, so each has a page of its own there, and its share of one in each of the two indexes.
pub(crate) fn weight(removed: usize) -> usize {
    const PAGE: usize = 4096;
    removed * 2 * PAGE
}

/// Removes keys older than `before`, at most `max`; nothing is written if there are none.
pub(crate) fn forget_keys(
    c: &Connection,
    before: Timestamp,
    max: usize,
) -> std::result::Result<usize, AppendError> {
    let run = || -> rusqlite::Result<usize> {
        let due: bool = c
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM idempotency WHERE created_at < ?1)")?
            .query_row([before.as_millis()], |row| row.get(0))?;
        if !due {
            return Ok(0);
        }
        c.prepare_cached(
            "DELETE FROM idempotency WHERE (tenant, principal, route, session, key) IN \
             (SELECT tenant, principal, route, session, key FROM idempotency \
              WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), max as i64])
    };
    run().map_err(|error| classify(&error))
}
