//! The message table: messages written complete, checkpoints of those that stream, reads by view.
//!
//! The `scope` column says who reads a message: '' everyone, '+' clients only, '-' the orchestrator
//! only, '*' every sub-agent, otherwise the sub-agent with that id.

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, Transaction, params};
use turnwire_event::content::content_json;
use turnwire_event::row::{
    FinishedMessage, MessagePart, MessageScope, NewMessage, PlacedChange, StoredMessage,
};
use turnwire_event::{
    Message, MessageId, MessageStatus, Position, ProviderState, Role, SessionId, TurnId,
};

use crate::error::ReadError;
use crate::records::{MessageView, is_display_only};
use crate::sqlite::column::{NEWEST, json, optional, parsed, query_rows, time, value, word};

const SHARED: &str = "";

/// The `scope` column of a message. Ids of sub-agents begin with a letter, so none is mistaken for
/// another scope. Display-only messages have a scope of their own, so that reads need not look at
/// the content.
fn scope_column(message: &NewMessage) -> &str {
    match &message.scope {
        MessageScope::Shared if is_display_only(message.role, &message.content) => "+",
        MessageScope::Shared => SHARED,
        MessageScope::Private => "-",
        MessageScope::Agents => "*",
        MessageScope::Agent(id) => id,
    }
}

/// The condition of a view on `m.scope`, and its parameter.
fn view_condition(view: MessageView<'_>) -> (&'static str, &str) {
    match view {
        MessageView::Clients => ("m.scope IN (?1, '+')", ""),
        MessageView::Orchestrator => ("m.scope IN (?1, '-')", ""),
        // An id that is not one must not select the messages of another scope.
        MessageView::Agent(id) => ("m.scope = ?1 AND m.scope NOT IN ('', '+', '-', '*')", id),
        MessageView::Agents => ("m.scope = ?1", "*"),
    }
}

/// Writes a message that is complete from the start.
pub(crate) fn put(
    tx: &Transaction<'_>,
    sid: i64,
    turn: TurnId,
    m: &NewMessage,
    placed: &PlacedChange,
) -> rusqlite::Result<()> {
    let time = placed.time.as_millis();
    let at = placed.at.to_string();
    prepare_insert(tx)?.execute(params![
        m.id.to_string(),
        sid,
        turn.to_string(),
        word(&m.role),
        word(&MessageStatus::Complete),
        content_json(&m.content).0,
        None::<String>,
        None::<String>,
        None::<String>,
        json(&m.metadata),
        time,
        time,
        at,
        at,
        &[] as &[u8],
        "[]",
        scope_column(m),
        kept_column(&m.provider_state)
    ])?;
    Ok(())
}

