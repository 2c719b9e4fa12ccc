//! The contract of the records beside the log: what the row changes of appends add up to, by noun.
//!
//! - Row changes are written by [`Log::append`](crate::Log::append), in the transaction of their
//!   event; a record never shows a change whose event is not durable.
//! - Reads see every append that returned before they began.
//! - Lists that take `before` are pages, newest first: rows with a smaller id than `before`, within
//!   [`PageBounds`]. A page ends where its rows or its bytes are used up, and the rows behind that
//!   are not read.
//! - Calls block, as those of [`Log`](crate::Log).

pub mod audit;

use turnwire_event::row::{
    ApprovalRow, KeyRow, KeyScope, LlmCallRow, MessagePart, QueuedRow, SessionRow, StoredMessage,
    ToolCallRow, TurnRow,
};
use turnwire_event::{
    CallId, ContentBlock, Message, MessageId, Owner, Position, Role, SessionId, TenantId,
    Timestamp, TokenUsage, ToolUseId, TurnId, UpstreamId, UtcDay,
};

use self::audit::{AuditRecords, JobRecords};
use crate::error::{AppendError, ReadError};

/// The bounds of a page: it ends at the one that is reached first. The first row of a list is in its
/// page however large it is, so that following pages always comes to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBounds {
    pub rows: usize,
    /// The sum over the rows of the bytes that are read from them.
    pub bytes: usize,
}

impl PageBounds {
    /// The `LIMIT` of a query for the page and one row behind it.
    pub(crate) fn query_limit(self) -> i64 {
        i64::try_from(self.rows).map_or(i64::MAX, |rows| rows.saturating_add(1))
    }
}

impl From<usize> for PageBounds {
    /// A page of this many rows of any size.
    fn from(rows: usize) -> Self {
        let bytes = usize::MAX;
        Self { rows, bytes }
    }
}

/// The rows of a page, and whether the list goes on behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPage<T> {
    pub rows: Vec<T>,
    pub has_more: bool,
}

/// Whose sessions are listed.
#[derive(Clone, Debug)]
pub enum SessionsOf {
    /// Those of one owner.
    Owner(Owner),
    /// Those of everybody in a tenant.
    Tenant(TenantId),
}

/// Sessions by owner and by parent. Lists leave out [`metadata`](SessionRow::metadata), which may be
/// as large as everything else together, and a `workspace_path` above [`LISTED_PATH_BYTES_MAX`].
pub trait SessionRecords: Send + Sync + 'static {
    /// Returns a session, or `None` if it does not exist or was deleted.
    fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError>;

    /// Returns a page of the sessions of an owner or of a tenant; worker sessions are left out.
    fn sessions(
        &self,
        of: &SessionsOf,
        before: Option<SessionId>,
        bounds: PageBounds,
    ) -> Result<RowPage<SessionRow>, ReadError>;

    /// Returns a page of the worker sessions of `parent`.
    fn workers(
        &self,
        parent: SessionId,
        before: Option<SessionId>,
        bounds: PageBounds,
    ) -> Result<RowPage<SessionRow>, ReadError>;

    /// Returns the sessions whose last event is `session.closed`: their deletion was announced and is
    /// not finished. Looks at events of this type only.
    fn closed_sessions(&self) -> Result<Vec<SessionId>, ReadError>;
}

/// The longest `workspace_path` in a list, in bytes: the most that a server can be set to accept.
/// Databases of older releases may have longer ones.
pub const LISTED_PATH_BYTES_MAX: usize = 65_536;

