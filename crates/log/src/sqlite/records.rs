//! The [records](crate::records) over SQLite: the queries behind each part of the contract.

mod audit;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use turnwire_event::row::{
    ApprovalRow, KeyRow, KeyScope, LlmCallRow, MessagePart, QueuedRow, SessionRow, StoredMessage,
    ToolCallRow, TurnRow,
};
use turnwire_event::{
    CallId, Message, MessageId, Owner, Position, SessionId, TenantId, Timestamp, ToolUseId, TurnId,
    UpstreamId, UtcDay,
};

use crate::error::{AppendError, ReadError};
use crate::records::{
    ApprovalRecords, CallRecords, DailyUsage, MessageRecords, MessageView, PageBounds, RowPage,
    SessionRecords, SessionsOf, StatusCount, TurnRecords, UsageOn,
};
use crate::sqlite::SqliteStore;
use crate::sqlite::column::{
    NEWEST, SelectRow as _, bounded, column_bytes, cursor, parsed, query_value,
};
use crate::sqlite::table::message::{self, view_condition};
use crate::sqlite::table::session::ListedSession;
use crate::sqlite::table::{key, llm_call, status, turn};

impl SessionRecords for SqliteStore {
    fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        self.readers
            .with(|c| SessionRow::one(c, "WHERE s.id = ?1", [id.to_string()]))
    }

    fn sessions(
        &self,
        of: &SessionsOf,
        before: Option<SessionId>,
        bounds: PageBounds,
    ) -> Result<RowPage<SessionRow>, ReadError> {
        let (tenant, principal) = match of {
            SessionsOf::Owner(owner) => (owner.tenant, Some(owner.principal.as_str())),
            SessionsOf::Tenant(tenant) => (*tenant, None),
        };
        let of_principal = match principal {
            Some(_) => "s.principal = ?2",
            None => "?2 IS NULL",
        };
        let sql = format!(
            "{} WHERE s.tenant = ?1 AND {of_principal} AND s.id < ?3 AND s.parent IS NULL \
             ORDER BY s.id DESC LIMIT ?4",
            ListedSession::SELECT
        );
        let values = params![
            tenant.to_string(),
            principal,
            cursor(before),
            bounds.query_limit()
        ];
        let weighed = |row: &Row<'_>| Ok((column_bytes(row)?, ListedSession::read(row)?.0));
        self.readers
            .with(|c| bounded(c, &sql, values, bounds, weighed))
    }

    fn workers(
        &self,
        parent: SessionId,
        before: Option<SessionId>,
        bounds: PageBounds,
    ) -> Result<RowPage<SessionRow>, ReadError> {
        let page = self
            .readers
            .with(|c| ListedSession::page(c, ("s.parent", parent), ("s.id", before), bounds))?;
        Ok(RowPage {
            rows: page.rows.into_iter().map(|listed| listed.0).collect(),
            has_more: page.has_more,
        })
    }

    fn closed_sessions(&self) -> Result<Vec<SessionId>, ReadError> {
        let sql = "SELECT s.id FROM event e INDEXED BY event_closed CROSS JOIN session s ON s.sid = e.sid \
             WHERE e.type = 'session.closed' \
             AND e.seq = (SELECT max(last.seq) FROM event last WHERE last.sid = e.sid) ORDER BY s.id";
        self.readers.with_all(|c| session_ids(c, sql))
    }
}

impl TurnRecords for SqliteStore {
    fn turn(&self, id: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError> {
        self.readers
            .with(|c| <(Owner, TurnRow)>::one(c, "WHERE t.id = ?1", [id.to_string()]))
    }

    fn turn_of_response(
        &self,
        owner: &Owner,
        id: &UpstreamId,
    ) -> Result<Option<TurnId>, ReadError> {
        self.readers.with(|c| turn::of_response(c, owner, id))
    }

    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        bounds: PageBounds,
    ) -> Result<RowPage<TurnRow>, ReadError> {
        self.readers
            .with(|c| TurnRow::page(c, ("s.id", session), ("t.id", before), bounds))
    }

    fn last_ended_turn(
        &self,
        session: SessionId,
        upto: Position,
    ) -> Result<Option<TurnRow>, ReadError> {
        self.readers.with(|c| turn::last_ended(c, session, upto))
    }

    fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError> {
        let condition = "WHERE t.ended IS NULL AND t.state <> 'queued' ORDER BY t.id";
        self.readers.with_all(|c| TurnRow::all(c, condition, []))
    }

    fn resuming_turn(&self, paused: TurnId) -> Result<Option<TurnRow>, ReadError> {
        self.readers
            .with(|c| TurnRow::one(c, "WHERE t.resumes = ?1", [paused.to_string()]))
    }