fn prepare_insert<'a>(tx: &'a Transaction<'_>) -> rusqlite::Result<CachedStatement<'a>> {
    tx.prepare_cached(
        "INSERT INTO message (id, sid, turn, role, status, content, model, stop_reason, usage, metadata, \
         created_at, completed_at, started, completed, cuts, inputs, scope, kept) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )
}

/// Writes a message whose stream has ended, and removes its checkpoints.
pub(crate) fn finish(
    tx: &Transaction<'_>,
    sid: i64,
    turn: TurnId,
    m: &FinishedMessage,
    placed: &PlacedChange,
) -> rusqlite::Result<()> {
    prepare_insert(tx)?.execute(params![
        m.id.to_string(),
        sid,
        turn.to_string(),
        word(&Role::Assistant),
        word(&m.status),
        content_json(&m.content).0,
        m.model,
        word(&m.stop_reason),
        json(&m.usage),
        "{}",
        m.started_at.as_millis(),
        placed.time.as_millis(),
        m.started.to_string(),
        placed.at.to_string(),
        m.cuts,
        json(&m.inputs),
        SHARED,
        kept_column(&m.provider_state)
    ])?;
    tx.prepare_cached("DELETE FROM message_part WHERE message = ?1")?
        .execute([m.id.to_string()])?;
    Ok(())
}

/// Writes a checkpoint of a message that streams.
pub(crate) fn put_checkpoint(
    tx: &Transaction<'_>,
    sid: i64,
    part: &MessagePart,
) -> rusqlite::Result<()> {
    // A checkpoint that was taken before the message completed may be written after it.
    tx.prepare_cached(
        "INSERT INTO message_part (message, part, sid, turn, model, started, started_at, blocks, cuts) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE NOT EXISTS (SELECT 1 FROM message WHERE id = ?1)",
    )?
    .execute(params![
        part.message_id.to_string(), part.index, sid, part.turn_id.to_string(), part.model,
        part.started.to_string(), part.started_at.as_millis(), part.blocks, part.cuts
    ])?;
    Ok(())
}

/// The column of what a message's provider wants back with it; NULL if that is nothing.
pub(crate) fn kept_column(kept: &ProviderState) -> Option<String> {
    (!kept.is_empty()).then(|| json(kept))
}

const SELECT: &str = "SELECT m.id, s.id, m.turn, m.role, m.status, m.content, m.model, m.stop_reason, m.usage, \
    m.metadata, m.created_at, m.completed_at, m.started, m.completed, m.cuts, m.inputs, m.kept \
    FROM message m JOIN session s ON s.sid = m.sid";

fn read_message(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    Ok(StoredMessage {
        message: Message {
            provider_state: optional(row, 16)?.unwrap_or_default(),
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
    view: MessageView<'_>,
    upto: Position,
    before: Option<MessageId>,
    limit: usize,
) -> Result<Vec<StoredMessage>, ReadError> {
    // Completion order, not id order, is the order of the conversation.
    let completed_before = match before {
        None => NEWEST.to_owned(),
        Some(id) => c
            .prepare_cached("SELECT m.completed FROM message m JOIN session s ON s.sid = m.sid WHERE m.id = ?1 AND s.id = ?2")?
            .query_row([id.to_string(), session.to_string()], |row| row.get(0))
            .optional()?
            .unwrap_or_default(),
    };
    let (condition, scope) = view_condition(view);
    let sql = format!(
        "{SELECT} WHERE {condition} AND s.id = ?2 AND m.completed <= ?3 AND m.completed < ?4 \
         ORDER BY m.completed DESC, m.id DESC LIMIT ?5"
    );
    let values = params![
        scope,
        session.to_string(),
        upto.to_string(),
        completed_before,
        i64::try_from(limit).unwrap_or(i64::MAX)
    ];
    let mut messages = query_rows(c, &sql, values, read_message)?;
    messages.reverse();
    Ok(messages)
}

pub(crate) fn message(
    c: &Connection,
    session: SessionId,
    id: MessageId,
) -> Result<Option<StoredMessage>, ReadError> {
    let sql = format!("{SELECT} WHERE m.id = ?1 AND s.id = ?2 AND m.scope IN ('', '+')");
    Ok(c.prepare_cached(&sql)?
        .query_row([id.to_string(), session.to_string()], read_message)
        .optional()?)
}

pub(crate) fn messages_since(
    c: &Connection,
    session: SessionId,
    view: MessageView<'_>,
    after: Position,
    upto: Position,
) -> Result<Vec<StoredMessage>, ReadError> {
    let (condition, scope) = view_condition(view);
    let sql = format!(
        "{SELECT} WHERE {condition} AND s.id = ?2 AND m.completed > ?3 AND m.completed <= ?4 \
         ORDER BY m.completed, m.id"
    );
    let values = params![
        scope,
        session.to_string(),
        after.to_string(),
        upto.to_string()
    ];
    query_rows(c, &sql, values, read_message)
}

pub(crate) fn message_count(
    c: &Connection,
    session: SessionId,
    view: MessageView<'_>,
    upto: Position,
) -> Result<u64, ReadError> {
    let (condition, scope) = view_condition(view);
    let sql = format!(
        "SELECT count(*) FROM message m JOIN session s ON s.sid = m.sid \
         WHERE {condition} AND s.id = ?2 AND m.completed <= ?3"
    );
    let count: i64 = c.prepare_cached(&sql)?.query_row(
        params![scope, session.to_string(), upto.to_string()],
        |row| row.get(0),
    )?;
    Ok(count as u64)
}

pub(crate) fn streamed_messages(
    c: &Connection,
    session: SessionId,
    after: Position,
    upto: Position,
) -> Result<Vec<StoredMessage>, ReadError> {
    // Messages of a session stream one after the other. Besides those that complete in the range
    // only the next one to complete can have started in it; a range without an end would read every
    // later message for every chunk of a long replay. Messages of sub-agents are not streamed.
    let within = format!(
        "{SELECT} WHERE s.id = ?1 AND m.completed > ?2 AND m.completed <= ?3 AND m.scope = '' \
         AND m.role = 'assistant' ORDER BY m.completed"
    );
    let mut messages = query_rows(
        c,
        &within,
        params![session.to_string(), after.to_string(), upto.to_string()],
        read_message,
    )?;
    let next = format!(
        "{SELECT} WHERE s.id = ?1 AND m.completed > ?2 AND m.scope = '' AND m.role = 'assistant' \
         ORDER BY m.completed LIMIT 1"
    );
    let next = query_rows(
        c,
        &next,
        params![session.to_string(), upto.to_string()],
        read_message,
    )?;
    messages.extend(next.into_iter().filter(|message| message.started <= upto));
    Ok(messages)
}

pub(crate) fn message_checkpoints(
    c: &Connection,
    turn: TurnId,
) -> Result<Vec<MessagePart>, ReadError> {
    let sql = "SELECT message, turn, model, started, started_at, part, blocks, cuts FROM message_part \
               WHERE turn = ?1 ORDER BY part";
    query_rows(c, sql, [turn.to_string()], |row| {
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
