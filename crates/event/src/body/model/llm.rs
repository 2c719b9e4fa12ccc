//! `llm.*`: a model call starts and ends exactly once.

use serde::{Deserialize, Serialize};

use crate::code::{CallPurpose, LlmErrorClass};
use crate::content::{StopReason, TokenUsage};
use crate::id::{CallId, MessageId};

/// A model is about to be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallStarted {
    /// Names this attempt; its end has the same id.
    pub call_id: CallId,
    /// The model that is called, or `template:<language>` for a sentence of the pack.
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
    /// The attempt, as in its `llm.call_started`.
    pub call_id: CallId,
    /// The message that the call produced.
    pub message_id: MessageId,
    /// SHA-256 of the message's content as stored, lower-case hex.
    pub content_sha256: String,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// What the call used, as its provider reports it.
    pub usage: TokenUsage,
}

/// A model call failed or was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallFailed {
    /// The attempt, as in its `llm.call_started`.
    pub call_id: CallId,
    /// The message that the call had started, if any.
    pub message_id: Option<MessageId>,
    /// SHA-256 of the stored part of that message, lower-case hex.
    pub content_sha256: Option<String>,
    pub error_class: LlmErrorClass,
    /// What the call used until its end, as far as it is known; absent if it used nothing.
    #[serde(default, skip_serializing_if = "TokenUsage::is_zero")]
    pub usage: TokenUsage,
}
