//! Trim and release of free pages: pieces on the writing connection.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use turnwire_event::{Position, Seq, SessionId, Timestamp, metric};

use crate::error::{AppendError, OpenError};
use crate::maintenance::{PieceBudget, PieceMeter, Progress, TrimCursor, TrimPiece};
use crate::sqlite::column::{execute, query_value};
use crate::sqlite::connection::open_error;
use crate::sqlite::table::age;
use crate::sqlite::upkeep::removal::is_damage;
use crate::sqlite::wal::commit_tail::CommitTail;
use crate::sqlite::write::{WriteHalf, begin};

/// Pages that one step of a vacuum moves; the budget is checked between two steps.
const VACUUM_STEP_PAGES: usize = 32;

/// Bytes that are released in the database before the file is cut by them, which the checkpoint does.
/// The file system syncs nothing while it cuts a file: 4 MB take some 10 ms, 256 MB almost half a
/// second.
const RELEASED_AHEAD_MAX: u64 = 1 << 20;

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
        if !piece.trimmed.is_empty() {
            self.erase.add_removal(&tx)?;
        }
        let changes = CommitTail::count_change(&tx)?;
        tx.commit()?;
        // First: the next event of an emptied session sets its age, whatever fails below.
        self.forget_tails(&emptied);
        self.tail = CommitTail::of_events(&self.connection, changes)?;
        self.after_commit()?;
        Ok(piece)
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
        if released_ahead(&self.connection, page_bytes)? >= RELEASED_AHEAD_MAX {
            // A read transaction keeps the checkpoint from the cut for as long as it is open.
            self.request_checkpoint();
            return Ok(Progress::Later);
        }
        let mut meter = PieceMeter::start(budget);
        let tx = begin(&mut self.connection)?;
        let mut left = excess(&tx)?;
        let before = query_value::<i64>(&tx, "PRAGMA page_count", [])? as u64;
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
        let after = query_value::<i64>(&tx, "PRAGMA page_count", [])? as u64;
        tx.commit()?;
        let released = before.saturating_sub(after) * page_bytes;
        metrics::counter!(metric::LOG_RELEASED_BYTES_TOTAL).increment(released);
        self.after_commit()?;
        // The checkpoint cuts the file while the writer rests.
        if left == 0 || released_ahead(&self.connection, page_bytes)? >= RELEASED_AHEAD_MAX {
            self.request_checkpoint();
        }
        Ok(match left {
            0 => Progress::Done,
            _ => Progress::More,
        })
    }
}

/// Bytes that were released in the database and are still in the file.
fn released_ahead(c: &Connection, page_bytes: u64) -> rusqlite::Result<u64> {
    let pages: i64 = query_value(c, "PRAGMA page_count", [])?;
    let file = c.path().map(std::fs::metadata);
    let file_bytes = file.and_then(Result::ok).map_or(0, |file| file.len());
    Ok(file_bytes.saturating_sub(pages as u64 * page_bytes))
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
    let first_kept = first_open_turn(tx, due.sid)?;
    let mark = remove_events(tx, due.sid, (before, first_kept), meter)?;
    if let Some((seq, hash)) = mark {
        let sql = "UPDATE session SET low_seq = ?2, low_hash = ?3 WHERE sid = ?1";
        execute(tx, sql, params![due.sid, seq, hash])?;
        meter.add(0, row_bytes);
        visited.trimmed = id.parse().ok().map(|id| (id, Seq(seq as u64)));
    }
    let first = "SELECT seq, time FROM event WHERE sid = ?1 ORDER BY seq LIMIT 1";
    let first: Option<(i64, i64)> = tx
        .prepare_cached(first)?
        .query_row([due.sid], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let oldest = first.map(|(_, time)| time);
    age::set(tx, due, oldest)?;
    visited.is_due = first.is_some_and(|(seq, time)| time < before && seq < first_kept);
    if oldest.is_none() {
        visited.emptied = id.parse().ok();
    }
    Ok(visited)
}

/// The number of the first event of the oldest open turn, which keeps its events: ending it after a
/// crash reads them. Greater than any number if no turn is open.
fn first_open_turn(tx: &Transaction<'_>, sid: i64) -> rusqlite::Result<i64> {
    // A queued turn has no events. The text order of event ids is the order of the events.
    let open = "SELECT MIN(started) FROM turn INDEXED BY turn_open \
                WHERE sid = ?1 AND ended IS NULL AND state <> 'queued'";
    let started: Option<String> = query_value(tx, open, [sid])?;
    Ok(started.map_or(i64::MAX, |started| {
        // A row that cannot be read keeps everything, as it may be the start of an open turn.
        let started = started.parse::<Position>();
        started.map_or(0, |started| started.seq.0 as i64)
    }))
}

/// Removes the oldest events of a session that are older than `before` and precede the event number
/// `first_kept`; returns the number and the hash of the last one.
fn remove_events(
    tx: &Transaction<'_>,
    sid: i64,
    (before, first_kept): (i64, i64),
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
        if time >= before || seq >= first_kept {
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
