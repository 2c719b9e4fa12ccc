//! Reading the rows beside the log: sessions, turns, tool calls.

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use serde::de::DeserializeOwned;
use turnwire_event::row::{SessionRow, ToolCallRow, TurnRow};
use turnwire_event::{Owner, SessionId, Timestamp, ToolUseId, TurnId};

use crate::error::ReadError;

type Result<T> = std::result::Result<T, ReadError>;

/// A text column parsed; a row that does not parse is a store that cannot be trusted.
pub(crate) fn parsed<T: std::str::FromStr>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    text.parse().map_err(|_| bad(at))
}

/// A word or JSON column read as a value.
pub(crate) fn value<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text)
        .or_else(|_| serde_json::from_value(serde_json::Value::String(text)))
        .map_err(|_| bad(at))
}

pub(crate) fn optional<T: DeserializeOwned>(
    row: &Row<'_>,
    at: usize,
) -> rusqlite::Result<Option<T>> {
    if row.get_ref(at)? == rusqlite::types::ValueRef::Null {
        Ok(None)
    } else {
        value(row, at).map(Some)
    }
}

fn bad(at: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(at, "unreadable".into(), rusqlite::types::Type::Text)
}

pub(crate) fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Timestamp> {
    row.get(at).map(Timestamp::from_millis)
}

pub(crate) fn many<T>(
    c: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Behind every id there is none, so it works as "from the newest".
pub(crate) const NEWEST: &str = "~";

pub(crate) fn cursor<T: ToString>(before: Option<T>) -> String {
    before.map_or_else(|| NEWEST.to_owned(), |id| id.to_string())
}

const SESSION: &str = "SELECT s.id, s.tenant, s.principal, s.parent, s.workspace_path, s.metadata, s.episode_id, \
    s.active_model, s.routing_policy_version, s.cost_usd, s.turn_count, s.created_at, s.updated_at, s.agent FROM session s";

pub(crate) fn read_owner(row: &Row<'_>, at: usize) -> rusqlite::Result<Owner> {
    Ok(Owner {
        tenant: parsed(row, at)?,
        principal: parsed(row, at + 1)?,
    })
}

fn read_session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: parsed(row, 0)?,
        owner: read_owner(row, 1)?,
        parent: row
            .get::<_, Option<String>>(3)?
            .and_then(|id| id.parse().ok()),
        workspace_path: row.get(4)?,
        metadata: value(row, 5)?,
        episode_id: parsed(row, 6)?,
        active_model: row.get(7)?,
        routing_policy_version: row.get(8)?,
        cost_usd: row.get(9)?,
        turn_count: row.get::<_, i64>(10)? as u64,
        created_at: time(row, 11)?,
        updated_at: time(row, 12)?,
        agent: row.get(13)?,
    })
}

pub(crate) fn session(c: &Connection, id: SessionId) -> Result<Option<SessionRow>> {
    let sql = format!("{SESSION} WHERE s.id = ?1");
    Ok(c.prepare_cached(&sql)?
        .query_row([id.to_string()], read_session)
        .optional()?)
}

pub(crate) fn sessions(
    c: &Connection,
    owner: &Owner,
    before: Option<SessionId>,
    limit: usize,
) -> Result<Vec<SessionRow>> {
    let sql = format!(
        "{SESSION} WHERE s.tenant = ?1 AND s.principal = ?2 AND s.id < ?3 AND s.parent IS NULL \
         ORDER BY s.id DESC LIMIT ?4"
    );
    let values = params![
        owner.tenant.to_string(),
        owner.principal.as_str(),
        cursor(before),
        limit as i64
    ];
    many(c, &sql, values, read_session)
}

pub(crate) fn workers(
    c: &Connection,
    parent: SessionId,
    before: Option<SessionId>,
    limit: usize,
) -> Result<Vec<SessionRow>> {
    let sql = format!("{SESSION} WHERE s.parent = ?1 AND s.id < ?2 ORDER BY s.id DESC LIMIT ?3");
    let values = params![parent.to_string(), cursor(before), limit as i64];
    many(c, &sql, values, read_session)
}