    fn queued_turns(&self, session: SessionId) -> Result<Vec<QueuedRow>, ReadError> {
        let condition = "WHERE s.id = ?1 AND t.state = 'queued' ORDER BY t.queue_place";
        self.readers
            .with(|c| QueuedRow::all(c, condition, [session.to_string()]))
    }

    fn queued_sessions(&self) -> Result<Vec<SessionId>, ReadError> {
        let sql = "SELECT s.id FROM session s WHERE s.sid IN (SELECT t.sid FROM turn t WHERE t.state = 'queued') ORDER BY s.id";
        self.readers.with_all(|c| session_ids(c, sql))
    }

    fn idempotency_key(&self, scope: &KeyScope) -> Result<Option<KeyRow>, ReadError> {
        self.readers.with(|c| key::find(c, scope))
    }

    fn expire_keys(&self, before: Timestamp, max: usize) -> Result<usize, AppendError> {
        self.write(|half| half.expire_keys(before, max))
    }
}

impl ApprovalRecords for SqliteStore {
    fn turn_approvals(&self, turn: TurnId) -> Result<Vec<ApprovalRow>, ReadError> {
        self.readers
            .with(|c| ApprovalRow::all(c, "WHERE a.turn = ?1 ORDER BY a.id", [turn.to_string()]))
    }

    fn open_approvals(&self, session: SessionId) -> Result<Vec<ApprovalRow>, ReadError> {
        let condition = "WHERE s.id = ?1 AND a.state = 'pending' ORDER BY a.id";
        self.readers
            .with(|c| ApprovalRow::all(c, condition, [session.to_string()]))
    }
}

impl MessageRecords for SqliteStore {
    fn messages(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        upto: Position,
        before: Option<MessageId>,
        bounds: PageBounds,
    ) -> Result<RowPage<Message>, ReadError> {
        let (session, upto) = (session.to_string(), upto.to_string());
        let mut page = self.readers.with(|c| {
            let completed = completed_before(c, &session, before)?;
            let before = (completed.as_str(), before.map(|id| id.to_string()));
            message::page(c, view, (&session, &upto), before, bounds)
        })?;
        page.rows.reverse();
        Ok(page)
    }

    fn messages_since(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        let (scope_condition, scope) = view_condition(view);
        let condition = format!(
            "WHERE {scope_condition} AND s.id = ?2 AND m.completed > ?3 AND m.completed <= ?4 \
             ORDER BY m.completed, m.id"
        );
        let (session, after, upto) = (session.to_string(), after.to_string(), upto.to_string());
        self.readers
            .with(|c| StoredMessage::all(c, &condition, params![scope, session, after, upto]))
    }

    fn message(
        &self,
        session: SessionId,
        id: MessageId,
    ) -> Result<Option<StoredMessage>, ReadError> {
        let condition = "WHERE m.id = ?1 AND s.id = ?2 AND m.scope IN ('', '+')";
        self.readers
            .with(|c| StoredMessage::one(c, condition, [id.to_string(), session.to_string()]))
    }

    fn message_count(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        upto: Position,
    ) -> Result<u64, ReadError> {
        let (scope_condition, scope) = view_condition(view);
        let sql = format!(
            "SELECT count(*) FROM message m JOIN session s ON s.sid = m.sid \
             WHERE {scope_condition} AND s.id = ?2 AND m.completed <= ?3"
        );
        let values = params![scope, session.to_string(), upto.to_string()];
        let count: i64 = self.readers.with(|c| query_value(c, &sql, values))?;
        Ok(count as u64)
    }

    fn streamed_messages(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
        bytes_max: usize,
    ) -> Result<(Vec<StoredMessage>, Position), ReadError> {
        // Messages of a session stream one after the other. Besides those that complete in the range
        // only the next one to complete can have started in it. Messages of sub-agents are not
        // streamed.
        let condition = "WHERE s.id = ?1 AND m.scope = '' AND m.role = 'assistant' \
             AND m.completed > ?2 ORDER BY m.completed";
        let sql = format!("{} {condition}", StoredMessage::SELECT);
        self.readers.with(|c| {
            let mut statement = c.prepare_cached(&sql)?;
            let mut rows = statement.query([session.to_string(), after.to_string()])?;
            let (mut messages, mut end, mut bytes) = (Vec::new(), after, 0);
            while let Some(row) = rows.next()? {
                let (started, completed): (Position, Position) =
                    (parsed(row, 12)?, parsed(row, 13)?);
                if completed > upto && started > upto {
                    break;
                }
                bytes += message::stored_size(row)?;
                if !messages.is_empty() && bytes > bytes_max {
                    return Ok((messages, end));
                }
                messages.push(StoredMessage::read(row)?);
                if completed > upto {
                    break;
                }
                end = completed;
            }
            Ok::<_, rusqlite::Error>((messages, upto))
        })
    }

