//! Reads of the event table: ranges of events checked against the hash chain, the tail, counts.
//!
//! ```text
//!   every event, or by turn, actor, visibility   event_order (sid, seq): a range of numbers
//!   by type, and other conditions                event_type (sid, type, seq): one range for each
//!                                                type, merged in the order of their numbers
//! ```
//! Either way a read looks at a bounded number of events, however few of them it returns. The hash
//! before a row is that of the row returned just before it, or is looked up if rows were skipped.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};
use turnwire_event::{Actor, Epoch, EventHead, Position, Seq, SessionId, Timestamp, TypeSet};

use crate::chain::ChainHash;
use crate::error::ReadError;
use crate::record::{CountedEvents, EventBatch, LogTail, StoredEvent};
use crate::selection::{EventSelection, ReadLimits};
use crate::sqlite::column::{hash, json, optional_id, parsed, query_value, seq, time};
use crate::sqlite::splice::{BYTES_COLUMNS, byte_length, read_bytes};

/// The columns that [`read_event`] reads.
fn event_columns() -> String {
    format!("seq, type, turn, actor, hidden, hash, {BYTES_COLUMNS}")
}

/// A `WHERE` clause over the event table with its parameters.
struct EventCondition {
    sql: String,
    values: Vec<Value>,
}

impl EventCondition {
    /// The events of the session `sid` in (`after`, `upto`] that meet the conditions of `selection` but
    /// its types. Lists are JSON arrays, so that their length is neither in the text of the statement nor
    /// bounded by its parameters.
    fn new(sid: i64, (after, upto): (Seq, Seq), selection: &EventSelection) -> Self {
        let mut condition = Self {
            sql: "sid = ? AND seq > ? AND seq <= ?".to_owned(),
            values: vec![sid.into(), column(after).into(), column(upto).into()],
        };
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
        limits: ReadLimits,
    ) -> Result<EventBatch, ReadError> {
        let mut checked = CheckedEvents {
            log: self,
            previous: (after, self.hash_at(c, after)?),
            is_dense: selection.is_all(),
            bytes_max: limits.bytes,
            bytes: 0,
            events: Vec::new(),
        };
        if limits.events == 0 {
            return Ok(checked.into_batch(after, false));
        }
        if let Some(types) = selection.types {
            let found = self.find_by_type(c, types, (after, upto), selection, limits)?;
            let sql = format!("SELECT {} FROM event WHERE gid = ?1", event_columns());
            let mut statement = c.prepare_cached(&sql)?;
            for (seq, gid) in found.rows {
                let mut rows = statement.query([gid])?;
                let row = rows.next()?.ok_or_else(|| self.damaged(seq))?;
                if !checked.push(c, row)? {
                    return Ok(checked.into_batch(after, true));
                }
            }
            return Ok(checked.into_batch(found.end, false));
        }
        let range_end = match checked.is_dense {
            true => upto,
            false => self.scan_end(c, (after, upto), limits.scanned)?,
        };
        let mut condition = EventCondition::new(self.sid, (after, range_end), selection);
        let limit = i64::try_from(limits.events).unwrap_or(i64::MAX);
        condition.and(" ORDER BY seq LIMIT ?", [limit.into()]);
        let mut statement = c.prepare_cached(&format!(
            "SELECT {} FROM event INDEXED BY event_order WHERE {}",
            event_columns(),
            condition.sql
        ))?;
        let mut rows = statement.query(params_from_iter(condition.values))?;
        while let Some(row) = rows.next()? {
            if !checked.push(c, row)? {
                return Ok(checked.into_batch(after, true));
            }
        }
        let is_full = checked.events.len() == limits.events;
        Ok(checked.into_batch(range_end, is_full))
    }

    /// The end of a scan of (`after`, `upto`] that may look at `scanned_max` events: numbers are
    /// dense. A scan that reaches the last event ends at `upto`.
    fn scan_end(
        &self,
        c: &Connection,
        (after, upto): (Seq, Seq),
        scanned_max: usize,
    ) -> Result<Seq, ReadError> {
        let end = Seq(after.0.saturating_add(scanned_max.max(1) as u64));
        let is_last = end >= upto || end >= self.last(c)?;
        Ok(if is_last { upto } else { end })
    }

