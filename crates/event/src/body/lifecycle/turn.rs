//! `turn.*`: a turn starts, may be cancelled, and ends exactly once.

use serde::{Deserialize, Serialize};

use crate::body::approval::{ApprovalRequested, ResolvedApproval};
use crate::code::{
    CancelCode, ErrorCode, Origin, Phase, Reason, ReceiptKind, StopOutcome, TurnKind, TurnStatus,
};
use crate::content::{ContentBlock, TokenUsage};
use crate::id::{EpisodeId, MessageId, TurnId};
use crate::position::Position;

/// The versions of everything that a turn was bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundVersions {
    /// The pack's name and version and a digest of its definitions: `<name>@<version>+<digest>`.
    pub agent_definition: String,
    /// The digest of the registry of statuses.
    pub registry: String,
    /// The digest of the prompts.
    pub prompt: String,
    /// The digest of the agents, the registry and the flags that are active for the principal.
    pub cohort: String,
}

/// A turn started to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStarted {
    /// The user message with the input.
    pub user_message_id: MessageId,
    /// The content of the user message.
    pub input: Vec<ContentBlock>,
    pub kind: TurnKind,
    /// The scheduler or service that started the turn, where it was not a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The kind of message, where a message service started the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dm_type: Option<String>,
    /// The paused turn that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<TurnId>,
    /// The decisions on the approval requests of the paused turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<ResolvedApproval>,
    /// The episode of the session, the same in all of its turns.
    pub episode_id: EpisodeId,
    /// The language of statuses and templates, as a language tag.
    pub locale: String,
    /// The version of the chat wire bound at submit; `None` for a turn without a chat stream.
    pub wire_version: Option<String>,
    /// The number of older messages that exceed the history budget of the model.
    pub history_omitted: u64,
    /// The agent elsewhere that answers, as `relay:<agent>`. Its `route.decided` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relayed_to: Option<String>,
    /// What the turn is bound to until its end, whatever is reloaded meanwhile.
    pub versions: BoundVersions,
}

/// A failure as codes and ids, without any free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnError {
    pub code: ErrorCode,
    /// The sub-agent that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent_id: Option<String>,
    /// The enricher that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enricher_id: Option<String>,
    /// The reason that the enricher's envelope gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The individual failures of a fan-out (S1-092).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TurnError>,
}

impl TurnError {
    /// The failure of the sub-agent `id` (axis 1).
    pub fn sub_agent(id: impl Into<String>) -> Self {
        Self {
            sub_agent_id: Some(id.into()),
            ..ErrorCode::SubAgentFailed.into()
        }
    }

    /// The failure of an enricher (axis 2).
    pub fn envelope(enricher_id: impl Into<String>, reason: Reason) -> Self {
        Self {
            enricher_id: Some(enricher_id.into()),
            reason: Some(reason),
            ..ErrorCode::CcsEnvelopeError.into()
        }
    }

    /// The failure of some of several sub-agents (axis 3).
    pub fn fan_out(failed: Vec<Self>) -> Self {
        Self {
            failed,
            ..ErrorCode::PartialFanOut.into()
        }
    }
}

impl From<ErrorCode> for TurnError {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            sub_agent_id: None,
            enricher_id: None,
            reason: None,
            failed: Vec::new(),
        }
    }
}

/// A message that was cut off, and the size of its stored part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartialMessage {
    /// The message; `None` if no message was streaming.
    pub message_id: Option<MessageId>,
    /// Bytes of text and reasoning that are stored.
    pub bytes: u64,
    /// After a crash of the server: the last event whose text is stored. Clients may have seen text
    /// of later events, which is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Position>,
}

/// What a paused turn waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PauseDetail {
    /// The approvals that the turn has requested, all without a decision.
    pub approvals: Vec<ApprovalRequested>,
    /// The turn that will continue this one, once every approval has a decision.
    pub next_turn_id: TurnId,
}

/// A turn ended without a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnCompleted {
    pub status: TurnStatus,
    /// The sum over all model calls of the turn.
    pub usage: TokenUsage,
    /// The failure, for a failed or degraded turn.
    pub error: Option<TurnError>,
    /// The cause where the status alone is ambiguous: `limit_calls`, `limit_tokens` or `limit_cost` if
    /// the turn exceeded a budget, `server_restart` or `server_shutdown` if the server ended during the
    /// turn, `unknown_agent` if the pack no longer has the agent of a worker, `upstream_unavailable`,
    /// `upstream_incomplete` or `upstream_malformed` if the agent runs elsewhere and did not answer as
    /// it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message that was cut off, if any.
    pub partial: Option<PartialMessage>,
    /// What a paused turn waits for; absent from turns of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseDetail>,
}

