//! `llm.*`: a model call starts and ends exactly once.

use serde::{Deserialize, Serialize};

use crate::code::{CallPurpose, LlmErrorClass};
use crate::content::{StopReason, TokenUsage};
use crate::id::{CallId, MessageId};

/// A model is about to be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallStarted {
    pub call_id: CallId,
    pub model: String,
    pub purpose: CallPurpose,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// True for the turn's first call; set by the session's emitter.
    #[serde(default)]
    pub first: bool,
}

/// A model call succeeded. `content_sha256` covers the message row of the same commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallCompleted {
    pub call_id: CallId,
    /// The message that the call produced.
    pub message_id: MessageId,
    /// SHA-256 of the message's content as stored, lower-case hex.
    pub content_sha256: String,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    pub usage: TokenUsage,
}

/// A model call failed or was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallFailed {
    pub call_id: CallId,
    /// The message that the call had started, if any.
    pub message_id: Option<MessageId>,
    /// SHA-256 of the stored part of that message, lower-case hex.
    pub content_sha256: Option<String>,
    pub error_class: LlmErrorClass,
}
