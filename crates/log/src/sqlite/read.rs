//! Reads of the event table: ranges of events checked against the hash chain, the tail, counts.
//!
//! A read steps through the rows that its [`EventSelection`] matches, in order. The hash before a
//! row is that of the row returned just before it, or is looked up if rows were skipped.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};
use turnwire_event::{Actor, Epoch, EventHead, Position, Seq, SessionId, Timestamp};

use crate::chain::ChainHash;
use crate::error::ReadError;
use crate::record::{LogTail, StoredEvent};
use crate::selection::EventSelection;
use crate::sqlite::column::{hash, json, query_value, seq, time};
use crate::sqlite::splice::{BYTES_COLUMNS, read_bytes};

/// A `WHERE` clause over the event table with its parameters.
struct EventCondition {
    sql: String,
    values: Vec<Value>,
}

impl EventCondition {
    /// The events of the session `sid` in (`after`, `upto`] that `selection` matches. Lists are JSON arrays, so
    /// that their length is neither in the text of the statement nor bounded by its parameters.
    fn new(sid: i64, (after, upto): (Seq, Seq), selection: &EventSelection) -> Self {
        let upto = upto.0.min(i64::MAX as u64) as i64;
        let mut condition = Self {
            sql: "sid = ? AND seq > ? AND seq <= ?".to_owned(),
            values: vec![sid.into(), (after.0 as i64).into(), upto.into()],
        };
        if let Some(types) = selection.types {
            let names: Vec<&str> = types.iter().map(|kind| kind.name()).collect();
            let clause = " AND type IN (SELECT value FROM json_each(?))";
            condition.and(clause, [json(&names).into()]);
        }
        if let Some(turn) = selection.turn {
            condition.and(" AND turn = ?", [turn.to_string().into()]);
        }
        if let Some(patterns) = &selection.actors {
            // A pattern without a name stands for every actor of its kind.
            let (named, kinds): (Vec<_>, Vec<_>) =
                patterns.iter().partition(|actor| actor.name().is_some());
            let texts = |actors: Vec<&Actor>| -> Value {
                let texts: Vec<String> = actors.into_iter().map(Actor::to_string).collect();
                json(&texts).into()
            };
            let clause = " AND (actor IN (SELECT value FROM json_each(?)) \
                 OR substr(actor, 1, instr(actor || ':', ':') - 1) IN (SELECT value FROM json_each(?)))";
            condition.and(clause, [texts(named), texts(kinds)]);
        }
        if selection.visible_only {
            condition.and(" AND hidden = 0", []);
        }
        condition
    }

    fn and<const N: usize>(&mut self, clause: &str, values: [Value; N]) {
        self.sql.push_str(clause);
        self.values.extend(values);
    }
}

/// What the session row says of its log.
pub(crate) struct LogRow {
    id: SessionId,
    sid: i64,
    epoch: Epoch,
    low: Seq,
    low_hash: ChainHash,
}

impl LogRow {
    pub(crate) fn find(c: &Connection, id: SessionId) -> Result<Option<Self>, ReadError> {
        let row = c
            .prepare_cached("SELECT sid, epoch, low_seq, low_hash FROM session WHERE id = ?1")?
            .query_row([id.to_string()], |row| {
                Ok(Self {
                    id,
                    sid: row.get(0)?,
                    epoch: Epoch(row.get(1)?),
                    low: seq(row, 2)?,
                    low_hash: hash(row, 3)?,
                })
            });
        Ok(row.optional()?)
    }

    /// The log of a session, for a read after `after`.
    pub(crate) fn open(c: &Connection, id: SessionId, after: Seq) -> Result<Self, ReadError> {
        let log = Self::find(c, id)?.ok_or(ReadError::SessionNotFound)?;
        if after < log.low {
            return Err(ReadError::Trimmed { low: log.low.0 });
        }
        Ok(log)
    }

    fn damaged(&self, seq: Seq) -> ReadError {
        ReadError::Damaged {
            session: self.id,
            seq: seq.0,
        }
    }

    /// The stored hash at `seq`, which is not below the low-water mark.
    pub(crate) fn hash_at(&self, c: &Connection, seq: Seq) -> Result<ChainHash, ReadError> {
        if seq == self.low {
            return Ok(self.low_hash);
        }
        c.prepare_cached("SELECT hash FROM event WHERE sid = ?1 AND seq = ?2")?
            .query_row([self.sid, seq.0 as i64], |row| hash(row, 0))
            .optional()?
            .ok_or_else(|| self.damaged(seq))
    }

