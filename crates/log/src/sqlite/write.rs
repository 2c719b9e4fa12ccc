//! Append, delete and trim: the transactions of the one writing connection.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use turnwire_event::{Seq, SessionId, Timestamp};

use crate::error::AppendError;
use crate::record::{EventRecord, SessionAppend};
use crate::sqlite::change;
use crate::sqlite::connection::classify;
use crate::sqlite::table::session;

/// A cache of the sessions that were written to: row number and last event. One process owns the
/// file, so that an entry is never stale; an entry saves a read and an update for each append.
#[derive(Debug, Default)]
pub(crate) struct TailCache(HashMap<SessionId, (i64, Seq)>);

/// Entries of [`TailCache`]: 3 MB.
const CACHED_TAILS_MAX: usize = 50_000;

impl TailCache {
    pub(crate) fn remove(&mut self, session: SessionId) {
        self.0.remove(&session);
    }

    fn extend(&mut self, tails: Vec<(SessionId, (i64, Seq))>) {
        // An entry that is gone is read again with the next append.
        if self.0.len() > CACHED_TAILS_MAX {
            self.0.clear();
        }
        self.0.extend(tails);
    }
}

/// Events that a trim removes from one session: bounds how long the writer is busy.
const TRIM_EVENTS_MAX: i64 = 10_000;

/// An estimate of the bytes that an append adds to the WAL: its events and rows, and the pages they
/// touch, among them one page of the index `event_order` for nearly every session.
pub(crate) fn wal_bytes(append: &SessionAppend) -> usize {
    const PAGE: usize = 4096;
    let events: usize = append
        .records
        .iter()
        .map(|record| record.bytes.len() + PAGE / 4)
        .sum();
    let rows: usize = append
        .rows
        .iter()
        .map(|placed| change::byte_estimate(&placed.change) + PAGE / 2)
        .sum();
    PAGE + events + rows
}

/// Copies the WAL into the database file.
pub(crate) fn checkpoint(connection: &Connection) -> Result<(), AppendError> {
    let checkpointed = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    match checkpointed.map_err(|error| classify(&error)) {
        // Full disk or a reader in the way: the commits are durable, a later checkpoint copies them.
        Err(AppendError::Full | AppendError::Busy) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn append(
    connection: &mut Connection,
    cache: &mut TailCache,
    batch: &[SessionAppend],
) -> Result<(), AppendError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| classify(&e))?;
    let mut tails = Vec::with_capacity(batch.len());
    for append in batch {
        let tail = append_session(&transaction, cache, append)?;
        tails.push((append.session, tail));
    }
    transaction.commit().map_err(|e| classify(&e))?;
    cache.extend(tails);
    Ok(())
}

/// Writes the events and rows of one session; returns its row number and last event.
fn append_session(
    tx: &Transaction<'_>,
    cache: &TailCache,
    append: &SessionAppend,
) -> Result<(i64, Seq), AppendError> {
    let sql = |error: rusqlite::Error| classify(&error);
    let (sid, tail) = match cache.0.get(&append.session) {
        Some(&cached) => cached,
        None => {
            session::create(tx, append).map_err(sql)?;
            session::find(tx, append.session, append.term)?
        }
    };
    if tail != append.prev {
        return Err(AppendError::Refused(format!(
            "expected event {} to be the last, it is {}",
            append.prev.0, tail.0
        )));
    }
    let mut last = tail;
    for record in &append.records {
        if record.seq != last.next() {
            return Err(AppendError::Refused(format!(
                "event {} does not follow {}",
                record.seq.0, last.0
            )));
        }
        insert(tx, sid, record).map_err(sql)?;
        last = record.seq;
    }
    for placed in &append.rows {
        change::apply(tx, sid, placed).map_err(sql)?;
    }
    Ok((sid, last))
}

