//! The [records](crate::records) over SQLite: each part of the contract, on the pool of readers.

use turnwire_event::row::{
    ApprovalRow, KeyRow, KeyScope, LlmCallRow, MessagePart, QueuedRow, SessionRow, StoredMessage,
    ToolCallRow, TurnRow,
};
use turnwire_event::{
    ApprovalId, CallId, MessageId, Owner, Position, SessionId, TenantId, Timestamp, ToolUseId,
    TurnId, UtcDay,
};

use crate::error::{AppendError, ReadError};
use crate::records::{
    ApprovalRecords, CallRecords, DailyUsage, MessageRecords, MessageView, SessionRecords,
    StatusCount, TurnRecords,
};
use crate::sqlite::SqliteStore;
use crate::sqlite::table::{
    approval, key, llm_call, message, queue, session, status, tool_call, turn,
};

impl SessionRecords for SqliteStore {
    fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        self.readers.with(|c| session::session(c, id))
    }

    fn sessions(
        &self,
        owner: &Owner,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        self.readers
            .with(|c| session::sessions(c, owner, before, limit))
    }

    fn workers(
        &self,
        parent: SessionId,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        self.readers
            .with(|c| session::workers(c, parent, before, limit))
    }
}

impl TurnRecords for SqliteStore {
    fn turn(&self, id: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError> {
        self.readers.with(|c| turn::turn(c, id))
    }

    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<TurnRow>, ReadError> {
        self.readers
            .with(|c| turn::turns(c, session, before, limit))
    }

    fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError> {
        self.readers.with(turn::open_turns)
    }

    fn resuming_turn(&self, paused: TurnId) -> Result<Option<TurnRow>, ReadError> {
        self.readers.with(|c| turn::resuming_turn(c, paused))
    }

    fn queued_turns(&self, session: SessionId) -> Result<Vec<QueuedRow>, ReadError> {
        self.readers.with(|c| queue::queued_turns(c, session))
    }

    fn queued_sessions(&self) -> Result<Vec<SessionId>, ReadError> {
        self.readers.with(queue::queued_sessions)
    }

    fn idempotency_key(&self, scope: &KeyScope) -> Result<Option<KeyRow>, ReadError> {
        self.readers.with(|c| key::key(c, scope))
    }

    fn expire_keys(&self, before: Timestamp, max: usize) -> Result<usize, AppendError> {
        self.write_half.lock().expire_keys(before, max)
    }
}

impl ApprovalRecords for SqliteStore {
    fn approval(&self, id: ApprovalId) -> Result<Option<(Owner, ApprovalRow)>, ReadError> {
        self.readers.with(|c| approval::approval(c, id))
    }

    fn turn_approvals(&self, turn: TurnId) -> Result<Vec<ApprovalRow>, ReadError> {
        self.readers.with(|c| approval::turn_approvals(c, turn))
    }

    fn open_approvals(&self, session: SessionId) -> Result<Vec<ApprovalRow>, ReadError> {
        self.readers.with(|c| approval::open_approvals(c, session))
    }
}

impl MessageRecords for SqliteStore {
    fn messages(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        upto: Position,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.readers
            .with(|c| message::messages(c, session, view, upto, before, limit))
    }

    fn messages_since(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.readers
            .with(|c| message::messages_since(c, session, view, after, upto))
    }

    fn message(
        &self,
        session: SessionId,
        id: MessageId,
    ) -> Result<Option<StoredMessage>, ReadError> {
        self.readers.with(|c| message::message(c, session, id))
    }

    fn message_count(
        &self,
        session: SessionId,
        view: MessageView<'_>,
        upto: Position,
    ) -> Result<u64, ReadError> {
        self.readers
            .with(|c| message::message_count(c, session, view, upto))
    }

    fn streamed_messages(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.readers
            .with(|c| message::streamed_messages(c, session, after, upto))
    }

    fn message_checkpoints(&self, turn: TurnId) -> Result<Vec<MessagePart>, ReadError> {
        self.readers.with(|c| message::message_checkpoints(c, turn))
    }
}

impl CallRecords for SqliteStore {
    fn tool_calls(
        &self,
        session: SessionId,
        before: Option<ToolUseId>,
        limit: usize,
    ) -> Result<Vec<ToolCallRow>, ReadError> {
        self.readers
            .with(|c| tool_call::tool_calls(c, session, before, limit))
    }

    fn turn_tool_calls(&self, turn: TurnId) -> Result<Vec<ToolCallRow>, ReadError> {
        self.readers.with(|c| tool_call::turn_tool_calls(c, turn))
    }

    fn llm_calls(
        &self,
        session: SessionId,
        before: Option<CallId>,
        limit: usize,
    ) -> Result<Vec<LlmCallRow>, ReadError> {
        self.readers
            .with(|c| llm_call::llm_calls(c, session, before, limit))
    }

    fn daily_usage(
        &self,
        tenant: Option<TenantId>,
        days: (UtcDay, UtcDay),
        limit: usize,
    ) -> Result<Vec<DailyUsage>, ReadError> {
        self.readers
            .with(|c| llm_call::daily_usage(c, tenant, days, limit))
    }

    fn status_counts(&self, since: Timestamp) -> Result<Vec<StatusCount>, ReadError> {
        self.readers.with(|c| status::counts(c, since))
    }
}
