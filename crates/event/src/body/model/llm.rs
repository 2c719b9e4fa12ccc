//! `llm.*`: a model call begins and ends once.

use serde::{Deserialize, Serialize};

use crate::code::{CallPurpose, LlmErrorClass};
use crate::content::{StopReason, Usage};
use crate::id::{CallId, MessageId};

/// A model is about to be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallStarted {
    /// Which call.
    pub call_id: CallId,
    /// Which model.
    pub model: String,
    /// What for.
    pub purpose: CallPurpose,
    /// Which try, from 1.
    pub attempt: u32,
    /// Whether it is the turn's first call; stamped by the writer.
    #[serde(default)]
    pub first: bool,
}

/// A model call ended as it should. Vouches for the message row of the same commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallCompleted {
    /// Which call.
    pub call_id: CallId,
    /// The message it wrote.
    pub message_id: MessageId,
    /// SHA-256 of the message's content as stored, lower-case hex.
    pub content_sha256: String,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// What it cost.
    pub usage: Usage,
}

/// A model call ended otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallFailed {
    /// Which call.
    pub call_id: CallId,
    /// The message it had begun, if any.
    pub message_id: Option<MessageId>,
    /// SHA-256 of what is kept of that message.
    pub content_sha256: Option<String>,
    /// Why.
    pub error_class: LlmErrorClass,
}