/// Turns: queued, running and ended, and the idempotency keys they were submitted with.
pub trait TurnRecords: Send + Sync + 'static {
    /// Returns a turn and the owner of its session.
    fn turn(&self, id: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError>;

    /// Returns the turn of `owner` whose upstream gave its response the id `id`.
    fn turn_of_response(&self, owner: &Owner, id: &UpstreamId)
    -> Result<Option<TurnId>, ReadError>;

    /// Returns a page of a session's turns.
    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        bounds: PageBounds,
    ) -> Result<RowPage<TurnRow>, ReadError>;

    /// Returns the turn of a session whose terminal is the last one at `upto` or before.
    fn last_ended_turn(
        &self,
        session: SessionId,
        upto: Position,
    ) -> Result<Option<TurnRow>, ReadError>;

    /// Returns every turn, of any session, that has started and not ended.
    fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError>;

    /// Returns the turn that continues `paused`; at most one turn does.
    fn resuming_turn(&self, paused: TurnId) -> Result<Option<TurnRow>, ReadError>;

    /// Returns a session's queued turns, the next to start first.
    fn queued_turns(&self, session: SessionId) -> Result<Vec<QueuedRow>, ReadError>;

    /// Returns the sessions that have queued turns.
    fn queued_sessions(&self) -> Result<Vec<SessionId>, ReadError>;

    /// Returns the turn that was submitted with an idempotency key.
    fn idempotency_key(&self, scope: &KeyScope) -> Result<Option<KeyRow>, ReadError>;

    /// Removes idempotency keys older than `before`, the oldest first, at most `max`, in one
    /// transaction; returns how many. Durable on return.
    fn expire_keys(&self, before: Timestamp, max: usize) -> Result<usize, AppendError>;
}

/// Requests for a person's approval of a tool call.
pub trait ApprovalRecords: Send + Sync + 'static {
    /// Returns the approval requests of a turn, in the order of their requests.
    fn turn_approvals(&self, turn: TurnId) -> Result<Vec<ApprovalRow>, ReadError>;

    /// Returns the pending approval requests of a session, in the order of their requests.
    fn open_approvals(&self, session: SessionId) -> Result<Vec<ApprovalRow>, ReadError>;
}

/// Messages, in the order of their completion, as each [`MessageView`] shows them.
pub trait MessageRecords: Send + Sync + 'static {
    /// Returns a page of the messages that were complete at `upto` and completed before the message
    /// `before`, oldest first: the newest that are within `bounds`. For [`MessageView::Clients`] a
    /// message that exceeds the bytes of `bounds` alone is
    /// [without its content](Message::omitted_bytes), and provider state is left out; the other
    /// views have both.
    fn messages(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        upto: Position,
        before: Option<MessageId>,
        bounds: PageBounds,
    ) -> Result<RowPage<Message>, ReadError>;

    /// Returns the messages that completed in (`after`, `upto`], oldest first.
    fn messages_since(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError>;

    /// Returns a complete message that [`MessageView::Clients`] shows.
    fn message(
        &self,
        session: SessionId,
        id: MessageId,
    ) -> Result<Option<StoredMessage>, ReadError>;

    /// Counts the messages that were complete at `upto`.
    fn message_count(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        upto: Position,
    ) -> Result<u64, ReadError>;

    /// Returns the streamed messages with a part in (`after`, `upto`], in order, and the position up
    /// to which they are all: `upto`, or the end of the last one if the next would take their stored
    /// sizes above `bytes_max`. The first is returned whatever its size.
    fn streamed_messages(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
        bytes_max: usize,
    ) -> Result<(Vec<StoredMessage>, Position), ReadError>;

    /// Returns where each streamed message that completed in (`after`, `upto`] started and completed,
    /// oldest first, at most `max`. Reads no content.
    fn streamed_ranges(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
        max: usize,
    ) -> Result<Vec<(Position, Position)>, ReadError>;

    /// Returns the checkpoints of the message that a turn was streaming, in order; empty once the
    /// message is complete.
    fn message_checkpoints(&self, turn: TurnId) -> Result<Vec<MessagePart>, ReadError>;
}

