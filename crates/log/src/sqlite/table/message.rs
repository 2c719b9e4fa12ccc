//! The message table: messages written complete, checkpoints of those that stream, reads by view.
//!
//! The `scope` column says who reads a message: '' everyone, '+' clients only, '-' the orchestrator
//! only, '*' every sub-agent, otherwise the sub-agent with that id.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, params};
use turnwire_event::content::content_json;
use turnwire_event::row::{
    FinishedMessage, MessagePart, MessageScope, NewMessage, PlacedChange, StoredMessage,
};
use turnwire_event::{Message, ProviderState, TurnId};

use crate::records::{MessageView, PageBounds, RowPage, is_display_only};
use crate::sqlite::column::{
    SelectRow, bounded, code_name, count, execute, json, optional, optional_id, parsed, time, value,
};

/// The `scope` column of a message. Ids of sub-agents begin with a letter, so none is mistaken for
/// another scope. Display-only messages have a scope of their own, so that reads need not look at
/// the content.
fn scope_column(message: &NewMessage) -> &str {
    match &message.scope {
        MessageScope::Shared if is_display_only(message.role, &message.content) => "+",
        MessageScope::Shared => "",
        MessageScope::Private => "-",
        MessageScope::Agents => "*",
        MessageScope::Agent(id) => id,
    }
}

/// The condition of a view on `m.scope`, and its parameter.
pub(crate) fn view_condition(view: MessageView<'_>) -> (&'static str, &str) {
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
    execute(
        tx,
        "INSERT INTO message (id, sid, turn, role, status, content, metadata, created_at, completed_at, \
         started, completed, cuts, inputs, scope, kept) \
         VALUES (?1, ?2, ?3, ?4, 'complete', ?5, ?6, ?7, ?7, ?8, ?8, x'', '[]', ?9, ?10)",
        params![
            m.id.to_string(),
            sid,
            turn.to_string(),
            code_name(&m.role),
            content_json(&m.content).0,
            json(&m.metadata),
            placed.time.as_millis(),
            placed.at.to_string(),
            scope_column(m),
            kept_column(&m.provider_state)
        ],
    )
    .map(drop)
}

/// Writes a message whose stream has ended, and removes its checkpoints.
pub(crate) fn finish(
    tx: &Transaction<'_>,
    sid: i64,
    turn: TurnId,
    m: &FinishedMessage,
    placed: &PlacedChange,
) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO message (id, sid, turn, role, status, content, model, stop_reason, usage, metadata, \
         created_at, completed_at, started, completed, cuts, inputs, scope, kept) \
         VALUES (?1, ?2, ?3, 'assistant', ?4, ?5, ?6, ?7, ?8, '{}', ?9, ?10, ?11, ?12, ?13, ?14, '', ?15)",
        params![
            m.id.to_string(),
            sid,
            turn.to_string(),
            code_name(&m.status),
            content_json(&m.content).0,
            m.model,
            code_name(&m.stop_reason),
            json(&m.usage),
            m.started_at.as_millis(),
            placed.time.as_millis(),
            m.started.to_string(),
            placed.at.to_string(),
            m.cuts,
            json(&m.inputs),
            kept_column(&m.provider_state)
        ],
    )?;
    let parts = "DELETE FROM message_part WHERE sid = ?1 AND turn = ?2 AND message = ?3";
    execute(tx, parts, params![sid, turn.to_string(), m.id.to_string()]).map(drop)
}

/// Writes a checkpoint of a message that streams.
pub(crate) fn put_checkpoint(
    tx: &Transaction<'_>,
    sid: i64,
    part: &MessagePart,
) -> rusqlite::Result<()> {
    // A checkpoint that was taken before the message completed may be written after it.
    execute(
        tx,
        "INSERT INTO message_part (message, part, sid, turn, model, started, started_at, blocks, cuts) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE NOT EXISTS (SELECT 1 FROM message WHERE id = ?1)",
        params![
            part.message_id.to_string(), part.index, sid, part.turn_id.to_string(), part.model,
            part.started.to_string(), part.started_at.as_millis(), part.blocks, part.cuts
        ],
    )
    .map(drop)
}

/// The column of what a message's provider wants back with it; NULL if that is nothing.
pub(crate) fn kept_column(kept: &ProviderState) -> Option<String> {
    (!kept.is_empty()).then(|| json(kept))
}

/// The columns of a message that a client reads beside its content and metadata, in bytes: ids,
/// model, usage and time.
const LISTED_FIELDS_BYTES: usize = 512;

