//! The idempotency table: the turn that each accepted submit key stands for.

use rusqlite::{Connection, Row, Transaction, params};
use turnwire_event::row::{KeyRow, KeyScope};
use turnwire_event::{Timestamp, TurnId};

use crate::sqlite::column::{SelectRow, execute, parsed, query_value, time};

/// Writes a key. A row that is there already has expired, and is replaced.
pub(crate) fn put(
    tx: &Transaction<'_>,
    sid: i64,
    (scope, turn, body_sha256): (&KeyScope, TurnId, &[u8; 32]),
    time: Timestamp,
) -> rusqlite::Result<()> {
    let [tenant, principal, route, session, key] = scope_columns(scope);
    execute(
        tx,
        "INSERT OR REPLACE INTO idempotency (tenant, principal, route, session, key, turn, body_sha256, created_at, sid) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            tenant, principal, route, session, key, turn.to_string(), &body_sha256[..], time.as_millis(), sid
        ],
    )
    .map(drop)
}

/// The columns that make a key unique: tenant, principal, route, session and key.
fn scope_columns(scope: &KeyScope) -> [String; 5] {
    [
        scope.owner.tenant.to_string(),
        scope.owner.principal.to_string(),
        scope.route.clone(),
        scope.session.map(|id| id.to_string()).unwrap_or_default(),
        scope.key.clone(),
    ]
}

impl SelectRow for KeyRow {
    const SELECT: &str = "SELECT turn, body_sha256, created_at FROM idempotency";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            turn_id: parsed(row, 0)?,
            body_sha256: row.get(1)?,
            created_at: time(row, 2)?,
        })
    }
}

/// The key of `scope`, if it was used in a session that was not deleted.
pub(crate) fn find(c: &Connection, scope: &KeyScope) -> rusqlite::Result<Option<KeyRow>> {
    let condition = "WHERE tenant = ?1 AND principal = ?2 AND route = ?3 AND session = ?4 AND key = ?5 \
         AND EXISTS (SELECT 1 FROM session s WHERE s.sid = idempotency.sid)";
    KeyRow::one(c, condition, scope_columns(scope))
}

/// Removes keys older than `before`, at most `max`, the oldest first. Writes nothing if there is no such key.
pub(crate) fn expire(c: &Connection, before: Timestamp, max: usize) -> rusqlite::Result<usize> {
    let due = "SELECT EXISTS (SELECT 1 FROM idempotency WHERE created_at < ?1)";
    if !query_value(c, due, [before.as_millis()])? {
        return Ok(0);
    }
    execute(
        c,
        "DELETE FROM idempotency WHERE (tenant, principal, route, session, key) IN \
         (SELECT tenant, principal, route, session, key FROM idempotency \
          WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
        params![before.as_millis(), max as i64],
    )
}
