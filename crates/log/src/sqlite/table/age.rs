//! The table of the sessions' ages: the time of the oldest event of each session, oldest first.

use rusqlite::{Connection, OptionalExtension as _, Transaction};

use crate::maintenance::TrimCursor;
use crate::sqlite::column::execute;

/// Adds the time of a session's first event.
pub(crate) fn add(tx: &Transaction<'_>, oldest: i64, sid: i64) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO session_age (oldest, sid) VALUES (?1, ?2)";
    execute(tx, sql, [oldest, sid]).map(drop)
}

/// Replaces the row at `due` by the session's oldest event, if it has one.
pub(crate) fn set(
    tx: &Transaction<'_>,
    due: TrimCursor,
    oldest: Option<i64>,
) -> rusqlite::Result<()> {
    if oldest == Some(due.oldest) {
        return Ok(());
    }
    let sql = "DELETE FROM session_age WHERE oldest = ?1 AND sid = ?2";
    execute(tx, sql, [due.oldest, due.sid])?;
    oldest.map_or(Ok(()), |oldest| add(tx, oldest, due.sid))
}

/// The first session after `cursor` whose oldest event is older than `before`.
pub(crate) fn next_due(
    c: &Connection,
    before: i64,
    cursor: TrimCursor,
) -> rusqlite::Result<Option<TrimCursor>> {
    c.prepare_cached(
        "SELECT oldest, sid FROM session_age \
         WHERE (oldest, sid) > (?1, ?2) AND oldest < ?3 ORDER BY oldest, sid LIMIT 1",
    )?
    .query_row([cursor.oldest, cursor.sid, before], |row| {
        Ok(TrimCursor {
            oldest: row.get(0)?,
            sid: row.get(1)?,
        })
    })
    .optional()
}
