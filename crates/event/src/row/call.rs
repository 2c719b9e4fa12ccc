//! The row of a model call.

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::code::{CallPurpose, CallState, LlmErrorClass};
use crate::content::{StopReason, Usage};
use crate::id::{CallId, TurnId};

/// A model call as stored (D-04): a turn makes several, and each has its provider's own id.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmCallRow {
    /// Which call.
    pub call_id: CallId,
    /// In which turn.
    pub turn_id: TurnId,
    /// Who asked: the orchestrator, or a sub-agent.
    pub actor: Actor,
    /// Which model, `provider:model`.
    pub model: String,
    /// What for.
    pub purpose: CallPurpose,
    /// Which try, from 1.
    pub attempt: u32,
    /// Where it stands.
    pub status: CallState,
    /// Why it failed, if it did.
    pub error_class: Option<LlmErrorClass>,
    /// Why the model stopped, if it completed.
    pub stop_reason: Option<StopReason>,
    /// What it cost, if it completed.
    pub usage: Option<Usage>,
    /// What the provider calls its answer, if it said.
    pub provider_response_id: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallEnd {
    /// As it should.
    Completed {
        /// Why the model stopped.
        stop_reason: StopReason,
        /// What it cost.
        usage: Usage,
    },
    /// Otherwise.
    Failed(LlmErrorClass),
}