    /// Where the log begins and ends.
    pub(crate) fn tail(&self, c: &Connection) -> Result<LogTail, ReadError> {
        let last = c
            .prepare_cached(
                "SELECT seq, hash, time FROM event WHERE sid = ?1 ORDER BY seq DESC LIMIT 1",
            )?
            .query_row([self.sid], |row| {
                Ok((seq(row, 0)?, hash(row, 1)?, time(row, 2)?))
            })
            .optional()?;
        let (seq, hash, time) = last.unwrap_or((self.low, self.low_hash, Timestamp::default()));
        Ok(LogTail {
            epoch: self.epoch,
            seq,
            hash,
            time,
            low: self.low,
            low_hash: self.low_hash,
        })
    }

    /// Returns the selected events in (`after`, `upto`], each checked against the hash before it.
    pub(crate) fn read(
        &self,
        c: &Connection,
        (after, upto): (Seq, Seq),
        selection: &EventSelection,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let mut previous = (after, self.hash_at(c, after)?);
        let mut condition = EventCondition::new(self.sid, (after, upto), selection);
        condition.and(" ORDER BY seq LIMIT ?", [(limit as i64).into()]);
        let mut statement = c.prepare_cached(&format!(
            "SELECT seq, type, turn, actor, hidden, hash, {BYTES_COLUMNS} FROM event WHERE {}",
            condition.sql
        ))?;
        let mut rows = statement.query(params_from_iter(condition.values))?;
        let mut events = Vec::with_capacity(limit.min(512));
        while let Some(row) = rows.next()? {
            let seq = seq(row, 0)?;
            let before = seq.prev();
            if before != previous.0 {
                if selection.is_all() {
                    return Err(self.damaged(previous.0.next()));
                }
                previous = (before, self.hash_at(c, before)?);
            }
            // A column of the wrong type is damage too.
            let event = read_event(row, seq).ok().flatten();
            let event = event.ok_or_else(|| self.damaged(seq))?;
            let hash = previous.1.next(&event.bytes);
            if hash.0 != event.hash {
                return Err(self.damaged(seq));
            }
            previous = (seq, hash);
            events.push(event);
        }
        Ok(events)
    }

    /// Counts the selected events in (`after`, `upto`].
    pub(crate) fn count(
        &self,
        c: &Connection,
        (after, mut upto): (Seq, Seq),
        selection: &EventSelection,
    ) -> Result<u64, ReadError> {
        let by_range = EventSelection::all();
        let is_dense = *selection == by_range;
        if is_dense || *selection == by_range.visible_only() {
            // Numbers are dense, and the hidden events have an index: no event row is read.
            let last: Option<i64> =
                query_value(c, "SELECT max(seq) FROM event WHERE sid = ?1", [self.sid])?;
            upto = upto.min(last.map_or(self.low, |seq| Seq(seq as u64)));
            let hidden: i64 = match is_dense {
                true => 0,
                false => query_value(
                    c,
                    "SELECT count(*) FROM event WHERE sid = ?1 AND seq > ?2 AND seq <= ?3 AND hidden = 1",
                    [self.sid, after.0 as i64, upto.0 as i64],
                )?,
            };
            return Ok(upto.0.saturating_sub(after.0) - hidden as u64);
        }
        let condition = EventCondition::new(self.sid, (after, upto), selection);
        let sql = format!("SELECT count(*) FROM event WHERE {}", condition.sql);
        let count: i64 = query_value(c, &sql, params_from_iter(condition.values))?;
        Ok(count as u64)
    }
}

fn read_event(row: &Row<'_>, seq: Seq) -> rusqlite::Result<Option<StoredEvent>> {
    let Some(bytes) = read_bytes(row, 6)? else {
        return Ok(None);
    };
    let turn = row.get_ref(2)?.as_str_or_null()?;
    let (Some(position), Ok(kind), Ok(turn), Ok(actor)) = (
        position(&bytes),
        row.get_ref(1)?.as_str()?.parse(),
        turn.map(str::parse).transpose(),
        row.get_ref(3)?.as_str()?.parse(),
    ) else {
        return Ok(None);
    };
    let head = EventHead {
        position,
        kind,
        turn,
        actor,
        suppressed: row.get(4)?,
    };
    Ok(Some(StoredEvent {
        seq,
        head,
        hash: ChainHash::from_column(row.get_ref(5)?.as_bytes()?).0,
        bytes,
    }))
}

/// The id of an event from its bytes, which begin with it; the id keeps the epoch that the event
/// was written in.
fn position(bytes: &[u8]) -> Option<Position> {
    let id = bytes.strip_prefix(b"{\"id\":\"")?.get(..18)?;
    std::str::from_utf8(id).ok()?.parse().ok()
}
