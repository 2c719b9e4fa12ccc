//! `/sessions/{id}/llm-calls`: which models were called, by whom, how it went, what it cost (D-04).

use serde::{Deserialize, Serialize};
use turnwire_event::code::{CallPurpose, CallState, LlmErrorClass};
use turnwire_event::row::LlmCallRow;
use turnwire_event::{Actor, CallId, StopReason, Timestamp, TurnId, Usage};

/// A model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmCall {
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

impl From<LlmCallRow> for LlmCall {
    fn from(row: LlmCallRow) -> Self {
        Self {
            call_id: row.call_id,
            turn_id: row.turn_id,
            actor: row.actor,
            model: row.model,
            purpose: row.purpose,
            attempt: row.attempt,
            status: row.status,
            error_class: row.error_class,
            stop_reason: row.stop_reason,
            usage: row.usage,
            provider_response_id: row.provider_response_id,
            started_at: row.started_at,
            ended_at: row.ended_at,
        }
    }
}

/// 200 of `GET /sessions/{id}/llm-calls`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LlmCallList"))]
pub struct List {
    /// The model calls.
    pub llm_calls: Vec<LlmCall>,
    /// What to send as `before` for older ones.
    pub next: Option<CallId>,
}
