//! Trim, removal of deleted sessions, and release of free pages: pieces on the writing connection.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Transaction, params, params_from_iter,
};
use turnwire_event::{Seq, SessionId, Timestamp};

use crate::error::{AppendError, OpenError};
use crate::maintenance::{
    ClockMark, PieceBudget, PieceMeter, Progress, TrimCursor, TrimPiece, Uptime,
};
use crate::sqlite::column::{execute, query_value};
use crate::sqlite::connection::open_error;
use crate::sqlite::table::age;
use crate::sqlite::write::{WriteHalf, begin};

/// Pages that one step of a vacuum moves; the budget is checked between two steps.
const VACUUM_STEP_PAGES: usize = 32;

impl WriteHalf {
    /// Removes old events as [`Log::trim`](crate::Log::trim) promises.
    pub(crate) fn trim(
        &mut self,
        before: Timestamp,
        after: TrimCursor,
        budget: &PieceBudget,
    ) -> Result<TrimPiece, AppendError> {
        let before = before.as_millis();
        let mut piece = TrimPiece {
            trimmed: Vec::new(),
            next: Some(after),
        };
        // A sweep without due sessions writes nothing.
        if age::next_due(&self.connection, before, after)?.is_none() {
            piece.next = None;
            return Ok(piece);
        }
        let mut meter = PieceMeter::start(budget);
        let mut emptied = Vec::new();
        let tx = begin(&mut self.connection)?;
        while let Some(cursor) = piece.next.filter(|_| !meter.is_spent()) {
            let Some(due) = age::next_due(&tx, before, cursor)? else {
                piece.next = None;
                break;
            };
            if self.damaged.contains(&due.sid) {
                piece.next = Some(due);
                continue;
            }
            let visited = match trim_session(&tx, due, before, &mut meter) {
                Err(error) if is_damage(&error) => {
                    drop(tx);
                    self.skip_damaged(due.sid, &error);
                    // The same piece again, without this session.
                    piece.next = Some(after);
                    piece.trimmed.clear();
                    return Ok(piece);
                }
                visited => visited?,
            };
            // A session that is not finished is due again, possibly at the same place.
            if !visited.is_due {
                piece.next = Some(due);
            }
            emptied.extend(visited.emptied);
            piece.trimmed.extend(visited.trimmed);
        }
        tx.commit()?;
        self.forget_tails(&emptied);
        self.after_commit()?;
        Ok(piece)
    }

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
            match next_removal(&tx, &self.damaged)? {
                Some(next) => sid = next,
                None => break Progress::Done,
            }
        };
        tx.commit()?;
        self.after_commit()?;
        Ok(progress)
    }

    /// Leaves the session `sid` out of retention and removal until the next start, so that its damage
    /// does not keep those of other sessions from going on.
    fn skip_damaged(&mut self, sid: i64, error: &rusqlite::Error) {
        tracing::error!(
            session_row = sid,
            %error,
            "a session's rows are damaged and cannot be removed: restore the database from a backup"
        );
        self.damaged.insert(sid);
    }

    /// Releases pages as [`Maintenance::release_pages`](crate::Maintenance::release_pages) promises.
    pub(crate) fn release_pages(
        &mut self,
        keep_bytes: u64,
        budget: &PieceBudget,
    ) -> Result<Progress, AppendError> {
        let page_bytes: u64 = query_value::<i64>(&self.connection, "PRAGMA page_size", [])? as u64;
        let excess = |c: &Connection| -> rusqlite::Result<u64> {
            let free = query_value::<i64>(c, "PRAGMA freelist_count", [])? as u64;
            Ok(free.saturating_sub(keep_bytes / page_bytes))
        };
        if !is_incremental(&self.connection)? || excess(&self.connection)? == 0 {
            return Ok(Progress::Done);
        }
        let mut meter = PieceMeter::start(budget);
        let tx = begin(&mut self.connection)?;
        let mut left = excess(&tx)?;
        while left > 0 && !meter.is_spent() {
            let step = left.min(VACUUM_STEP_PAGES as u64);
            // Every step of the statement moves one page.
            let mut vacuum = tx.prepare_cached(&format!("PRAGMA incremental_vacuum({step})"))?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
            meter.add(step as usize, 0); // each may dirty a page of its own
            let remaining = excess(&tx)?;
            if remaining >= left {
                left = 0; // no page can be moved
                break;
            }
            left = remaining;
        }
        tx.commit()?;
        self.after_commit()?;
        if left > 0 {
            return Ok(Progress::More);
        }
        // The file shrinks with the checkpoint.
        self.request_checkpoint();
        Ok(Progress::Done)
    }

    /// Replaces the stored mark in one transaction.
    pub(crate) fn set_clock_mark(&mut self, mark: &ClockMark) -> Result<(), AppendError> {
        let tx = begin(&mut self.connection)?;
        let (boot, millis) = mark.uptime.map_or((0, -1), |up| (up.boot, up.millis));
        for (key, value) in [
            (TRUSTED, mark.trusted.as_millis()),
            (SWEPT, mark.swept.as_millis()),
            (BOOT, boot),
            (UPTIME, millis),
        ] {
            let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
            execute(&tx, sql, params![key, value])?;
        }
        tx.commit()?;
        self.after_commit()
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
fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch),
        None => true, // a column of the wrong type
    }
}

