//! Append and delete: the transactions of the one writing connection.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use turnwire_event::row::AuditEntry;
use turnwire_event::{Seq, SessionId, Timestamp, UtcDay};

use crate::error::AppendError;
use crate::record::{EventRecord, SessionAppend};
use crate::sqlite::change;
use crate::sqlite::column::{execute, query_value};
use crate::sqlite::splice::SharedContent;
use crate::sqlite::table::erasure::EraseState;
use crate::sqlite::table::{age, audit, key, llm_call, session};
use crate::sqlite::wal::commit_tail::{CommitTail, hash_start};
use crate::sqlite::wal::gauge::WalGauge;

/// What the writer knows of a session that it wrote to.
#[derive(Clone, Copy, Debug)]
struct CachedTail {
    sid: i64,
    last: Seq,
    /// True if no event is stored: the next one sets the session's age.
    is_empty: bool,
}

/// A cache of the sessions that were written to. One process owns the file, so that an entry is
/// never stale; an entry saves a read and an update for each append.
#[derive(Debug, Default)]
struct TailCache(HashMap<SessionId, CachedTail>);

/// Entries of [`TailCache`]: 3 MB.
const CACHED_TAILS_MAX: usize = 50_000;

impl TailCache {
    fn extend(&mut self, tails: Vec<(SessionId, CachedTail)>) {
        // An entry that is gone is read again with the next append.
        if self.0.len() > CACHED_TAILS_MAX {
            self.0.clear();
        }
        self.0.extend(tails);
    }
}

/// The writing connection and what it keeps between commits.
#[derive(Debug)]
pub(crate) struct WriteHalf {
    pub(crate) connection: Connection,
    tails: TailCache,
    gauge: Arc<WalGauge>,
    /// Row numbers of sessions whose rows are damaged; retention and removal skip them.
    pub(crate) damaged: HashSet<i64>,
    /// What the last commits wrote.
    pub(crate) tail: CommitTail,
    /// Bytes in the WAL when the last checkpoint was requested.
    requested_at: u64,
    /// What removed rows may have left, and how far it is erased.
    pub(crate) erase: EraseState,
}

impl WriteHalf {
    pub(crate) fn new(connection: Connection, gauge: Arc<WalGauge>) -> Self {
        Self {
            connection,
            tails: TailCache::default(),
            gauge,
            damaged: HashSet::new(),
            tail: CommitTail::default(),
            requested_at: 0,
            erase: EraseState::default(),
        }
    }

    /// Writes a batch as [`Log::append`](crate::Log::append) promises.
    pub(crate) fn append(&mut self, batch: &[SessionAppend]) -> Result<(), AppendError> {
        self.gauge.check()?;
        let transaction = begin(&mut self.connection)?;
        let mut tails = Vec::with_capacity(batch.len());
        let mut written = self.tail;
        let mut has_events = false;
        for append in batch {
            let (tail, event) = append_session(&transaction, &self.tails, append)?;
            tails.push((append.session, tail));
            if let (Some(event), Some(record)) = (event, append.records.last()) {
                (written.event, written.hash) = (event, hash_start(&record.hash));
                has_events = true;
            }
        }
        if !has_events {
            written.changes = CommitTail::count_change(&transaction)?;
        }
        transaction.commit()?;
        self.tail = written;
        self.tails.extend(tails);
        self.after_commit()
    }

    /// See [`Log::delete`](crate::Log::delete). The ids stay as tombstones, the rows as pending
    /// removals.
    pub(crate) fn delete(
        &mut self,
        sessions: &[SessionId],
        audit: &[AuditEntry],
    ) -> Result<(), AppendError> {
        let tx = begin(&mut self.connection)?;
        for session in sessions {
            let id = session.to_string();
            let sid: Option<i64> =
                query_value(&tx, "SELECT sid FROM session WHERE id = ?1", [&id]).optional()?;
            let Some(sid) = sid else { continue };
            execute(
                &tx,
                "INSERT OR IGNORE INTO removal (sid) VALUES (?1)",
                [sid],
            )?;
            execute(&tx, "DELETE FROM session WHERE sid = ?1", [sid])?;
            execute(
                &tx,
                "INSERT OR IGNORE INTO tombstone (id) VALUES (?1)",
                [&id],
            )?;
        }
        for entry in audit {
            audit::add(&tx, entry)?;
        }
        // The row of a session has its metadata.
        self.erase.add_removal(&tx)?;
        let changes = CommitTail::count_change(&tx)?;
        tx.commit()?;
        self.tail.changes = changes;
        self.forget_tails(sessions);
        self.after_commit()
    }

