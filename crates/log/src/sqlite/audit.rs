//! Reads for operators: raw columns for `turnwire verify`, which compares them with the bytes of the
//! events, and the messages of all scopes for `turnwire export`.

use rusqlite::{OptionalExtension as _, params};
use turnwire_event::{Message, MessageId, Position, Seq, SessionId};

use crate::error::ReadError;
use crate::records::{PageBounds, RowPage};
use crate::sqlite::SqliteStore;
use crate::sqlite::column::{NEWEST, bounded, column_bytes, parsed};
use crate::sqlite::table::message::read_message;

/// A message of any scope, as [`SqliteStore::scoped_messages`] returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedMessage {
    pub message: Message,
    /// The position of its end.
    pub completed: Position,
    /// Who reads the message: empty for everybody, `+` clients only, `-` the orchestrator only, `*`
    /// every sub-agent, otherwise the sub-agent with this id.
    pub scope: String,
}

/// The columns beside the bytes of an event, as text: a column of the wrong type is readable too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventColumns {
    pub seq: Seq,
    pub kind: String,
    pub turn: Option<String>,
    pub actor: String,
    /// Milliseconds since 1970, as text.
    pub time: String,
    /// `0` or `1`, if it is not damaged.
    pub hidden: String,
}

impl SqliteStore {
    /// Returns the columns of the events in (`after`, `upto`], oldest first.
    pub fn event_columns(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
    ) -> Result<Vec<EventColumns>, ReadError> {
        let sql = "SELECT e.seq, CAST(e.type AS TEXT), CAST(e.turn AS TEXT), CAST(e.actor AS TEXT), \
             CAST(e.time AS TEXT), CAST(e.hidden AS TEXT) \
             FROM event e JOIN session s ON s.sid = e.sid \
             WHERE s.id = ?1 AND e.seq > ?2 AND e.seq <= ?3 ORDER BY e.seq";
        self.readers.with(|c| {
            let mut statement = c.prepare_cached(sql)?;
            let values = params![session.to_string(), after.0 as i64, upto.0 as i64];
            let rows = statement.query_map(values, |row| {
                Ok(EventColumns {
                    seq: Seq(row.get::<_, i64>(0)? as u64),
                    kind: row.get(1)?,
                    turn: row.get(2)?,
                    actor: row.get(3)?,
                    time: row.get(4)?,
                    hidden: row.get(5)?,
                })
            })?;
            rows.collect::<rusqlite::Result<_>>()
        })
    }

    /// Returns a page of the messages of a session, of every scope, newest first: those before the
    /// message `before`, which completed at its position.
    pub fn scoped_messages(
        &self,
        session: SessionId,
        before: Option<(Position, MessageId)>,
        bounds: PageBounds,
    ) -> Result<RowPage<ScopedMessage>, ReadError> {
        let sql = "SELECT m.id, s.id, m.turn, m.role, m.status, m.content, m.model, m.stop_reason, \
             m.usage, m.created_at, m.metadata, NULL, m.completed, m.scope \
             FROM message m JOIN session s ON s.sid = m.sid \
             WHERE s.id = ?1 AND (m.completed, m.id) < (?2, ?3) \
             ORDER BY m.completed DESC, m.id DESC LIMIT ?4";
        let (completed, id) = match before {
            Some((completed, id)) => (completed.to_string(), id.to_string()),
            None => (NEWEST.to_owned(), String::new()),
        };
        let values = params![session.to_string(), completed, id, bounds.query_limit()];
        self.readers.with(|c| {
            bounded(c, sql, values, bounds, |row| {
                let message = ScopedMessage {
                    message: read_message(row)?,
                    completed: parsed(row, 12)?,
                    scope: row.get(13)?,
                };
                Ok((column_bytes(row)?, message))
            })
        })
    }

    /// Returns the last event that a turn or a message of the session refers to, with the text of
    /// the referring id. Positions sort as their text does.
    pub fn last_reference(
        &self,
        session: SessionId,
    ) -> Result<Option<(Position, String)>, ReadError> {
        let sql = "SELECT at, 'turn ' || id FROM (SELECT coalesce(t.ended, t.started) AS at, t.id AS id \
               FROM turn t JOIN session s ON s.sid = t.sid WHERE s.id = ?1 AND t.state <> 'queued' \
               ORDER BY at DESC LIMIT 1) \
             UNION ALL SELECT at, 'message ' || id FROM (SELECT m.completed AS at, m.id AS id \
               FROM message m JOIN session s ON s.sid = m.sid WHERE s.id = ?1 ORDER BY at DESC LIMIT 1) \
             ORDER BY at DESC LIMIT 1";
        let found: Option<(String, String)> = self.readers.with(|c| {
            c.prepare_cached(sql)?
                .query_row([session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        Ok(found.and_then(|(at, id)| Some((at.parse().ok()?, id))))
    }
}
