//! `turn.*`: a turn starts, may be asked to stop, and ends exactly once.

use serde::{Deserialize, Serialize};

use crate::body::approval::Answer;
use crate::code::{
    CancelCode, ErrorCode, Origin, Phase, Reason, ReceiptKind, StopOutcome, TurnKind, TurnStatus,
};
use crate::content::{ContentBlock, Usage};
use crate::id::{EpisodeId, MessageId, TurnId};

/// The versions of everything a turn was bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Versions {
    /// Of the agent's definition.
    pub agent_definition: String,
    /// Of the status registry.
    pub registry: String,
    /// Of the prompt.
    pub prompt: String,
    /// Of the cohort.
    pub cohort: String,
}

/// A turn was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// The message that holds the input.
    pub user_message_id: MessageId,
    /// What the person said.
    pub input: Vec<ContentBlock>,
    /// What the turn is for.
    pub kind: TurnKind,
    /// Who or what began it, where it was not a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What kind of message it is for, where a message service began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dm_type: Option<String>,
    /// The paused turn that this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<TurnId>,
    /// What the person said to its questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The episode it belongs to.
    pub episode_id: EpisodeId,
    /// The language the person wants.
    pub locale: String,
    /// The version of the chat wire bound at submit; absent where no such wire is bound.
    pub wire_version: Option<String>,
    /// How many older messages the model will not be shown.
    pub history_omitted: u64,
    /// What the turn is bound to.
    pub versions: Versions,
}

/// What failed, in codes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnError {
    /// The code.
    pub code: ErrorCode,
    /// The sub-agent at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent_id: Option<String>,
    /// The enricher at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enricher_id: Option<String>,
    /// The enricher's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What failed of several, each with the shape of its own code (S1-092).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TurnError>,
}

impl TurnError {
    /// A sub-agent failed (axis 1).
    pub fn sub_agent(id: impl Into<String>) -> Self {
        Self {
            sub_agent_id: Some(id.into()),
            ..ErrorCode::SubAgentFailed.into()
        }
    }

    /// An enricher failed (axis 2).
    pub fn envelope(enricher_id: impl Into<String>, reason: Reason) -> Self {
        Self {
            enricher_id: Some(enricher_id.into()),
            reason: Some(reason),
            ..ErrorCode::CcsEnvelopeError.into()
        }
    }

    /// Some of several failed (axis 3).
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

/// A message that was cut, and how many bytes of text are kept of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Partial {
    /// The message; none if the turn had none open.
    pub message_id: Option<MessageId>,
    /// Bytes of text and reasoning kept.
    pub bytes: u64,
}

/// A turn ended, not by a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completed {
    /// How.
    pub status: TurnStatus,
    /// What all its model calls cost together.
    pub usage: Usage,
    /// What failed.
    pub error: Option<TurnError>,
    /// Why, where the status alone does not say (`server_restart`, `server_shutdown`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message that was cut, if one was.
    pub partial: Option<Partial>,
}

/// Someone asked a turn to stop. Its position is the cancel's: nothing starts after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelRequested {
    /// Who: `user`, or `system` for a timeout or a shutdown.
    pub by: String,
    /// What they said.
    pub reason: String,
}

/// One line of the receipt: what ran when the cancel came, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiptLine {
    /// What it is.
    pub kind: ReceiptKind,
    /// Which one.
    pub id: String,
    /// What became of it.
    pub outcome: StopOutcome,
    /// How long after the request, in milliseconds.
    pub ms: u64,
}

/// A turn ended by a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// What was said with the cancel.
    pub reason: String,
    /// The cancel in one word.
    pub code: CancelCode,
    /// What the turn was doing.
    pub phase: Phase,
    /// The message that was cut.
    pub partial: Partial,
    /// What ran, and what became of it.
    pub receipt: Vec<ReceiptLine>,
}