    /// The number of the last event.
    fn last(&self, c: &Connection) -> Result<Seq, ReadError> {
        let sql = "SELECT max(seq) FROM event WHERE sid = ?1";
        let last: Option<i64> = query_value(c, sql, [self.sid])?;
        Ok(last.map_or(self.low, |seq| Seq(seq as u64)))
    }

    /// Finds the selected events of `types` in (`after`, `upto`] without reading their bytes.
    fn find_by_type(
        &self,
        c: &Connection,
        types: TypeSet,
        (after, upto): (Seq, Seq),
        selection: &EventSelection,
        limits: ReadLimits,
    ) -> Result<FoundEvents, ReadError> {
        // Only persisted events are stored. At most one term for each type, about forty.
        let kinds: Vec<_> = types.iter().filter(|kind| kind.is_persisted()).collect();
        let mut found = FoundEvents {
            rows: Vec::new(),
            end: upto,
        };
        if kinds.is_empty() {
            return Ok(found);
        }
        let is_type_alone = !selection.has_more_than_types();
        let scanned_max = match is_type_alone {
            true => limits.scanned.max(1).min(limits.events),
            false => limits.scanned.max(1),
        };
        let mut statement = c.prepare_cached(&by_type_sql(kinds.len()))?;
        let range = [self.sid, column(after), column(upto), scanned_max as i64];
        let names = kinds.iter().map(|kind| Value::from(kind.name().to_owned()));
        let values = range.into_iter().map(Value::from).chain(names);
        let mut columns =
            c.prepare_cached("SELECT turn, actor, hidden FROM event WHERE gid = ?1")?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut scanned = 0;
        while let Some(row) = rows.next()? {
            let (at, gid): (Seq, i64) = (seq(row, 0)?, row.get(1)?);
            scanned += 1;
            let matches = is_type_alone
                || columns
                    .query_row([gid], |row| {
                        let actor: Actor = parsed(row, 1)?;
                        Ok(selection.matches(optional_id(row, 0)?, &actor, row.get(2)?))
                    })
                    .map_err(|_| self.damaged(at))?;
            if matches {
                found.rows.push((at, gid));
            }
            if scanned == scanned_max || found.rows.len() == limits.events {
                found.end = at;
                break;
            }
        }
        Ok(found)
    }

    /// Counts the selected events in (`after`, `upto`].
    pub(crate) fn count(
        &self,
        c: &Connection,
        (after, upto): (Seq, Seq),
        selection: &EventSelection,
        scanned_max: usize,
    ) -> Result<CountedEvents, ReadError> {
        if let Some(types) = selection.types {
            let limits = ReadLimits {
                events: usize::MAX,
                bytes: usize::MAX,
                scanned: scanned_max,
            };
            let found = self.find_by_type(c, types, (after, upto), selection, limits)?;
            return Ok(CountedEvents {
                events: found.rows.len() as u64,
                end: found.end,
            });
        }
        let by_range = EventSelection::all();
        let is_dense = *selection == by_range;
        if is_dense || *selection == by_range.visible_only() {
            // Numbers are dense, and the hidden events have an index: no event row is read.
            let last = upto.min(self.last(c)?);
            let hidden: i64 = match is_dense {
                true => 0,
                false => query_value(
                    c,
                    "SELECT count(*) FROM event WHERE sid = ?1 AND seq > ?2 AND seq <= ?3 AND hidden = 1",
                    [self.sid, column(after), column(last)],
                )?,
            };
            return Ok(CountedEvents {
                events: last.0.saturating_sub(after.0) - hidden as u64,
                end: upto,
            });
        }
        let end = self.scan_end(c, (after, upto), scanned_max)?;
        let condition = EventCondition::new(self.sid, (after, end), selection);
        let sql = format!(
            "SELECT count(*) FROM event INDEXED BY event_order WHERE {}",
            condition.sql
        );
        let events: i64 = query_value(c, &sql, params_from_iter(condition.values))?;
        let events = events as u64;
        Ok(CountedEvents { events, end })
    }
}

