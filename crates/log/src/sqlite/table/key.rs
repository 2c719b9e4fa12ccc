//! The idempotency table: the turn that each accepted submit key stands for.

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use turnwire_event::row::{KeyRow, KeyScope};
use turnwire_event::{Timestamp, TurnId};

use crate::error::{AppendError, ReadError};
use crate::sqlite::column::{parsed, time};
use crate::sqlite::connection::classify;

/// Writes a key. A row that is there already has expired, and is replaced.
pub(crate) fn put(
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
        scope.owner.tenant.to_string(), scope.owner.principal.as_str(), scope.route, session_column(scope), scope.key,
        turn.to_string(), &body_sha256[..], time.as_millis(), sid
    ])?;
    Ok(())
}

fn session_column(scope: &KeyScope) -> String {
    scope.session.map(|id| id.to_string()).unwrap_or_default()
}

pub(crate) fn key(c: &Connection, scope: &KeyScope) -> Result<Option<KeyRow>, ReadError> {
    let mut statement = c.prepare_cached(
        "SELECT turn, body_sha256, created_at FROM idempotency \
         WHERE tenant = ?1 AND principal = ?2 AND route = ?3 AND session = ?4 AND key = ?5",
    )?;
    let values = params![
        scope.owner.tenant.to_string(),
        scope.owner.principal.as_str(),
        scope.route,
        session_column(scope),
        scope.key
    ];
    let row = statement.query_row(values, |row| {
        Ok(KeyRow {
            turn_id: parsed(row, 0)?,
            body_sha256: row.get(1)?,
            created_at: time(row, 2)?,
        })
    });
    Ok(row.optional()?)
}

/// An estimate of the bytes that removing `removed` keys adds to the WAL. Keys of one time are spread
/// over the table: each has a page of its own, and a share of a page in each of the two indexes.
pub(crate) fn wal_bytes(removed: usize) -> usize {
    const PAGE: usize = 4096;
    removed * 2 * PAGE
}

/// Removes keys older than `before`, at most `max`, the oldest first. Writes nothing if there is no such key.
pub(crate) fn expire(c: &Connection, before: Timestamp, max: usize) -> Result<usize, AppendError> {
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
