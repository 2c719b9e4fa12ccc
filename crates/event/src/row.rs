//! Records beside the log: the row changes that commit with an event.
//!
//! The sequencer stamps a change that depends on its position or time: the change carries the
//! position and time of the event that it commits with.

mod approval;
mod audit;
mod call;

use serde_json::Value;

use crate::actor::Actor;
use crate::body::approval::{ApprovalRequested, ApprovalResolved};
use crate::body::llm::CallStarted;
use crate::clock::Timestamp;
use crate::code::{OnDisconnect, ToolState, ToolType, TurnKind, TurnState};
use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::id::{CallId, EpisodeId, MessageId, Owner, SessionId, ToolUseId, TurnId, UpstreamId};
use crate::json_object::JsonObject;
use crate::kind::EventType;
use crate::message::{Message, MessageStatus, ProviderState, Role};
use crate::position::Position;
use crate::trace::TraceContext;

pub use approval::ApprovalRow;
pub use audit::{AuditEntry, AuditId, AuditRow, JobRow, Requester};
pub use call::{LlmCallRow, ModelCallEnd};

/// A session as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub id: SessionId,
    pub owner: Owner,
    /// The session that started this one, for a worker.
    pub parent: Option<SessionId>,
    /// The agent that answers; `None` for the pack's orchestrator.
    pub agent: Option<String>,
    /// The working folder, if the client set one.
    pub workspace_path: Option<String>,
    /// Free-form data from the client that created the session.
    pub metadata: JsonObject,
    pub episode_id: EpisodeId,
    /// The model that the last turn was routed to.
    pub active_model: String,
    /// The version of the routing policy that applies.
    pub routing_policy_version: String,
    /// The cost of all turns so far.
    pub cost_usd: f64,
    /// The number of turns that were started.
    pub turn_count: u64,
    pub created_at: Timestamp,
    /// The time of the last event.
    pub updated_at: Timestamp,
}

/// A turn as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    pub id: TurnId,
    pub session_id: SessionId,
    pub kind: TurnKind,
    pub state: TurnState,
    pub on_disconnect: OnDisconnect,
    /// The time a disconnected client has to come back before a cancel.
    pub disconnect_grace_ms: u64,
    pub trace: Option<TraceContext>,
    /// The version of the chat wire bound at submit; `None` for turns stored before versions existed.
    pub wire_version: Option<String>,
    /// The version of the agent's definition, bound at the start; empty for a queued turn.
    pub agent_definition: String,
    /// The paused turn that this one continues.
    pub resumes: Option<TurnId>,
    /// The id that the upstream of a relayed turn gave to its response.
    pub response_id: Option<UpstreamId>,
    /// The position of its start; for a queued turn, the position after the tail at its acceptance.
    pub started: Position,
    /// The time of its start; for a queued turn, of its acceptance.
    pub started_at: Timestamp,
    /// The position of its terminal.
    pub ended: Option<Position>,
    pub ended_at: Option<Timestamp>,
    /// The type and payload of its terminal.
    pub terminal: Option<(EventType, Value)>,
}

/// A message as stored: the message, its positions, and the cuts of its deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    pub message: Message,
    /// The id that the upstream of a relayed turn gave to its response.
    pub response_id: Option<UpstreamId>,
    /// The position of its start.
    pub started: Position,
    /// The position and time of its end; `None` while it streams.
    pub completed: Option<(Position, Timestamp)>,
    /// The encoded cuts ([`crate::fold::cut`]); empty for messages that did not stream.
    pub cuts: Vec<u8>,
    /// The raw text of streamed tool inputs, by block.
    pub inputs: Vec<(u32, String)>,
}

/// A checkpoint of a [`MessageFold`](crate::fold::MessageFold): the additions since the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePart {
    pub message_id: MessageId,
    pub turn_id: TurnId,
    pub model: String,
    /// The position of its start.
    pub started: Position,
    pub started_at: Timestamp,
    /// The number of the checkpoint, from 0.
    pub index: u32,
    /// The additions by block, as JSON ([`crate::fold::checkpoint`]).
    pub blocks: String,
    /// The added cuts, encoded.
    pub cuts: Vec<u8>,
}

/// A message that commits with an event and did not stream; see [`RowChange::MessagePut`].
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    pub id: MessageId,
    pub role: Role,
    pub content: Vec<ContentBlock>,
    /// Free-form data that clients or the server attach.
    pub metadata: JsonObject,
    /// Who sees the message.
    pub scope: MessageScope,
    /// Provider state to send back with the message.
    pub provider_state: ProviderState,
}

impl NewMessage {
    /// A message that everybody sees, without metadata and provider state.
    pub fn new(id: MessageId, role: Role, content: Vec<ContentBlock>) -> Self {
        Self {
            id,
            role,
            content,
            metadata: JsonObject::default(),
            scope: MessageScope::Shared,
            provider_state: ProviderState::default(),
        }
    }

    /// The [`Message`] as it is stored for `turn_id`.
    pub fn into_message(
        self,
        session_id: SessionId,
        turn_id: TurnId,
        created_at: Timestamp,
    ) -> Message {
        Message {
            id: self.id,
            session_id,
            turn_id,
            role: self.role,
            status: MessageStatus::Complete,
            content: self.content,
            model: None,
            omitted_bytes: None,
            stop_reason: None,
            usage: None,
            created_at,
            metadata: self.metadata,
            provider_state: self.provider_state,
        }
    }
}