/// A sequence number as a column's value.
fn column(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// The numbers and row ids of the events of `kinds` types, in order. Each type is one range of the
/// index, and SQLite merges the ranges row by row: it looks at as many entries as it returns, and
/// one more for each type.
fn by_type_sql(kinds: usize) -> String {
    let range = |kind: usize| {
        format!(
            "SELECT seq, gid FROM event INDEXED BY event_type \
             WHERE sid = ?1 AND type = ?{} AND seq > ?2 AND seq <= ?3",
            kind + 5
        )
    };
    let ranges: Vec<String> = (0..kinds).map(range).collect();
    format!("{} ORDER BY seq LIMIT ?4", ranges.join(" UNION ALL "))
}

/// Events found by their type: number and row id, in order.
struct FoundEvents {
    rows: Vec<(Seq, i64)>,
    /// Every selected event up to here is in `rows`.
    end: Seq,
}

/// The events that a read has taken so far, each checked against the hash before it.
struct CheckedEvents<'a> {
    log: &'a LogRow,
    /// The event before the next one, and its hash.
    previous: (Seq, ChainHash),
    /// True if no event may be missing between two of them.
    is_dense: bool,
    bytes_max: usize,
    bytes: usize,
    events: Vec<StoredEvent>,
}

impl CheckedEvents<'_> {
    /// Takes the event of a row; false if it does not fit into the bytes of the read.
    fn push(&mut self, c: &Connection, row: &Row<'_>) -> Result<bool, ReadError> {
        let seq = seq(row, 0)?;
        // A column of the wrong type is damage too.
        let size = byte_length(row, 6).map_err(|_| self.log.damaged(seq))?;
        if !self.events.is_empty() && self.bytes + size > self.bytes_max {
            return Ok(false);
        }
        let before = seq.prev();
        if before != self.previous.0 {
            if self.is_dense {
                return Err(self.log.damaged(self.previous.0.next()));
            }
            self.previous = (before, self.log.hash_at(c, before)?);
        }
        let event = read_event(row, seq).ok().flatten();
        let event = event.ok_or_else(|| self.log.damaged(seq))?;
        let hash = self.previous.1.next(&event.bytes);
        if hash.0 != event.hash {
            return Err(self.log.damaged(seq));
        }
        self.previous = (seq, hash);
        self.bytes += size;
        self.events.push(event);
        Ok(true)
    }

    /// The events as a batch up to `end`, or up to the last of them if `is_cut`.
    fn into_batch(self, end: Seq, is_cut: bool) -> EventBatch {
        let last = self.events.last().filter(|_| is_cut);
        EventBatch {
            end: last.map_or(end, |event| event.seq),
            events: self.events,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{CommitDurability, SqliteOptions, SqliteStore};

    /// The lines of SQLite's plan for `sql`.
    fn plan(c: &Connection, sql: &str) -> Vec<String> {
        let mut statement = c
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .expect("a statement");
        let lines = statement.raw_query().mapped(|row| row.get(3));
        lines.collect::<Result<_, _>>().expect("a plan")
    }

    #[test]
    fn types_are_merged_by_their_index_without_a_sort() {
        let dir = tempfile::tempdir().expect("a folder");
        let options = SqliteOptions {
            dir: dir.path().to_owned(),
            durability: CommitDurability::Full,
        };
        let store = SqliteStore::open(&options).expect("a store");
        let checked = store.readers.with(|c| {
            for kinds in [1, 2, 3, 7, 64] {
                let lines = plan(c, &by_type_sql(kinds));
                let by_index = "SEARCH event USING COVERING INDEX event_type (sid=? AND type=? AND seq>? AND seq<?)";
                let searches = lines.iter().filter(|line| *line == by_index).count();
                assert_eq!(searches, kinds, "{lines:#?}");
                let sorts = lines.iter().any(|line| line.contains("TEMP B-TREE"));
                assert!(!sorts, "{lines:#?}");
            }
            Ok::<_, ReadError>(())
        });
        checked.expect("a read");
    }
}
