//! Rows beside the log: what `fold` asks a store to change in the commit of an event.
//!
//! A change that must know where or when it happened is stamped by the sequencer: it carries the
//! position and time of the event it rides with.

mod approval;
mod call;

use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::code::{CallPurpose, Decision, OnDisconnect, ToolState, ToolType, TurnKind, TurnState};
use crate::content::{ContentBlock, StopReason, Usage};
use crate::envelope::Trace;
use crate::id::{ApprovalId, CallId, EpisodeId, MessageId, Owner, SessionId, ToolUseId, TurnId};
use crate::kind::EventType;
use crate::message::{Kept, Message, MessageStatus, Role};
use crate::position::Position;

pub use approval::ApprovalRow;
pub use call::{CallEnd, LlmCallRow};

/// A session as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: Owner,
    /// The session that started it, if it is a worker.
    pub parent: Option<SessionId>,
    /// The agent that answers in it, where it is not the pack's orchestrator.
    pub agent: Option<String>,
    /// The folder it works in.
    pub workspace_path: Option<String>,
    /// Whatever its creator put there.
    pub metadata: Map<String, Value>,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// The model that answers.
    pub active_model: String,
    /// The routing policy in force.
    pub routing_policy_version: String,
    /// What it has cost.
    pub cost_usd: f64,
    /// How many turns were started.
    pub turn_count: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
}

/// A turn as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// Its id.
    pub id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// What it is for.
    pub kind: TurnKind,
    /// Where it stands.
    pub state: TurnState,
    /// What happens when watchers leave.
    pub on_disconnect: OnDisconnect,
    /// How long they may be away.
    pub disconnect_grace_ms: u64,
    /// The caller's trace.
    pub trace: Option<Trace>,
    /// The version of the chat wire bound at submit; none for turns older than that.
    pub wire_version: Option<String>,
    /// The version of the agent's definition it was bound to at its start; empty until then.
    pub agent_definition: String,
    /// The paused turn that it goes on with.
    pub resumes: Option<TurnId>,
    /// Where it started; while it waits, the place after the tail at its acceptance.
    pub started: Position,
    /// When it started; while it waits, when it was accepted.
    pub started_at: Timestamp,
    /// Where it ended.
    pub ended: Option<Position>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The terminal's type and payload.
    pub terminal: Option<(EventType, Value)>,
}

/// A message as stored: the message, where it stands in the order, and how it grew.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    /// The message.
    pub message: Message,
    /// Where it began.
    pub started: Position,
    /// Where and when it became what it is; none while it is written.
    pub completed: Option<(Position, Timestamp)>,
    /// How it grew, encoded (`fold::cut`); empty for messages that did not stream.
    pub cuts: Vec<u8>,
    /// The raw text of tool inputs by block, where the model streamed some.
    pub inputs: Vec<(u32, String)>,
}

/// What grew in a message since the last checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePart {
    /// Which message.
    pub message_id: MessageId,
    /// In which turn.
    pub turn_id: TurnId,
    /// By which model.
    pub model: String,
    /// Where it began.
    pub started: Position,
    /// When it began.
    pub started_at: Timestamp,
    /// Which part, from 0.
    pub index: u32,
    /// What was added to which block, as JSON (`fold::message`).
    pub blocks: String,
    /// The new cuts, encoded.
    pub cuts: Vec<u8>,
}

/// A message that commits with an event, without having streamed.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// Its id.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<ContentBlock>,
    /// Whatever else is known of it.
    pub metadata: Map<String, Value>,
    /// Who is shown it.
    pub scope: Scope,
    /// What its model's provider wants back with it.
    pub kept: Kept,
}

/// Who is shown a message (D-46, R-31).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
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

/// A message that streamed and is now whole.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedMessage {
    /// Its id.
    pub id: MessageId,
    /// How it ended.
    pub status: MessageStatus,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The model that wrote it.
    pub model: String,
    /// All of it.
    pub content: Vec<ContentBlock>,
    /// What it cost.
    pub usage: Usage,
    /// Where it began.
    pub started: Position,
    /// When it began.
    pub started_at: Timestamp,
    /// How it grew.
    pub cuts: Vec<u8>,
    /// The raw text of tool inputs by block.
    pub inputs: Vec<(u32, String)>,
    /// What its model's provider wants back with it.
    pub kept: Kept,
}

/// A tool call as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallRow {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// In which turn.
    pub turn_id: TurnId,
    /// Which tool.
    pub tool_name: String,
    /// What kind of tool.
    pub tool_type: ToolType,
    /// Where it stands.
    pub status: ToolState,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A turn that waits for the one before, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRow {
    /// Which turn.
    pub turn_id: TurnId,
    /// Where it stands among those that wait: the lowest is next.
    pub place: i64,
    /// Everything that is needed to start it, as JSON; a store does not look inside.
    pub input: String,
}