    fn streamed_ranges(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
        max: usize,
    ) -> Result<Vec<(Position, Position)>, ReadError> {
        let sql = "SELECT m.started, m.completed FROM message m JOIN session s ON s.sid = m.sid \
             WHERE s.id = ?1 AND m.scope = '' AND m.role = 'assistant' AND m.completed > ?2 \
             AND m.completed <= ?3 AND m.started <> m.completed ORDER BY m.completed LIMIT ?4";
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let values = params![
            session.to_string(),
            after.to_string(),
            upto.to_string(),
            limit
        ];
        self.readers.with(|c| {
            let mut statement = c.prepare_cached(sql)?;
            let ranges =
                statement.query_map(values, |row| Ok((parsed(row, 0)?, parsed(row, 1)?)))?;
            ranges.collect::<rusqlite::Result<_>>()
        })
    }

    fn message_checkpoints(&self, turn: TurnId) -> Result<Vec<MessagePart>, ReadError> {
        let of_turn =
            "WHERE sid = (SELECT sid FROM turn WHERE id = ?1) AND turn = ?1 ORDER BY part";
        self.readers
            .with(|c| MessagePart::all(c, of_turn, [turn.to_string()]))
    }
}

/// The ids that a query without parameters returns.
fn session_ids(c: &Connection, sql: &str) -> rusqlite::Result<Vec<SessionId>> {
    let mut statement = c.prepare_cached(sql)?;
    let ids = statement.query_map([], |row| parsed(row, 0))?;
    ids.collect()
}

/// The position before which the messages of a page completed: completion order, not id order, is
/// the order of the conversation. A message that does not exist gives an empty page.
fn completed_before(
    c: &Connection,
    session: &str,
    before: Option<MessageId>,
) -> rusqlite::Result<String> {
    let Some(id) = before else {
        return Ok(NEWEST.to_owned());
    };
    let sql = "SELECT m.completed FROM message m JOIN session s ON s.sid = m.sid WHERE m.id = ?1 AND s.id = ?2";
    let completed = query_value(c, sql, params![id.to_string(), session]).optional()?;
    Ok(completed.unwrap_or_default())
}

impl CallRecords for SqliteStore {
    fn tool_calls(
        &self,
        session: SessionId,
        before: Option<ToolUseId>,
        bounds: PageBounds,
    ) -> Result<RowPage<ToolCallRow>, ReadError> {
        self.readers
            .with(|c| ToolCallRow::page(c, ("s.id", session), ("t.id", before), bounds))
    }

    fn turn_tool_calls(&self, turn: TurnId) -> Result<Vec<ToolCallRow>, ReadError> {
        self.readers
            .with(|c| ToolCallRow::all(c, "WHERE t.turn = ?1 ORDER BY t.id", [turn.to_string()]))
    }

    fn llm_calls(
        &self,
        session: SessionId,
        before: Option<CallId>,
        bounds: PageBounds,
    ) -> Result<RowPage<LlmCallRow>, ReadError> {
        self.readers
            .with(|c| LlmCallRow::page(c, ("s.id", session), ("c.id", before), bounds))
    }

    fn daily_usage(
        &self,
        tenant: Option<TenantId>,
        (from, to): (UtcDay, UtcDay),
        limit: usize,
    ) -> Result<Vec<DailyUsage>, ReadError> {
        let of_tenant = if tenant.is_some() {
            "tenant = ?4"
        } else {
            "?4 IS NULL"
        };
        let condition = format!(
            "WHERE day BETWEEN ?1 AND ?2 AND {of_tenant} ORDER BY day, tenant, model LIMIT ?3"
        );
        let values = params![
            from.to_string(),
            to.to_string(),
            limit as i64,
            tenant.map(|tenant| tenant.to_string())
        ];
        self.readers
            .with(|c| DailyUsage::all(c, &condition, values))
    }

    fn usage_on(&self, owner: &Owner, day: UtcDay) -> Result<UsageOn, ReadError> {
        self.readers.with(|c| llm_call::usage_on(c, owner, day))
    }

    fn expire_usage(&self, before: UtcDay, max: usize) -> Result<usize, AppendError> {
        self.write(|half| half.expire_usage(before, max))
    }

    fn status_counts(&self, since: Timestamp) -> Result<Vec<StatusCount>, ReadError> {
        self.readers.with(|c| status::counts(c, since))
    }
}