impl TurnCompleted {
    server_texts! {
        /// Every [`reason`](Self::reason) that the server gives.
        REASONS {
            /// The turn exceeded its number of model calls.
            LIMIT_CALLS = "limit_calls",
            /// The turn exceeded its number of tokens.
            LIMIT_TOKENS = "limit_tokens",
            /// The turn exceeded its cost.
            LIMIT_COST = "limit_cost",
            /// The server crashed or was killed during the turn.
            SERVER_RESTART = "server_restart",
            /// The server was stopped during the turn.
            SERVER_SHUTDOWN = "server_shutdown",
            /// The pack no longer has the agent of a worker.
            UNKNOWN_AGENT = "unknown_agent",
            /// The agent runs elsewhere, and could not be reached or refused the request.
            UPSTREAM_UNAVAILABLE = "upstream_unavailable",
            /// The agent runs elsewhere, and its answer broke off.
            UPSTREAM_INCOMPLETE = "upstream_incomplete",
            /// The agent runs elsewhere, and sent what is not an answer.
            UPSTREAM_MALFORMED = "upstream_malformed",
        }
    }
}

/// A cancel was accepted. Nothing of the turn starts after the position of this event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelRequested {
    /// The requester: `user`, or `system` for the server itself.
    pub by: String,
    /// The same as in the `turn.cancelled` that follows.
    pub reason: String,
    /// The same as in the `turn.cancelled` that follows, also if the server crashes in between.
    /// Absent in requests of older versions.
    #[serde(default)]
    pub code: CancelCode,
}

impl CancelRequested {
    /// The requester of every cancel that no person and no client asked for.
    pub const SYSTEM: &'static str = "system";

    /// A request with the code of its trigger: time that ran out is the server's own decision.
    pub fn new(by: &str, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let is_timeout = by == Self::SYSTEM && TurnCancelled::TIMEOUTS.contains(&&*reason);
        Self {
            by: by.to_owned(),
            reason,
            code: match is_timeout {
                true => CancelCode::IdleTimeout,
                false => CancelCode::RequestCancelled,
            },
        }
    }
}

/// One line of the receipt: work that was running when the cancel arrived, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiptLine {
    pub kind: ReceiptKind,
    /// The id of the call, the tool use, the invocation of a sub-agent, the worker session or the
    /// process.
    pub id: String,
    /// The model of a call, the name of a tool or a sub-agent; of a worker or a process the name of
    /// the tool that started it. Empty in receipts of older servers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub outcome: StopOutcome,
    /// Milliseconds from the cancel request to the end of the work.
    pub ms: u64,
}

/// A turn ended because of a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnCancelled {
    /// The requester's reason for the cancel, at most its first 200 characters, or `user_cancel`
    /// without one. The server's own are `interrupted` (by another turn), `client_disconnected`,
    /// `turn_timeout`, `idle_timeout`, `upstream_cancelled`, `parent_cancelled` and
    /// `delegate_timeout`.
    pub reason: String,
    pub code: CancelCode,
    /// The work of the turn when the cancel arrived.
    pub phase: Phase,
    /// The message that was cut off.
    pub partial: PartialMessage,
    /// The work that was running, with its outcomes.
    pub receipt: Vec<ReceiptLine>,
}

/// Characters of a requester's reason for a cancel that are stored; the rest is cut.
pub const CANCEL_REASON_CHARS_MAX: usize = 200;

impl TurnCancelled {
    /// The reasons of cancels for which the server decided because of the time (D-44).
    const TIMEOUTS: &'static [&'static str] = &[
        Self::TURN_TIMEOUT,
        Self::IDLE_TIMEOUT,
        Self::DELEGATE_TIMEOUT,
    ];

    server_texts! {
        /// Every [`reason`](Self::reason) that is not a requester's.
        REASONS {
            /// The requester gave no reason.
            USER_CANCEL = "user_cancel",
            /// A turn with `on_busy: interrupt` was submitted.
            INTERRUPTED = "interrupted",
            /// The last client of a turn with `on_disconnect: cancel` is gone.
            CLIENT_DISCONNECTED = "client_disconnected",
            /// The turn took too long.
            TURN_TIMEOUT = "turn_timeout",
            /// Nothing happened in the turn for too long.
            IDLE_TIMEOUT = "idle_timeout",
            /// The agent runs elsewhere, and says that it was stopped.
            UPSTREAM_CANCELLED = "upstream_cancelled",
            /// The turn that delegates to the worker stops.
            PARENT_CANCELLED = "parent_cancelled",
            /// The worker took longer than its delegate tool allows.
            DELEGATE_TIMEOUT = "delegate_timeout",
        }
    }
}
