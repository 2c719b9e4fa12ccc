//! The record of a model call.

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::code::{CallPurpose, CallState, LlmErrorClass};
use crate::content::{StopReason, TokenUsage};
use crate::id::{CallId, TurnId};

/// A model call as stored (D-04): a turn makes several, and each has its own id at the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmCallRow {
    pub call_id: CallId,
    pub turn_id: TurnId,
    /// The caller: the orchestrator or a sub-agent.
    pub actor: Actor,
    /// The model, as `provider:model`.
    pub model: String,
    pub purpose: CallPurpose,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub status: CallState,
    /// The cause of a failed call.
    pub error_class: Option<LlmErrorClass>,
    /// The stop reason of a completed call.
    pub stop_reason: Option<StopReason>,
    /// The usage of a call that ended; `None` while it runs, or if it failed and used nothing.
    pub usage: Option<TokenUsage>,
    /// The provider's id of the answer, if it sent one.
    pub provider_response_id: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// The end of a model call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ModelCallEnd {
    Completed {
        stop_reason: StopReason,
        usage: TokenUsage,
    },
    /// The call failed or was cancelled.
    Failed {
        error_class: LlmErrorClass,
        usage: TokenUsage,
    },
}
