//! Append, delete and trim: the transactions of the one writing connection.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use turnwire_event::{Seq, SessionId, Timestamp};

use crate::error::AppendError;
use crate::record::{EventRecord, SessionAppend};
use crate::sqlite::change;
use crate::sqlite::column::{execute, query_value};
use crate::sqlite::table::{key, session};

/// A cache of the sessions that were written to: row number and last event. One process owns the
/// file, so that an entry is never stale; an entry saves a read and an update for each append.
#[derive(Debug, Default)]
struct TailCache(HashMap<SessionId, (i64, Seq)>);

/// Entries of [`TailCache`]: 3 MB.
const CACHED_TAILS_MAX: usize = 50_000;

impl TailCache {
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
fn wal_bytes(append: &SessionAppend) -> usize {
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

/// The writing connection and what it keeps between commits.
#[derive(Debug)]
pub(crate) struct WriteHalf {
    pub(crate) connection: Connection,
    tails: TailCache,
    /// An estimate of the bytes in the WAL that are not checkpointed.
    pub(crate) wal_bytes: usize,
}

/// Bytes in the WAL that cause a checkpoint: large enough that checkpoints are rare, small enough
/// that opening after a crash is fast.
pub(crate) const CHECKPOINT_BYTES: usize = 32 << 20;

impl WriteHalf {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            tails: TailCache::default(),
            wal_bytes: 0,
        }
    }

    /// Writes a batch as [`Log::append`](crate::Log::append) promises.
    pub(crate) fn append(&mut self, batch: &[SessionAppend]) -> Result<(), AppendError> {
        let transaction = begin(&mut self.connection)?;
        let mut tails = Vec::with_capacity(batch.len());
        for append in batch {
            let tail = append_session(&transaction, &self.tails, append)?;
            tails.push((append.session, tail));
        }
        transaction.commit()?;
        self.tails.extend(tails);
        self.add_wal_bytes(batch.iter().map(wal_bytes).sum())
    }

    /// Removes old events as [`Log::trim`](crate::Log::trim) promises.
    pub(crate) fn trim(
        &mut self,
        before: Timestamp,
        sessions_max: usize,
    ) -> Result<Vec<(SessionId, Seq)>, AppendError> {
        let tx = begin(&mut self.connection)?;
        let mut trimmed = Vec::new();
        for (sid, id, low) in sessions_to_trim(&tx, before, sessions_max)? {
            let Ok(session) = id.parse() else { continue };
            if let Some(mark) = trim_one(&tx, sid, low, before)? {
                trimmed.push((session, Seq(mark as u64)));
            }
        }
        tx.commit()?;
        if !trimmed.is_empty() {
            self.checkpoint()?;
        }
        Ok(trimmed)
    }

    /// See [`Log::delete`](crate::Log::delete). The id stays as a tombstone.
    pub(crate) fn delete(&mut self, session: SessionId) -> Result<(), AppendError> {
        self.tails.0.remove(&session);
        let tx = begin(&mut self.connection)?;
        let id = session.to_string();
        let sid: Option<i64> =
            query_value(&tx, "SELECT sid FROM session WHERE id = ?1", [&id]).optional()?;
        if let Some(sid) = sid {
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
        }
        tx.commit()?;
        self.checkpoint()
    }

    /// Removes old keys as [`TurnRecords::expire_keys`](crate::TurnRecords::expire_keys) promises.
    pub(crate) fn expire_keys(
        &mut self,
        before: Timestamp,
        max: usize,
    ) -> Result<usize, AppendError> {
        let removed = key::expire(&self.connection, before, max)?;
        self.add_wal_bytes(key::wal_bytes(removed))?;
        Ok(removed)
    }

    /// Adds what a commit has written, and checkpoints if the WAL is large enough.
    fn add_wal_bytes(&mut self, bytes: usize) -> Result<(), AppendError> {
        self.wal_bytes += bytes;
        if self.wal_bytes >= CHECKPOINT_BYTES {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Copies the WAL into the database file.
    pub(crate) fn checkpoint(&mut self) -> Result<(), AppendError> {
        self.wal_bytes = 0;
        let pragma = "PRAGMA wal_checkpoint(PASSIVE)";
        let checkpointed = self.connection.query_row(pragma, [], |_| Ok(()));
        match checkpointed.map_err(AppendError::from) {
            // Full disk or a reader in the way: the commits are durable, a later checkpoint copies them.
            Err(AppendError::Full | AppendError::Busy) => Ok(()),
            result => result,
        }
    }
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Writes the events and rows of one session; returns its row number and last event.
fn append_session(
    tx: &Transaction<'_>,
    cache: &TailCache,
    append: &SessionAppend,
) -> Result<(i64, Seq), AppendError> {
    let (sid, tail) = match cache.0.get(&append.session) {
        Some(&cached) => cached,
        None => {
            session::create(tx, append)?;
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
        insert(tx, sid, record)?;
        last = record.seq;
    }
    for placed in &append.rows {
        change::apply(tx, sid, placed)?;
    }
    Ok((sid, last))
}

fn insert(tx: &Transaction<'_>, sid: i64, record: &EventRecord) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO event (sid, seq, type, turn, actor, time, hidden, hash, bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            sid,
            record.seq.0 as i64,
            record.kind.name(),
            record.turn.map(|turn| turn.to_string()),
            record.actor.to_string(),
            record.time.as_millis(),
            record.hidden,
            &record.hash.0[..],
            &record.bytes[..],
        ],
    )
    .map(drop)
}

/// The sessions whose oldest event is older than `before`: row number, id and low-water mark.
fn sessions_to_trim(
    tx: &Transaction<'_>,
    before: Timestamp,
    sessions_max: usize,
) -> rusqlite::Result<Vec<(i64, String, i64)>> {
    // The first event of a session is its oldest: one index lookup for each session. An open turn
    // keeps its events, as ending it after a crash reads them.
    let mut due = tx.prepare_cached(
        "SELECT s.sid, s.id, s.low_seq FROM session s \
         WHERE (SELECT e.time FROM event e WHERE e.sid = s.sid ORDER BY e.seq LIMIT 1) < ?1 \
         AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.sid = s.sid AND t.ended IS NULL) LIMIT ?2",
    )?;
    let values = params![before.as_millis(), sessions_max as i64];
    due.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

fn trim_one(
    tx: &Transaction<'_>,
    sid: i64,
    low: i64,
    before: Timestamp,
) -> rusqlite::Result<Option<i64>> {
    let mark: Option<i64> = query_value(
        tx,
        "SELECT max(e.seq) FROM event e WHERE e.sid = ?1 AND e.time < ?2 AND e.seq <= ?3",
        [sid, before.as_millis(), low + TRIM_EVENTS_MAX],
    )?;
    let Some(mark) = mark.filter(|&mark| mark > low) else {
        return Ok(None);
    };
    let sql = "UPDATE session SET low_seq = ?2, \
         low_hash = (SELECT hash FROM event WHERE sid = ?1 AND seq = ?2) WHERE sid = ?1";
    execute(tx, sql, [sid, mark])?;
    execute(
        tx,
        "DELETE FROM event WHERE sid = ?1 AND seq <= ?2",
        [sid, mark],
    )?;
    Ok(Some(mark))
}
