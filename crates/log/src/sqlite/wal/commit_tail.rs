//! What the last commits wrote, as proof that a database file has them.
//!
//! Row numbers of events alone prove nothing: SQLite gives the number of a removed row again. So an
//! event is known by its hash too, and commits that write no event or remove some are counted, with
//! the exceptions of [`CommitTail::changes`].

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction};

use crate::chain::ChainHash;
use crate::sqlite::column::query_value;

/// The end of what was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitTail {
    /// The row number of the last event; 0 without events.
    pub(crate) event: i64,
    /// The first bytes of its hash; zeros if the stored one is damaged.
    pub(crate) hash: [u8; 8],
    /// Commits that wrote no event, or removed some. Not counted, because no client sees their loss
    /// and the server makes them again: the stored clock mark (`set_clock_mark`), expired
    /// idempotency keys (`expire_keys`), usage (`expire_usage`) and records of the audit
    /// (`expire_audit`), and released pages
    /// (`release_pages`).
    pub(crate) changes: i64,
}

const CHANGES: &str = "changes";

impl CommitTail {
    /// Reads the tail of a database.
    pub(crate) fn read(c: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        let changes: Option<i64> = query_value(c, sql, [CHANGES]).optional()?;
        Self::of_events(c, changes.unwrap_or(0))
    }

    /// The tail of a database with this number of changes.
    pub(crate) fn of_events(c: &Connection, changes: i64) -> rusqlite::Result<Self> {
        let mut newest =
            c.prepare_cached("SELECT gid, hash FROM event ORDER BY gid DESC LIMIT 1")?;
        let newest = newest.query_row([], |row| Ok((row.get(0)?, stored_hash_start(row, 1)?)));
        let (event, hash) = newest.optional()?.unwrap_or_default();
        Ok(Self {
            event,
            hash,
            changes,
        })
    }

    /// Counts a commit in its own transaction; returns the new number.
    pub(crate) fn count_change(tx: &Transaction<'_>) -> rusqlite::Result<i64> {
        let sql = "INSERT INTO meta (key, value) VALUES (?1, 1) \
                   ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value";
        query_value(tx, sql, [CHANGES])
    }

    /// True if a database has all of these commits, and possibly later ones.
    pub(crate) fn is_in(&self, c: &Connection) -> rusqlite::Result<bool> {
        let found = Self::read(c)?;
        if found.changes != self.changes {
            // A later change may have removed the event.
            return Ok(found.changes > self.changes);
        }
        let mut stored = c.prepare_cached("SELECT hash FROM event WHERE gid = ?1")?;
        let hash = stored.query_row([self.event], |row| stored_hash_start(row, 0));
        let hash = hash.optional()?;
        Ok(self.event == 0 || hash == Some(self.hash))
    }
}

/// The part of a hash that a tail keeps.
pub(crate) fn hash_start(hash: &ChainHash) -> [u8; 8] {
    let start = hash.0.first_chunk();
    start.copied().unwrap_or_default()
}

/// The part of a stored hash that a tail keeps. Zeros if the column is damaged: one bad row must stop
/// neither the start nor the retention of other sessions.
fn stored_hash_start(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; 8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) => hash_start(&ChainHash::from_column(bytes)),
        _ => [0; 8],
    })
}