/// The newest messages of a session within `bounds`, newest first: those that completed at `upto`
/// and before `before`, a position and the message that completed there. What clients are not shown,
/// and content that exceeds the page alone, is not read; the weight of such a message is its full
/// size, so that it ends its page.
pub(crate) fn page(
    c: &Connection,
    view: MessageView<'_>,
    (session, upto): (&str, &str),
    (before, before_id): (&str, Option<String>),
    bounds: PageBounds,
) -> rusqlite::Result<RowPage<Message>> {
    let (scope_condition, scope) = view_condition(view);
    // `octet_length` reads no content.
    let (content, metadata, kept, weight) = match view {
        MessageView::Clients => (
            "CASE WHEN octet_length(m.content) + octet_length(m.metadata) <= ?7 THEN m.content END",
            "CASE WHEN octet_length(m.content) + octet_length(m.metadata) <= ?7 THEN m.metadata END",
            "NULL",
            "octet_length(m.content) + octet_length(m.metadata)",
        ),
        MessageView::Orchestrator | MessageView::Agent(_) | MessageView::Agents => (
            "m.content",
            "m.metadata",
            "m.kept",
            "octet_length(m.content) + coalesce(octet_length(m.kept), 0)",
        ),
    };
    let sql = format!(
        "SELECT m.id, s.id, m.turn, m.role, m.status, {content}, m.model, m.stop_reason, m.usage, \
         m.created_at, {metadata}, {kept}, {weight} FROM message m JOIN session s ON s.sid = m.sid \
         WHERE {scope_condition} AND s.id = ?2 AND m.completed <= ?3 \
         AND (m.completed, m.id) < (?4, ?5) ORDER BY m.completed DESC, m.id DESC LIMIT ?6"
    );
    let is_listed = view == MessageView::Clients;
    let bytes_max = i64::try_from(bounds.bytes).unwrap_or(i64::MAX);
    let row_limit = bounds.query_limit();
    // Messages at one position are in the order of their ids.
    let before_id = before_id.unwrap_or_default();
    let values = params![
        scope, session, upto, before, before_id, row_limit, bytes_max
    ];
    let values = if is_listed { values } else { &values[..6] };
    bounded(c, &sql, values, bounds, |row| {
        let bytes = count(row, 12)?;
        let mut message = read_message(row)?;
        message.omitted_bytes = (row.get_ref(5)? == ValueRef::Null).then_some(bytes);
        let weight = usize::try_from(bytes).unwrap_or(usize::MAX);
        let fields = if is_listed { LISTED_FIELDS_BYTES } else { 0 };
        Ok((weight.saturating_add(fields), message))
    })
}

/// Reads a [`Message`] from the first twelve columns; content and metadata may be NULL.
pub(crate) fn read_message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: parsed(row, 0)?,
        session_id: parsed(row, 1)?,
        turn_id: parsed(row, 2)?,
        role: value(row, 3)?,
        status: value(row, 4)?,
        content: optional(row, 5)?.unwrap_or_default(),
        omitted_bytes: None,
        model: row.get(6)?,
        stop_reason: optional(row, 7)?,
        usage: optional(row, 8)?,
        created_at: time(row, 9)?,
        metadata: optional(row, 10)?.unwrap_or_default(),
        provider_state: optional(row, 11)?.unwrap_or_default(),
    })
}

impl SelectRow for StoredMessage {
    const SELECT: &str = "SELECT m.id, s.id, m.turn, m.role, m.status, m.content, m.model, m.stop_reason, m.usage, \
        m.created_at, m.metadata, m.kept, m.started, m.completed, m.completed_at, m.cuts, m.inputs, t.response_id \
        FROM message m JOIN session s ON s.sid = m.sid LEFT JOIN turn t ON t.id = m.turn";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            message: read_message(row)?,
            response_id: optional_id(row, 17)?,
            started: parsed(row, 12)?,
            completed: Some((parsed(row, 13)?, time(row, 14)?)),
            cuts: row.get(15)?,
            inputs: value(row, 16)?,
        })
    }
}

/// The stored size of the parts of a message that grow with it, for a row of
/// [`StoredMessage::SELECT`]: content, cuts and inputs.
pub(crate) fn stored_size(row: &Row<'_>) -> rusqlite::Result<usize> {
    let size = |column| {
        let bytes = row.get_ref(column)?.as_bytes_or_null()?;
        Ok::<_, rusqlite::Error>(bytes.map_or(0, <[u8]>::len))
    };
    Ok(size(5)? + size(15)? + size(16)?)
}

impl SelectRow for MessagePart {
    const SELECT: &str =
        "SELECT message, turn, model, started, started_at, part, blocks, cuts FROM message_part";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            message_id: parsed(row, 0)?,
            turn_id: parsed(row, 1)?,
            model: row.get(2)?,
            started: parsed(row, 3)?,
            started_at: time(row, 4)?,
            index: row.get(5)?,
            blocks: row.get(6)?,
            cuts: row.get(7)?,
        })
    }
}
