//! What a store promises. One suite (`conformance`) holds every implementation to it.
//!
//! - `append` returns after everything of the batch is durable, or with nothing of it written.
//! - Events of a session are dense; an append whose `prev` is not the last event is refused.
//! - Reads see every append that returned before they began. What is read is what was written,
//!   byte for byte, and checked against the hash chain.
//! - Calls block: the writer calls from its own thread, readers from a blocking pool.

#[cfg(test)]
pub(crate) mod conformance;

use turnwire_event::row::{
    ApprovalRow, KeyRow, KeyScope, LlmCallRow, MessagePart, QueuedRow, SessionRow, StoredMessage,
    ToolCallRow, TurnRow,
};
use turnwire_event::{
    ApprovalId, CallId, ContentBlock, Day, Filter, MessageId, Owner, Position, Role, Seq,
    SessionId, TenantId, Timestamp, ToolUseId, TurnId, Usage,
};

use crate::error::{AppendError, ReadError};
use crate::record::{Append, StoredEvent, Tail};

/// Who reads messages: each is shown its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View<'a> {
    /// Clients: what is shared.
    Clients,
    /// The orchestrator: what is shared and not only displayed, and what is private to it.
    Orchestrator,
    /// The sub-agent of this id: its own.
    Agent(&'a str),
    /// Every sub-agent: what was noted for all of them.
    Agents,
}

/// Whether a message is only there to be displayed: a tool's collections and components. No model
/// is shown them, so they are no part of the orchestrator's view.
pub fn is_display(role: Role, content: &[ContentBlock]) -> bool {
    let displayed = |block: &ContentBlock| match block {
        ContentBlock::Component { .. } | ContentBlock::Data { .. } => true,
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => false,
    };
    role == Role::Tool && !content.is_empty() && content.iter().all(displayed)
}

/// How often a status was emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCount {
    /// Which status.
    pub event_id: String,
    /// How often in all.
    pub total: u64,
    /// How often on each day on which it was, oldest first: `2026-01-31`, UTC.
    pub days: Vec<(String, u64)>,
}

/// What one tenant's calls of one model came to on one day. It outlives their sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageDay {
    /// The day their ends fell on, UTC.
    pub day: Day,
    /// Whose calls.
    pub tenant: TenantId,
    /// Which model.
    pub model: String,
    /// How many ended.
    pub calls: u64,
    /// How many of those failed.
    pub failed: u64,
    /// What those that completed came to.
    pub usage: Usage,
}