/// Where a key of a submit is good: the same key elsewhere is another key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyScope {
    /// Whose submit.
    pub owner: Owner,
    /// By which route.
    pub route: String,
    /// Into which session; none for one that the submit itself makes.
    pub session: Option<SessionId>,
    /// The key.
    pub key: String,
}

/// A key that was used: the turn it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The turn that was accepted.
    pub turn_id: TurnId,
    /// SHA-256 of the body it came with.
    pub body_sha256: [u8; 32],
    /// When it was accepted.
    pub created_at: Timestamp,
}

/// One change to the rows of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// A session exists.
    SessionPut(Box<SessionRow>),
    /// A turn started.
    TurnStarted {
        /// Which.
        turn_id: TurnId,
        /// What for.
        kind: TurnKind,
        /// What happens when watchers leave.
        on_disconnect: OnDisconnect,
        /// How long they may be away.
        disconnect_grace_ms: u64,
        /// The caller's trace.
        trace: Option<Trace>,
        /// The version of the chat wire bound at submit.
        wire_version: Option<String>,
        /// The version of the agent's definition.
        agent_definition: String,
        /// The paused turn that it goes on with.
        resumes: Option<TurnId>,
    },
    /// A turn was accepted and waits. It rides with no event: its start is written later.
    TurnQueued {
        /// Which.
        turn_id: TurnId,
        /// What for.
        kind: TurnKind,
        /// What happens when watchers leave.
        on_disconnect: OnDisconnect,
        /// How long they may be away.
        disconnect_grace_ms: u64,
        /// The caller's trace.
        trace: Option<Trace>,
        /// The version of the chat wire bound at submit.
        wire_version: Option<String>,
        /// Where it stands among those that wait.
        place: i64,
        /// Everything that is needed to start it, as JSON.
        input: String,
    },
    /// A submit with a key was accepted.
    KeyPut {
        /// Where the key is good.
        scope: Box<KeyScope>,
        /// The turn it stands for.
        turn_id: TurnId,
        /// SHA-256 of the body.
        body_sha256: [u8; 32],
    },
    /// A turn was asked to stop.
    TurnCancelling(TurnId),
    /// A turn ended.
    TurnEnded {
        /// Which.
        turn_id: TurnId,
        /// By which event.
        terminal: EventType,
        /// The terminal's payload as JSON.
        payload: String,
    },
    /// The session's model changed; its policy too, unless a newer one replaced it after the turn
    /// began.
    Routed {
        /// By which turn.
        turn_id: TurnId,
        /// The model.
        model: String,
        /// The policy.
        policy_version: String,
    },
    /// The policy that chooses the session's models was replaced.
    PolicyReloaded(String),
    /// A model is called.
    CallStarted {
        /// Which call.
        call_id: CallId,
        /// In which turn.
        turn_id: TurnId,
        /// Who asks.
        actor: Actor,
        /// Which model.
        model: String,
        /// What for.
        purpose: CallPurpose,
        /// Which try, from 1.
        attempt: u32,
    },
    /// A model call ended. It counts for its tenant on the day of the event it rides with, once.
    CallEnded {
        /// Which call.
        call_id: CallId,
        /// How.
        end: CallEnd,
        /// What the provider calls its answer.
        provider_response_id: Option<String>,
    },
    /// The session cost more.
    CostAdd(f64),
    /// A message that did not stream.
    MessagePut(TurnId, NewMessage),
    /// A message in flight grew.
    MessagePart(MessagePart),
    /// A message that streamed is whole.
    MessageFinished(TurnId, Box<FinishedMessage>),
    /// A status event was emitted, on the day of the event it rides with (S1-073).
    StatusCounted(String),
    /// A tool waits for a person's word.
    ApprovalPut {
        /// Which question.
        approval_id: ApprovalId,
        /// In which turn.
        turn_id: TurnId,
        /// The tool use that waits.
        tool_use_id: ToolUseId,
        /// Which tool.
        tool_name: String,
        /// The input, shortened.
        input_summary: String,
    },
    /// The person's word. A tool that may not act is cancelled with it.
    ApprovalResolved {
        /// Which question.
        approval_id: ApprovalId,
        /// The answer.
        decision: Decision,
        /// Who gave it.
        by: String,
        /// What they said with it.
        comment: Option<String>,
    },
    /// The model asked for a tool, or it moved on.
    ToolCall {
        /// Which use.
        tool_use_id: ToolUseId,
        /// In which turn.
        turn_id: TurnId,
        /// Which tool.
        tool_name: String,
        /// What kind of tool.
        tool_type: ToolType,
        /// Where it stands now.
        status: ToolState,
    },
}

/// A change with the position and time of the event it rides with.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Where.
    pub at: Position,
    /// When.
    pub time: Timestamp,
    /// What.
    pub change: RowChange,
}