/// Who sees a message (D-46, R-31).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageScope {
    /// Clients, and the orchestrator in later turns.
    #[default]
    Shared,
    /// The orchestrator in later turns.
    Private,
    /// This sub-agent in later turns.
    Agent(String),
    /// Every sub-agent in later turns.
    Agents,
}

/// A message that streamed and has ended; see [`RowChange::MessageFinished`].
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedMessage {
    pub id: MessageId,
    pub status: MessageStatus,
    pub stop_reason: StopReason,
    pub model: String,
    pub content: Vec<ContentBlock>,
    pub usage: TokenUsage,
    /// The position of its start.
    pub started: Position,
    pub started_at: Timestamp,
    /// The encoded cuts of its deltas.
    pub cuts: Vec<u8>,
    /// The raw text of tool inputs by block.
    pub inputs: Vec<(u32, String)>,
    /// Provider state to send back with the message.
    pub provider_state: ProviderState,
}

/// A tool call as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallRow {
    pub tool_use_id: ToolUseId,
    pub turn_id: TurnId,
    pub tool_name: String,
    pub tool_type: ToolType,
    pub status: ToolState,
    /// The time at which the tool started to run.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// A queued turn as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRow {
    pub turn_id: TurnId,
    /// The place in the queue; the lowest is next.
    pub place: i64,
    /// The complete input of the turn as JSON; the log does not parse it.
    pub input: String,
}

/// The scope of an idempotency key: the same key in another scope is another [`KeyRow`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyScope {
    pub owner: Owner,
    pub route: String,
    /// The session; `None` if the submit creates it.
    pub session: Option<SessionId>,
    /// The key as the client sent it.
    pub key: String,
}

/// A used idempotency key and its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The turn that the first submit created.
    pub turn_id: TurnId,
    /// SHA-256 of the body of the first submit.
    pub body_sha256: [u8; 32],
    pub created_at: Timestamp,
}

/// The settings that a turn keeps from its submit on.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnSettings {
    pub turn_id: TurnId,
    pub kind: TurnKind,
    pub on_disconnect: OnDisconnect,
    /// The time a disconnected client has to come back before a cancel.
    pub disconnect_grace_ms: u64,
    pub trace: Option<TraceContext>,
    /// The version of the chat wire bound at submit.
    pub wire_version: Option<String>,
}

/// One change to the records of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// A session was created.
    SessionPut(Box<SessionRow>),
    TurnStarted {
        settings: TurnSettings,
        /// The version of the agent's definition.
        agent_definition: String,
        /// The paused turn that this one continues.
        resumes: Option<TurnId>,
    },
    /// A turn was queued. The change commits without an event: `turn.started` is written later.
    TurnQueued {
        settings: TurnSettings,
        /// The place in the queue; the lowest is next.
        place: i64,
        /// The complete input of the turn as JSON.
        input: String,
    },
    /// A submit with an idempotency key was accepted.
    KeyPut {
        scope: Box<KeyScope>,
        /// The turn that the submit created.
        turn_id: TurnId,
        /// SHA-256 of the submit's body.
        body_sha256: [u8; 32],
    },
    /// Something was done that is kept in the audit. A [`AuditAction::JobFired`] makes its job known.
    ///
    /// [`AuditAction::JobFired`]: crate::code::AuditAction::JobFired
    AuditAdded(Box<AuditEntry>),
    /// A cancel of a turn was accepted.
    TurnCancelling(TurnId),
    TurnEnded {
        turn_id: TurnId,
        terminal: EventType,
        /// The payload of the terminal, as JSON.
        payload: String,
    },
    /// The session's model changed, and its routing policy if one decided, unless a newer one was loaded
    /// after the turn started.
    Routed {
        /// The turn that was routed.
        turn_id: TurnId,
        model: String,
        /// `None` for a turn that an agent elsewhere answers.
        policy_version: Option<String>,
        /// The id that the upstream of a relayed turn gave to its response.
        response_id: Option<UpstreamId>,
    },
    /// The routing policy was replaced by the version given.
    PolicyReloaded(String),
    /// A model call started.
    CallStarted {
        turn_id: TurnId,
        /// The agent that calls.
        actor: Actor,
        call: CallStarted,
    },
    /// A model call ended. It counts once, for its tenant, on the day of its event.
    CallEnded {
        call_id: CallId,
        end: ModelCallEnd,
        /// The provider's id of the answer.
        provider_response_id: Option<String>,
    },
    /// Adds to the cost of the session, in US dollars.
    CostAdd(f64),
    /// Stores a message that did not stream.
    MessagePut(TurnId, NewMessage),
    /// Stores a checkpoint of a streaming message.
    MessagePart(MessagePart),
    /// Stores a message that streamed and has ended.
    MessageFinished(TurnId, Box<FinishedMessage>),
    /// Counts a status id on the day of its event (S1-073).
    StatusCounted(String),
    /// An approval was requested.
    ApprovalPut(TurnId, ApprovalRequested),
    /// An approval request was decided. A rejected tool call becomes cancelled.
    ApprovalResolved(ApprovalResolved),
    /// A tool call was requested or changed its state.
    ToolCall {
        tool_use_id: ToolUseId,
        turn_id: TurnId,
        tool_name: String,
        tool_type: ToolType,
        status: ToolState,
    },
}

/// A [`RowChange`] with the position and time of the event that it commits with.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedChange {
    pub at: Position,
    pub time: Timestamp,
    pub change: RowChange,
}