/// A durable log of events by session, with rows beside it.
pub trait Store: Send + Sync + 'static {
    /// Writes a batch in one transaction. Durable on return.
    fn append(&self, batch: &[Append]) -> Result<(), AppendError>;

    /// Removes a session with all its rows in one transaction; its id is never given again.
    fn delete(&self, session: SessionId) -> Result<(), AppendError>;

    /// Removes events older than `before` from at most `sessions_max` sessions, never from one
    /// with a turn that has not ended, and moves their low-water marks. Gives back which.
    fn trim(
        &self,
        before: Timestamp,
        sessions_max: usize,
    ) -> Result<Vec<(SessionId, Seq)>, AppendError>;

    /// Says that the process ends in order.
    fn close(&self);

    /// Where a session's log stands; none if there is no such session.
    fn tail(&self, session: SessionId) -> Result<Option<Tail>, ReadError>;

    /// The hash at `seq`, which is at or above the low-water mark.
    fn hash_at(&self, session: SessionId, seq: Seq) -> Result<[u8; 32], ReadError>;

    /// Events with `after < seq <= upto`, oldest first, at most `limit`; hashes checked.
    fn events(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError>;

    /// How many events with `after < seq <= upto` pass the filter.
    fn count(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        filter: &Filter,
    ) -> Result<u64, ReadError>;

    /// A session.
    fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError>;

    /// An owner's sessions, newest first, older than `before`; workers are not among them.
    fn sessions(
        &self,
        owner: &Owner,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError>;

    /// The workers of a session, newest first, older than `before`.
    fn workers(
        &self,
        parent: SessionId,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError>;

    /// A question whether a tool may act, and whose it is.
    fn approval(&self, id: ApprovalId) -> Result<Option<(Owner, ApprovalRow)>, ReadError>;

    /// The questions of a turn, in the order they were asked.
    fn approvals(&self, turn: TurnId) -> Result<Vec<ApprovalRow>, ReadError>;

    /// The questions of a session that have no answer, in the order they were asked.
    fn open_approvals(&self, session: SessionId) -> Result<Vec<ApprovalRow>, ReadError>;

    /// The turn that goes on with a paused one, if there is one yet.
    fn leg(&self, paused: TurnId) -> Result<Option<TurnRow>, ReadError>;

    /// A turn and whose it is.
    fn turn(&self, id: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError>;

    /// A session's turns, newest first, older than `before`.
    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<TurnRow>, ReadError>;

    /// Turns that have started and not ended; those that wait are not among them.
    fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError>;

    /// A session's turns that wait, the next first.
    fn queued(&self, session: SessionId) -> Result<Vec<QueuedRow>, ReadError>;

    /// The sessions with turns that wait.
    fn queues(&self) -> Result<Vec<SessionId>, ReadError>;

    /// What a key stands for.
    fn key(&self, scope: &KeyScope) -> Result<Option<KeyRow>, ReadError>;

    /// Removes keys older than `before`, at most `max`. Gives back how many.
    fn forget_keys(&self, before: Timestamp, max: usize) -> Result<usize, AppendError>;

    /// Messages that were whole at `upto`, older than `before`, the newest `limit`, oldest first.
    fn messages(
        &self,
        session: SessionId,
        view: View<'_>,
        upto: Position,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<StoredMessage>, ReadError>;

    /// Messages that became whole in (`after`, `upto`], oldest first.
    fn messages_since(
        &self,
        session: SessionId,
        view: View<'_>,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError>;

    /// One message of a session that is whole and that clients are shown.
    fn message(
        &self,
        session: SessionId,
        id: MessageId,
    ) -> Result<Option<StoredMessage>, ReadError>;

    /// How many messages were whole at `upto`.
    fn message_count(
        &self,
        session: SessionId,
        view: View<'_>,
        upto: Position,
    ) -> Result<u64, ReadError>;

    /// Messages that streamed and have something in (`after`, `upto`].
    fn streamed(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError>;

    /// The checkpoints of the message that a turn had in flight, in order.
    fn parts(&self, turn: TurnId) -> Result<Vec<MessagePart>, ReadError>;

    /// How often each status was emitted, in all and on each day from that of `since` on, by id.
    fn status_counts(&self, since: Timestamp) -> Result<Vec<StatusCount>, ReadError>;

    /// A session's tool calls, newest first, older than `before`.
    fn tool_calls(
        &self,
        session: SessionId,
        before: Option<ToolUseId>,
        limit: usize,
    ) -> Result<Vec<ToolCallRow>, ReadError>;

    /// A session's model calls, newest first, older than `before`.
    fn llm_calls(
        &self,
        session: SessionId,
        before: Option<CallId>,
        limit: usize,
    ) -> Result<Vec<LlmCallRow>, ReadError>;

    /// What model calls came to from the first of the days to the last, by day, tenant and model:
    /// of one tenant, or of all; at most `limit` rows, the oldest.
    fn usage(
        &self,
        tenant: Option<TenantId>,
        days: (Day, Day),
        limit: usize,
    ) -> Result<Vec<UsageDay>, ReadError>;

    /// A turn's tool calls, in the order they were asked for.
    fn turn_tool_calls(&self, turn: TurnId) -> Result<Vec<ToolCallRow>, ReadError>;
}