fn insert(tx: &Transaction<'_>, sid: i64, record: &EventRecord) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO event (sid, seq, type, turn, actor, time, hidden, hash, bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    statement.execute(params![
        sid,
        record.seq.0 as i64,
        record.kind.name(),
        record.turn.map(|turn| turn.to_string()),
        record.actor.to_string(),
        record.time.as_millis(),
        record.hidden,
        &record.hash.0[..],
        &record.bytes[..],
    ])?;
    Ok(())
}

/// See [`Log::delete`](crate::Log::delete). The id stays as a tombstone.
pub(crate) fn delete(connection: &mut Connection, session: SessionId) -> Result<(), AppendError> {
    let run = |connection: &mut Connection| -> rusqlite::Result<()> {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id = session.to_string();
        let sid: i64 = tx.query_row("SELECT sid FROM session WHERE id = ?1", [&id], |row| {
            row.get(0)
        })?;
        for table in [
            "event",
            "turn",
            "message",
            "message_part",
            "tool_call",
            "llm_call",
            "approval",
            "idempotency",
            "session",
        ] {
            tx.execute(&format!("DELETE FROM {table} WHERE sid = ?1"), [sid])?;
        }
        tx.execute("INSERT OR IGNORE INTO tombstone (id) VALUES (?1)", [&id])?;
        tx.commit()
    };
    match run(connection) {
        Err(rusqlite::Error::QueryReturnedNoRows) | Ok(()) => Ok(()),
        Err(error) => Err(classify(&error)),
    }
}

pub(crate) fn trim(
    connection: &mut Connection,
    before: Timestamp,
    sessions_max: usize,
) -> Result<Vec<(SessionId, Seq)>, AppendError> {
    let run = |connection: &mut Connection| -> rusqlite::Result<Vec<(SessionId, Seq)>> {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut due_sessions = Vec::new();
        {
            // The first event of a session is its oldest: one index lookup for each session. An
            // open turn keeps its events, as ending it after a crash reads them.
            let mut due = tx.prepare_cached(
                "SELECT s.sid, s.id, s.low_seq FROM session s \
                 WHERE (SELECT e.time FROM event e WHERE e.sid = s.sid ORDER BY e.seq LIMIT 1) < ?1 \
                 AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.sid = s.sid AND t.ended IS NULL) LIMIT ?2",
            )?;
            let mut rows = due.query(params![before.as_millis(), sessions_max as i64])?;
            while let Some(row) = rows.next()? {
                due_sessions.push((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, i64>(2)?,
                ));
            }
        }
        let mut trimmed = Vec::new();
        for (sid, id, low) in due_sessions {
            let Ok(session) = id.parse::<SessionId>() else {
                continue;
            };
            if let Some(mark) = trim_one(&tx, sid, low, before)? {
                trimmed.push((session, Seq(mark as u64)));
            }
        }
        tx.commit()?;
        Ok(trimmed)
    };
    run(connection).map_err(|error| classify(&error))
}

fn trim_one(
    tx: &Transaction<'_>,
    sid: i64,
    low: i64,
    before: Timestamp,
) -> rusqlite::Result<Option<i64>> {
    let mark: Option<i64> = tx
        .prepare_cached(
            "SELECT max(e.seq) FROM event e WHERE e.sid = ?1 AND e.time < ?2 AND e.seq <= ?3",
        )?
        .query_row(
            params![sid, before.as_millis(), low + TRIM_EVENTS_MAX],
            |row| row.get(0),
        )?;
    let Some(mark) = mark.filter(|&mark| mark > low) else {
        return Ok(None);
    };
    let hash: Vec<u8> = tx
        .prepare_cached("SELECT hash FROM event WHERE sid = ?1 AND seq = ?2")?
        .query_row([sid, mark], |row| row.get(0))?;
    tx.prepare_cached("UPDATE session SET low_seq = ?2, low_hash = ?3 WHERE sid = ?1")?
        .execute(params![sid, mark, hash])?;
    tx.prepare_cached("DELETE FROM event WHERE sid = ?1 AND seq <= ?2")?
        .execute([sid, mark])?;
    Ok(Some(mark))
}