    /// Removes old keys as [`TurnRecords::expire_keys`](crate::TurnRecords::expire_keys) promises.
    pub(crate) fn expire_keys(
        &mut self,
        before: Timestamp,
        max: usize,
    ) -> Result<usize, AppendError> {
        let removed = key::expire(&self.connection, before, max)?;
        self.after_commit()?;
        Ok(removed)
    }

    /// Removes old rows as [`CallRecords::expire_usage`](crate::CallRecords::expire_usage) promises.
    pub(crate) fn expire_usage(
        &mut self,
        before: UtcDay,
        max: usize,
    ) -> Result<usize, AppendError> {
        let removed = llm_call::expire_usage(&self.connection, before, max)?;
        self.after_commit()?;
        Ok(removed)
    }

    /// Removes sessions from the cache of tails.
    pub(crate) fn forget_tails(&mut self, sessions: &[SessionId]) {
        for session in sessions {
            self.tails.0.remove(session);
        }
    }

    /// Requests a checkpoint if the WAL has grown enough since the last one.
    pub(crate) fn after_commit(&mut self) -> Result<(), AppendError> {
        let bytes = self.gauge.bytes();
        if bytes < self.requested_at {
            self.requested_at = 0; // the WAL started again
        }
        if bytes >= self.requested_at + self.gauge.step_bytes() {
            self.requested_at = bytes;
            self.gauge.request();
        }
        self.gauge.check()
    }

    /// Wakes the checkpoint thread before the WAL has grown by a step.
    pub(crate) fn request_checkpoint(&mut self) {
        self.gauge.request();
    }

    /// Requests a checkpoint that cuts the WAL.
    pub(crate) fn request_truncate(&mut self) {
        self.gauge.request_truncate();
    }

    /// True until the checkpoint of [`request_truncate`](Self::request_truncate) is done.
    pub(crate) fn is_truncate_due(&self) -> bool {
        self.gauge.is_truncate_due()
    }

    /// The next commit writes the first frames of the WAL.
    pub(crate) fn wal_restarted(&mut self) {
        self.gauge.set_frames(0);
        self.requested_at = 0;
    }
}

pub(crate) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Writes the events and rows of one session; returns its new tail and the row number of its last
/// new event.
fn append_session(
    tx: &Transaction<'_>,
    cache: &TailCache,
    append: &SessionAppend,
) -> Result<(CachedTail, Option<i64>), AppendError> {
    let mut tail = match cache.0.get(&append.session) {
        Some(&cached) => cached,
        None => {
            session::create(tx, append)?;
            let (sid, last) = session::find(tx, append.session, append.term)?;
            let empty = "SELECT NOT EXISTS (SELECT 1 FROM event WHERE sid = ?1)";
            CachedTail {
                sid,
                last,
                is_empty: query_value(tx, empty, [sid])?,
            }
        }
    };
    if tail.last != append.prev {
        return Err(AppendError::Refused(format!(
            "expected event {} to be the last, it is {}",
            append.prev.0, tail.last.0
        )));
    }
    if let Some(first) = append.records.first().filter(|_| tail.is_empty) {
        age::add(tx, first.time.as_millis(), tail.sid)?;
        tail.is_empty = false;
    }
    let (sid, mut last) = (tail.sid, tail.last);
    let mut last_event = None;
    for record in &append.records {
        if record.seq != last.next() {
            return Err(AppendError::Refused(format!(
                "event {} does not follow {}",
                record.seq.0, last.0
            )));
        }
        let shared = SharedContent::find(record, &append.rows);
        insert(tx, sid, record, shared.as_ref())?;
        last_event = Some(tx.last_insert_rowid());
        last = record.seq;
    }
    for placed in &append.rows {
        change::apply(tx, sid, placed)?;
    }
    Ok((CachedTail { last, ..tail }, last_event))
}

fn insert(
    tx: &Transaction<'_>,
    sid: i64,
    record: &EventRecord,
    shared: Option<&SharedContent>,
) -> rusqlite::Result<()> {
    let around = shared.map(|shared| shared.cut(&record.bytes));
    execute(
        tx,
        "INSERT INTO event (sid, seq, type, turn, actor, time, hidden, hash, bytes, content_at, content_of) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            sid,
            record.seq.0 as i64,
            record.kind.name(),
            record.turn.map(|turn| turn.to_string()),
            record.actor.to_string(),
            record.time.as_millis(),
            record.hidden,
            &record.hash.0[..],
            around.as_deref().unwrap_or(&record.bytes),
            shared.map(|shared| shared.at as i64),
            shared.map(|shared| shared.message.to_string()),
        ],
    )
    .map(drop)
}