/// Tool calls, model calls and the sums over them. Sums outlive their sessions.
pub trait CallRecords: Send + Sync + 'static {
    /// Returns a page of a session's tool calls.
    fn tool_calls(
        &self,
        session: SessionId,
        before: Option<ToolUseId>,
        bounds: PageBounds,
    ) -> Result<RowPage<ToolCallRow>, ReadError>;

    /// Returns a turn's tool calls, oldest first.
    fn turn_tool_calls(&self, turn: TurnId) -> Result<Vec<ToolCallRow>, ReadError>;

    /// Returns a page of a session's model calls.
    fn llm_calls(
        &self,
        session: SessionId,
        before: Option<CallId>,
        bounds: PageBounds,
    ) -> Result<RowPage<LlmCallRow>, ReadError>;

    /// Returns the usage of one tenant, or of all, from the first of `days` to the last, ordered by
    /// day, tenant and model; at most `limit` rows.
    fn daily_usage(
        &self,
        tenant: Option<TenantId>,
        days: (UtcDay, UtcDay),
        limit: usize,
    ) -> Result<Vec<DailyUsage>, ReadError>;

    /// Returns what the model calls of `owner`, and those of all in its tenant, came to on `day`. Days
    /// that [`expire_usage`](Self::expire_usage) has removed are 0 for the owner.
    fn usage_on(&self, owner: &Owner, day: UtcDay) -> Result<UsageOn, ReadError>;

    /// Removes what principals have used on days before `before`, at most `max` rows, in one
    /// transaction; returns how many. The sums of tenants stay. Durable on return.
    fn expire_usage(&self, before: UtcDay, max: usize) -> Result<usize, AppendError>;

    /// Returns how often each status was emitted, by id: in total, and on each day from that of
    /// `since` on.
    fn status_counts(&self, since: Timestamp) -> Result<Vec<StatusCount>, ReadError>;
}

/// All records. Implemented by every type that has the seven parts.
pub trait Records:
    SessionRecords
    + TurnRecords
    + ApprovalRecords
    + MessageRecords
    + CallRecords
    + JobRecords
    + AuditRecords
{
}

impl<T> Records for T where
    T: SessionRecords
        + TurnRecords
        + ApprovalRecords
        + MessageRecords
        + CallRecords
        + JobRecords
        + AuditRecords
{
}

/// Who reads messages. Each reader is shown the messages of its own scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageView<'a> {
    Clients,
    /// Shared messages that a model reads, and the orchestrator's private messages.
    Orchestrator,
    /// The messages of the sub-agent with this id.
    Agent(&'a str),
    /// Notes for all sub-agents.
    Agents,
}

/// True for a tool's message that holds only data and components. No model reads such a message,
/// so [`MessageView::Orchestrator`] leaves it out.
pub fn is_display_only(role: Role, content: &[ContentBlock]) -> bool {
    let is_displayed = |block: &ContentBlock| match block {
        ContentBlock::Component { .. } | ContentBlock::Data { .. } => true,
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => false,
    };
    role == Role::Tool && !content.is_empty() && content.iter().all(is_displayed)
}

/// How often a status was emitted; see [`CallRecords::status_counts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCount {
    /// The status id of the registry.
    pub event_id: String,
    /// Emissions since the database was created.
    pub total: u64,
    /// Emissions by day, oldest first; a day is `2026-01-31`, UTC. Days without one are left out.
    pub days: Vec<(String, u64)>,
}

/// Tokens and cost of model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageSum {
    pub tokens: u64,
    pub cost_usd: f64,
}

/// What model calls came to on one day; see [`CallRecords::usage_on`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageOn {
    /// The sum of the owner's own calls.
    pub principal: UsageSum,
    /// The sum over everybody in the tenant.
    pub tenant: UsageSum,
}

/// The model calls of one tenant and one model that ended on one day; see
/// [`CallRecords::daily_usage`].
#[derive(Clone, Debug, PartialEq)]
pub struct DailyUsage {
    pub day: UtcDay,
    /// The tenant that owns the calls' sessions.
    pub tenant: TenantId,
    pub model: String,
    /// Calls that ended, in whatever way.
    pub calls: u64,
    pub failed: u64,
    /// Calls that a cancel stopped.
    pub stopped: u64,
    /// The sum over all of them.
    pub usage: TokenUsage,
}