const TURN: &str = "SELECT t.id, s.id, t.kind, t.state, t.on_disconnect, t.disconnect_grace_ms, t.trace, t.started, \
    t.started_at, t.ended, t.ended_at, t.terminal_type, t.terminal, s.tenant, s.principal, t.wire_version, t.agent_definition, \
    t.resumes \
    FROM turn t JOIN session s ON s.sid = t.sid";

fn read_turn(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    let terminal = match row.get::<_, Option<String>>(11)? {
        None => None,
        Some(kind) => Some((kind.parse().map_err(|_| bad(11))?, value(row, 12)?)),
    };
    Ok(TurnRow {
        id: parsed(row, 0)?,
        session_id: parsed(row, 1)?,
        kind: value(row, 2)?,
        state: value(row, 3)?,
        on_disconnect: value(row, 4)?,
        disconnect_grace_ms: row.get::<_, i64>(5)? as u64,
        trace: optional(row, 6)?,
        wire_version: row.get(15)?,
        agent_definition: row.get(16)?,
        resumes: row
            .get::<_, Option<String>>(17)?
            .and_then(|id| id.parse().ok()),
        started: parsed(row, 7)?,
        started_at: time(row, 8)?,
        ended: row
            .get::<_, Option<String>>(9)?
            .and_then(|at| at.parse().ok()),
        ended_at: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        terminal,
    })
}

pub(crate) fn turn(c: &Connection, id: TurnId) -> Result<Option<(Owner, TurnRow)>> {
    let sql = format!("{TURN} WHERE t.id = ?1");
    let read = |row: &Row<'_>| Ok((read_owner(row, 13)?, read_turn(row)?));
    Ok(c.prepare_cached(&sql)?
        .query_row([id.to_string()], read)
        .optional()?)
}

/// The turn that goes on with a paused one.
pub(crate) fn leg(c: &Connection, paused: TurnId) -> Result<Option<TurnRow>> {
    let sql = format!("{TURN} WHERE t.resumes = ?1");
    Ok(c.prepare_cached(&sql)?
        .query_row([paused.to_string()], read_turn)
        .optional()?)
}

pub(crate) fn turns(
    c: &Connection,
    session: SessionId,
    before: Option<TurnId>,
    limit: usize,
) -> Result<Vec<TurnRow>> {
    let sql = format!("{TURN} WHERE s.id = ?1 AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3");
    many(
        c,
        &sql,
        params![session.to_string(), cursor(before), limit as i64],
        read_turn,
    )
}

pub(crate) fn open_turns(c: &Connection) -> Result<Vec<TurnRow>> {
    many(
        c,
        &format!("{TURN} WHERE t.ended IS NULL AND t.state <> 'queued' ORDER BY t.id"),
        [],
        read_turn,
    )
}

const TOOL: &str = "SELECT t.id, t.turn, t.name, t.type, t.status, t.started_at, t.ended_at \
    FROM tool_call t JOIN session s ON s.sid = t.sid";

fn read_tool(row: &Row<'_>) -> rusqlite::Result<ToolCallRow> {
    Ok(ToolCallRow {
        tool_use_id: parsed(row, 0)?,
        turn_id: parsed(row, 1)?,
        tool_name: row.get(2)?,
        tool_type: value(row, 3)?,
        status: value(row, 4)?,
        started_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
        ended_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
    })
}

pub(crate) fn tool_calls(
    c: &Connection,
    session: SessionId,
    before: Option<ToolUseId>,
    limit: usize,
) -> Result<Vec<ToolCallRow>> {
    let sql = format!("{TOOL} WHERE s.id = ?1 AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3");
    many(
        c,
        &sql,
        params![session.to_string(), cursor(before), limit as i64],
        read_tool,
    )
}

pub(crate) fn turn_tool_calls(c: &Connection, turn: TurnId) -> Result<Vec<ToolCallRow>> {
    many(
        c,
        &format!("{TOOL} WHERE t.turn = ?1 ORDER BY t.id"),
        [turn.to_string()],
        read_tool,
    )
}
