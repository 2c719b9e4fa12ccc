//! Reading messages, each reader its own: clients, the orchestrator, a sub-agent.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use turnwire_event::row::{MessagePart, NewMessage, Scope, StoredMessage};
use turnwire_event::{Message, MessageId, Position, SessionId, TurnId};

use crate::error::ReadError;
use crate::sqlite::rows::{NEWEST, many, optional, parsed, time, value};
use crate::store::{View, is_display};

/// The scope of what everyone is shown.
pub(crate) const SHARED: &str = "";

type Result<T> = std::result::Result<T, ReadError>;

/// A message's scope as its column has it. No sub-agent has such an id: those begin with a letter.
/// What is shared and only displayed has one of its own, so that it is told without a look at the
/// content.
pub(crate) fn scope(message: &NewMessage) -> &str {
    match &message.scope {
        Scope::Shared if is_display(message.role, &message.content) => "+",
        Scope::Shared => SHARED,
        Scope::Private => "-",
        Scope::Agents => "*",
        Scope::Agent(id) => id,
    }
}

/// What a view shows, as SQL over `m.scope`, and its parameter.
fn shown(view: View<'_>) -> (&'static str, &str) {
    match view {
        View::Clients => ("m.scope IN (?1, '+')", ""),
        View::Orchestrator => ("m.scope IN (?1, '-')", ""),
        // Whatever is asked for as an id, it is no way to the others' messages.
        View::Agent(id) => ("m.scope = ?1 AND m.scope NOT IN ('', '+', '-', '*')", id),
        View::Agents => ("m.scope = ?1", "*"),
    }
}

const MESSAGE: &str = "SELECT m.id, s.id, m.turn, m.role, m.status, m.content, m.model, m.stop_reason, m.usage, \
    m.metadata, m.created_at, m.completed_at, m.started, m.completed, m.cuts, m.inputs, m.kept \
    FROM message m JOIN session s ON s.sid = m.sid";

fn read_message(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    Ok(StoredMessage {
        message: Message {
            kept: optional(row, 16)?.unwrap_or_default(),
            id: parsed(row, 0)?,
            session_id: parsed(row, 1)?,
            turn_id: parsed(row, 2)?,
            role: value(row, 3)?,
            status: value(row, 4)?,
            content: value(row, 5)?,
            model: row.get(6)?,
            stop_reason: optional(row, 7)?,
            usage: optional(row, 8)?,
            created_at: time(row, 10)?,
            metadata: value(row, 9)?,
        },
        started: parsed(row, 12)?,
        completed: Some((parsed(row, 13)?, time(row, 11)?)),
        cuts: row.get(14)?,
        inputs: value(row, 15)?,
    })
}

pub(crate) fn messages(
    c: &Connection,
    session: SessionId,
    view: View<'_>,
    upto: Position,
    before: Option<MessageId>,
    limit: usize,
) -> Result<Vec<StoredMessage>> {
    // Completion order, not id order, is the order of the conversation.
    let bound = match before {
        None => NEWEST.to_owned(),
        Some(id) => c
            .prepare_cached("SELECT m.completed FROM message m JOIN session s ON s.sid = m.sid WHERE m.id = ?1 AND s.id = ?2")?
            .query_row([id.to_string(), session.to_string()], |row| row.get(0))
            .optional()?
            .unwrap_or_default(),
    };
    let (shown, of) = shown(view);
    let sql = format!(
        "{MESSAGE} WHERE {shown} AND s.id = ?2 AND m.completed <= ?3 AND m.completed < ?4 \
         ORDER BY m.completed DESC, m.id DESC LIMIT ?5"
    );
    let values = params![
        of,
        session.to_string(),
        upto.to_string(),
        bound,
        i64::try_from(limit).unwrap_or(i64::MAX)
    ];
    let mut found = many(c, &sql, values, read_message)?;
    found.reverse();
    Ok(found)
}

pub(crate) fn message(
    c: &Connection,
    session: SessionId,
    id: MessageId,
) -> Result<Option<StoredMessage>> {
    let sql = format!("{MESSAGE} WHERE m.id = ?1 AND s.id = ?2 AND m.scope IN ('', '+')");
    Ok(c.prepare_cached(&sql)?
        .query_row([id.to_string(), session.to_string()], read_message)
        .optional()?)
}

pub(crate) fn messages_since(
    c: &Connection,
    session: SessionId,
    view: View<'_>,
    after: Position,
    upto: Position,
) -> Result<Vec<StoredMessage>> {
    let (shown, of) = shown(view);
    let sql = format!(
        "{MESSAGE} WHERE {shown} AND s.id = ?2 AND m.completed > ?3 AND m.completed <= ?4 \
         ORDER BY m.completed, m.id"
    );
    let values = params![of, session.to_string(), after.to_string(), upto.to_string()];
    many(c, &sql, values, read_message)
}

pub(crate) fn message_count(
    c: &Connection,
    session: SessionId,
    view: View<'_>,
    upto: Position,
) -> Result<u64> {
    let (shown, of) = shown(view);
    let sql = format!(
        "SELECT count(*) FROM message m JOIN session s ON s.sid = m.sid \
         WHERE {shown} AND s.id = ?2 AND m.completed <= ?3"
    );
    let n: i64 = c
        .prepare_cached(&sql)?
        .query_row(params![of, session.to_string(), upto.to_string()], |row| {
            row.get(0)
        })?;
    Ok(n as u64)
}

pub(crate) fn streamed(
    c: &Connection,
    session: SessionId,
    after: Position,
    upto: Position,
) -> Result<Vec<StoredMessage>> {
    // Messages of a session stream one after the other, so besides those that end inside the
    // stretch only the next to end can have begun in it; a range open at the end would read
    // every later message for every chunk of a long replay. What sub-agents say never streams.
    let within = format!(
        "{MESSAGE} WHERE s.id = ?1 AND m.completed > ?2 AND m.completed <= ?3 AND m.scope = '' \
         AND m.role = 'assistant' ORDER BY m.completed"
    );
    let mut found = many(
        c,
        &within,
        params![session.to_string(), after.to_string(), upto.to_string()],
        read_message,
    )?;
    let next = format!(
        "{MESSAGE} WHERE s.id = ?1 AND m.completed > ?2 AND m.scope = '' AND m.role = 'assistant' \
         ORDER BY m.completed LIMIT 1"
    );
    let next = many(
        c,
        &next,
        params![session.to_string(), upto.to_string()],
        read_message,
    )?;
    found.extend(next.into_iter().filter(|message| message.started <= upto));
    Ok(found)
}

pub(crate) fn parts(c: &Connection, turn: TurnId) -> Result<Vec<MessagePart>> {
    let sql = "SELECT message, turn, model, started, started_at, part, blocks, cuts FROM message_part \
               WHERE turn = ?1 ORDER BY part";
    many(c, sql, [turn.to_string()], |row| {
        Ok(MessagePart {
            message_id: parsed(row, 0)?,
            turn_id: parsed(row, 1)?,
            model: row.get(2)?,
            started: parsed(row, 3)?,
            started_at: time(row, 4)?,
            index: row.get(5)?,
            blocks: row.get(6)?,
            cuts: row.get(7)?,
        })
    })
}
