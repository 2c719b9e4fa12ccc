//! `turn.*`: a turn starts, may be cancelled, and ends exactly once.

use serde::{Deserialize, Serialize};

use crate::body::approval::ResolvedApproval;
use crate::code::{
    CancelCode, ErrorCode, Origin, Phase, Reason, ReceiptKind, StopOutcome, TurnKind, TurnStatus,
};
use crate::content::{ContentBlock, TokenUsage};
use crate::id::{EpisodeId, MessageId, TurnId};

/// The versions of everything that a turn was bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Versions"))]
pub struct BoundVersions {
    pub agent_definition: String,
    pub registry: String,
    pub prompt: String,
    pub cohort: String,
}

/// A turn started to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Started"))]
pub struct TurnStarted {
    /// The user message with the input.
    pub user_message_id: MessageId,
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
    pub episode_id: EpisodeId,
    pub locale: String,
    /// The version of the chat wire bound at submit; `None` for a turn without a chat stream.
    pub wire_version: Option<String>,
    /// The number of older messages that exceed the history budget of the model.
    pub history_omitted: u64,
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
#[cfg_attr(feature = "schema", schemars(rename = "Partial"))]
pub struct PartialMessage {
    /// The message; `None` if no message was streaming.
    pub message_id: Option<MessageId>,
    /// Bytes of text and reasoning that are stored.
    pub bytes: u64,
}

/// A turn ended without a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Completed"))]
pub struct TurnCompleted {
    pub status: TurnStatus,
    /// The sum over all model calls of the turn.
    pub usage: TokenUsage,
    /// The failure, for a failed or degraded turn.
    pub error: Option<TurnError>,
    /// The cause where the status alone is ambiguous (`server_restart`, `server_shutdown`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message that was cut off, if any.
    pub partial: Option<PartialMessage>,
}

/// A cancel was accepted. Nothing of the turn starts after the position of this event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelRequested {
    /// The requester: `user`, or `system` for a timeout or a shutdown.
    pub by: String,
    pub reason: String,
}

/// One line of the receipt: work that was running when the cancel arrived, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiptLine {
    pub kind: ReceiptKind,
    /// The id of the call, tool use, sub-agent, worker session or process.
    pub id: String,
    pub outcome: StopOutcome,
    /// Milliseconds from the cancel request to the end of the work.
    pub ms: u64,
}

/// A turn ended because of a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Cancelled"))]
pub struct TurnCancelled {
    /// The requester's reason for the cancel.
    pub reason: String,
    /// The class of the cancel.
    pub code: CancelCode,
    /// The work of the turn when the cancel arrived.
    pub phase: Phase,
    /// The message that was cut off.
    pub partial: PartialMessage,
    /// The work that was running, with its outcomes.
    pub receipt: Vec<ReceiptLine>,
}