const TRUSTED: &str = "trusted_ms";
const SWEPT: &str = "swept_ms";
const BOOT: &str = "trusted_boot";
const UPTIME: &str = "trusted_uptime_ms";

/// Reads the mark from the table `meta`; `None` in a database of an older release.
pub(crate) fn clock_mark(c: &Connection) -> rusqlite::Result<Option<ClockMark>> {
    let value = |key: &str| -> rusqlite::Result<Option<i64>> {
        query_value(c, "SELECT value FROM meta WHERE key = ?1", [key]).optional()
    };
    let Some(trusted) = value(TRUSTED)?.map(Timestamp::from_millis) else {
        return Ok(None);
    };
    let uptime = match (value(BOOT)?, value(UPTIME)?) {
        (Some(boot), Some(millis)) if millis >= 0 => Some(Uptime { boot, millis }),
        _ => None,
    };
    let swept = value(SWEPT)?.map_or(trusted, Timestamp::from_millis);
    Ok(Some(ClockMark {
        trusted,
        swept,
        uptime,
    }))
}

/// The time of the event that was appended last.
pub(crate) fn newest_event_time(c: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "SELECT time FROM event ORDER BY gid DESC LIMIT 1";
    let time: Option<i64> = query_value(c, sql, []).optional()?;
    Ok(time.map(Timestamp::from_millis))
}

/// Logs a line if free pages of the file cannot be given back.
pub(crate) fn report_vacuum_mode(c: &Connection, path: &Path) -> Result<(), OpenError> {
    let is_incremental = is_incremental(c).map_err(|error| open_error(path, &error))?;
    if !is_incremental {
        tracing::info!(
            "this database keeps the space of removed events for later ones; stop the server and \
             run `turnwire compact` once to convert it, then space is given back"
        );
    }
    Ok(())
}

/// Whether the file was created with `auto_vacuum = INCREMENTAL`.
pub(crate) fn is_incremental(c: &Connection) -> rusqlite::Result<bool> {
    Ok(query_value::<i64>(c, "PRAGMA auto_vacuum", [])? == 2)
}

/// What a sweep did with one session.
#[derive(Default)]
struct VisitedSession {
    /// True if events are left that are due.
    is_due: bool,
    /// The session and its new low-water mark, if events were removed.
    trimmed: Option<(SessionId, Seq)>,
    /// The session, if no event is left.
    emptied: Option<SessionId>,
}

/// Removes due events of one session within the budget, and updates its age.
fn trim_session(
    tx: &Transaction<'_>,
    due: TrimCursor,
    before: i64,
    meter: &mut PieceMeter,
) -> rusqlite::Result<VisitedSession> {
    meter.add(1, 0);
    let mut visited = VisitedSession::default();
    let row: Option<(String, u64)> = tx
        .prepare_cached("SELECT id, octet_length(metadata) FROM session WHERE sid = ?1")?
        .query_row([due.sid], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })
        .optional()?;
    let Some((id, row_bytes)) = row else {
        return age::set(tx, due, None).map(|()| visited); // deleted
    };
    // An open turn keeps its events, as ending it after a crash reads them.
    let open =
        "SELECT EXISTS (SELECT 1 FROM turn INDEXED BY turn_open WHERE sid = ?1 AND ended IS NULL)";
    if query_value(tx, open, [due.sid])? {
        return Ok(visited);
    }
    let mark = remove_events(tx, due.sid, before, meter)?;
    if let Some((seq, hash)) = mark {
        let sql = "UPDATE session SET low_seq = ?2, low_hash = ?3 WHERE sid = ?1";
        execute(tx, sql, params![due.sid, seq, hash])?;
        meter.add(0, row_bytes);
        visited.trimmed = id.parse().ok().map(|id| (id, Seq(seq as u64)));
    }
    let first = "SELECT time FROM event WHERE sid = ?1 ORDER BY seq LIMIT 1";
    let oldest: Option<i64> = query_value(tx, first, [due.sid]).optional()?;
    age::set(tx, due, oldest)?;
    visited.is_due = oldest.is_some_and(|oldest| oldest < before);
    if oldest.is_none() {
        visited.emptied = id.parse().ok();
    }
    Ok(visited)
}

/// Removes the oldest events of a session that are older than `before`; returns the number and the
/// hash of the last one.
fn remove_events(
    tx: &Transaction<'_>,
    sid: i64,
    before: i64,
    meter: &mut PieceMeter,
) -> rusqlite::Result<Option<(i64, Vec<u8>)>> {
    let mut oldest = tx.prepare_cached(
        "SELECT gid, seq, time, octet_length(bytes), hash FROM event WHERE sid = ?1 ORDER BY seq LIMIT ?2",
    )?;
    let rows = oldest.query_map(params![sid, meter.rows_left() as i64], |row| {
        let columns: (i64, i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((columns, row.get::<_, Vec<u8>>(4)?))
    })?;
    let rows: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let mut mark = None;
    for ((gid, seq, time, bytes), hash) in rows {
        if time >= before {
            break;
        }
        execute(tx, "DELETE FROM event WHERE gid = ?1", [gid])?;
        mark = Some((seq, hash));
        meter.add(1, bytes as u64);
        if meter.is_spent() {
            break;
        }
    }
    Ok(mark)
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
        key: "message, part",
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
