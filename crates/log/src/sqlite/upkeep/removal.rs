//! Removal of the rows of deleted sessions, in pieces on the writing connection.

use std::collections::HashSet;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Transaction, params, params_from_iter};

use crate::error::AppendError;
use crate::maintenance::{PieceBudget, PieceMeter, Progress};
use crate::sqlite::column::execute;
use crate::sqlite::wal::commit_tail::CommitTail;
use crate::sqlite::write::{WriteHalf, begin};

impl WriteHalf {
    /// Removes rows as [`Maintenance::remove_deleted`](crate::Maintenance::remove_deleted) promises.
    pub(crate) fn remove_deleted(&mut self, budget: &PieceBudget) -> Result<Progress, AppendError> {
        let Some(mut sid) = next_removal(&self.connection, &self.damaged)? else {
            return Ok(Progress::Done);
        };
        let mut meter = PieceMeter::start(budget);
        let tx = begin(&mut self.connection)?;
        let progress = loop {
            match remove_rows(&tx, sid, &mut meter) {
                Ok(true) => {}
                Ok(false) => break Progress::More,
                Err(error) if is_damage(&error) => {
                    drop(tx);
                    self.skip_damaged(sid, &error);
                    return Ok(Progress::More);
                }
                Err(error) => return Err(error.into()),
            }
            execute(&tx, "DELETE FROM removal WHERE sid = ?1", [sid])?;
            meter.add(1, 0);
            // A session without rows spends only this.
            if meter.is_spent() {
                break Progress::More;
            }
            match next_removal(&tx, &self.damaged)? {
                Some(next) => sid = next,
                None => break Progress::Done,
            }
        };
        self.erase.add_removal(&tx)?;
        let changes = CommitTail::count_change(&tx)?;
        tx.commit()?;
        self.tail = CommitTail::of_events(&self.connection, changes)?;
        self.after_commit()?;
        Ok(progress)
    }

    /// Leaves the session `sid` out of retention and removal until the next start, so that its damage
    /// does not keep those of other sessions from going on.
    pub(super) fn skip_damaged(&mut self, sid: i64, error: &rusqlite::Error) {
        tracing::error!(
            session_row = sid,
            %error,
            "a session's rows are damaged and cannot be removed: restore the database from a backup"
        );
        self.damaged.insert(sid);
    }
}

/// The first deleted session whose rows are still to be removed and can be.
fn next_removal(c: &Connection, damaged: &HashSet<i64>) -> rusqlite::Result<Option<i64>> {
    let mut pending = c.prepare_cached("SELECT sid FROM removal ORDER BY sid")?;
    let mut rows = pending.query([])?;
    while let Some(row) = rows.next()? {
        let sid = row.get(0)?;
        if !damaged.contains(&sid) {
            return Ok(Some(sid));
        }
    }
    Ok(None)
}

/// True if the rows are damaged: another attempt fails at the same place.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch),
        None => true, // a column of the wrong type
    }
}

/// A table with rows of sessions, for their removal.
struct SessionTable {
    name: &'static str,
    /// The columns of a key that finds one row.
    key: &'static str,
    /// The bytes of a row that may be large.
    bytes: &'static str,
    /// The rows of the session `?1`.
    of_session: &'static str,
}

const OF_SESSION: &str = "sid = ?1";

/// Every table with rows of sessions except `session`, each with an index by session.
const SESSION_TABLES: &[SessionTable] = &[
    SessionTable {
        name: "event",
        key: "gid",
        bytes: "octet_length(bytes)",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "message_part",
        key: "sid, turn, message, part",
        bytes: "octet_length(blocks) + octet_length(cuts)",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "approval",
        key: "id",
        bytes: "octet_length(input_summary)",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "message",
        key: "id",
        bytes: "octet_length(content) + octet_length(cuts) + octet_length(inputs)",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "tool_call",
        key: "id",
        bytes: "0",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "llm_call",
        key: "id",
        bytes: "0",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "idempotency",
        key: "tenant, principal, route, session, key",
        bytes: "0",
        of_session: OF_SESSION,
    },
    SessionTable {
        name: "turn",
        key: "id",
        bytes: "coalesce(octet_length(queued), 0) + coalesce(octet_length(terminal), 0)",
        of_session: OF_SESSION,
    },
];

/// Removes rows of the deleted session `sid` within the budget; true if none is left.
fn remove_rows(tx: &Transaction<'_>, sid: i64, meter: &mut PieceMeter) -> rusqlite::Result<bool> {
    let mut has_removed = false;
    for table in SESSION_TABLES {
        loop {
            // A piece removes something, however slow the disk is: otherwise it would never end.
            if has_removed && meter.is_spent() {
                return Ok(false);
            }
            match table.remove(tx, sid, meter)? {
                0 => break,
                _ => has_removed = true,
            }
        }
    }
    Ok(true)
}

impl SessionTable {
    /// Removes rows of one session within the budget; returns their number.
    fn remove(
        &self,
        tx: &Transaction<'_>,
        sid: i64,
        meter: &mut PieceMeter,
    ) -> rusqlite::Result<usize> {
        let Self {
            name,
            key,
            bytes,
            of_session,
        } = self;
        let mut rows = tx.prepare_cached(&format!(
            "SELECT {bytes}, {key} FROM {name} WHERE {of_session} LIMIT ?2"
        ))?;
        let columns = rows.column_count();
        let rows = rows.query_map(params![sid, meter.rows_left() as i64], |row| {
            let key = (1..columns).map(|column| row.get(column));
            Ok((row.get(0)?, key.collect::<rusqlite::Result<Vec<Value>>>()?))
        })?;
        let rows: Vec<(i64, Vec<Value>)> = rows.collect::<rusqlite::Result<_>>()?;
        let places: Vec<String> = (1..columns).map(|place| format!("?{place}")).collect();
        let mut delete = tx.prepare_cached(&format!(
            "DELETE FROM {name} WHERE ({key}) = ({})",
            places.join(", ")
        ))?;
        let mut removed = 0;
        for (bytes, key) in rows {
            removed += delete.execute(params_from_iter(key))?;
            meter.add(1, bytes as u64);
            if meter.is_spent() {
                break;
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
pub(crate) fn removed_tables() -> Vec<&'static str> {
    SESSION_TABLES.iter().map(|table| table.name).collect()
}
