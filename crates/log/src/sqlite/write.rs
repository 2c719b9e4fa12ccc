//! Appending, deleting, trimming: everything the one writing connection does.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use turnwire_event::{Seq, SessionId, Timestamp};

use crate::error::AppendError;
use crate::record::{Append, Record};
use crate::sqlite::connection::classify;
use crate::sqlite::row;

/// What the writer knows of the sessions it has written to: their row number and last event.
/// One process owns the file, so this is never stale; it saves a read and an update an append.
#[derive(Debug)]
pub(crate) struct Tails(pub(crate) HashMap<SessionId, (i64, Seq)>);

/// Sessions whose tails are remembered: 3 MB of them.
const TAILS_MAX: usize = 50_000;

/// Events removed from one session in one transaction: bounds how long the writer is busy.
const TRIM_EVENTS_MAX: i64 = 10_000;

/// About what a part of a batch adds to the side file: its bytes, and the pages it touches, one
/// of the order's index for nearly every session.
pub(crate) fn weight(part: &Append) -> usize {
    const PAGE: usize = 4096;
    let events: usize = part
        .records
        .iter()
        .map(|record| record.bytes.len() + PAGE / 4)
        .sum();
    let rows: usize = part
        .rows
        .iter()
        .map(|placed| row::weight(&placed.change) + PAGE / 2)
        .sum();
    PAGE + events + rows
}

/// Copies what commits have written aside into the database itself.
pub(crate) fn checkpoint(connection: &Connection) -> Result<(), AppendError> {
    let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    match done.map_err(|error| classify(&error)) {
        // No room or a reader in the way: the batch itself is safe, the copy is made another time.
        Err(AppendError::Full | AppendError::Busy) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a batch in one transaction.
pub(crate) fn append(
    connection: &mut Connection,
    tails: &mut Tails,
    batch: &[Append],
) -> Result<(), AppendError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| classify(&e))?;
    let mut moved = Vec::with_capacity(batch.len());
    for part in batch {
        let (sid, tail) = append_one(&transaction, tails, part)?;
        moved.push((part.session, sid, tail));
    }
    transaction.commit().map_err(|e| classify(&e))?;
    // A cache: what is forgotten is looked up again.
    if tails.0.len() > TAILS_MAX {
        tails.0.clear();
    }
    for (session, sid, tail) in moved {
        tails.0.insert(session, (sid, tail));
    }
    Ok(())
}

fn append_one(
    tx: &Transaction<'_>,
    tails: &Tails,
    part: &Append,
) -> Result<(i64, Seq), AppendError> {
    let sql = |error: rusqlite::Error| classify(&error);
    let (sid, tail) = match tails.0.get(&part.session) {
        Some(&known) => known,
        None => {
            // The row may come with this very append.
            row::create_session(tx, part).map_err(sql)?;
            row::find_session(tx, part.session, part.term)?
        }
    };
    if tail != part.prev {
        return Err(AppendError::Refused(format!(
            "expected event {} to be the last, it is {}",
            part.prev.0, tail.0
        )));
    }
    let mut last = tail;
    for record in &part.records {
        if record.seq != last.next() {
            return Err(AppendError::Refused(format!(
                "event {} does not follow {}",
                record.seq.0, last.0
            )));
        }
        insert(tx, sid, record).map_err(sql)?;
        last = record.seq;
    }
    for placed in &part.rows {
        row::apply(tx, sid, placed).map_err(sql)?;
    }
    Ok((sid, last))
}

fn insert(tx: &Transaction<'_>, sid: i64, record: &Record) -> rusqlite::Result<()> {
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

/// Removes a session and everything of it; leaves its id as a tombstone.
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

/// Trims old events; see `Store::trim`.
pub(crate) fn trim(
    connection: &mut Connection,
    before: Timestamp,
    sessions_max: usize,
) -> Result<Vec<(SessionId, Seq)>, AppendError> {
    let run = |connection: &mut Connection| -> rusqlite::Result<Vec<(SessionId, Seq)>> {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut found = Vec::new();
        {
            // The first event of a session is its oldest, so one probe a session finds the due
            // ones. A session with an open turn waits for its end: the sweep may need its events.
            let mut due = tx.prepare_cached(
                "SELECT s.sid, s.id, s.low_seq FROM session s \
                 WHERE (SELECT e.time FROM event e WHERE e.sid = s.sid ORDER BY e.seq LIMIT 1) < ?1 \
                 AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.sid = s.sid AND t.ended IS NULL) LIMIT ?2",
            )?;
            let mut rows = due.query(params![before.as_millis(), sessions_max as i64])?;
            while let Some(row) = rows.next()? {
                found.push((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, i64>(2)?,
                ));
            }
        }
        let mut trimmed = Vec::new();
        for (sid, id, low) in found {
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
