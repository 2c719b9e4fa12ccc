//! `/sessions/{id}/llm-calls`: the model calls of a session, their results and usage (D-04).

use serde::{Deserialize, Serialize};
use turnwire_event::code::{CallPurpose, CallState, LlmErrorClass};
use turnwire_event::row::LlmCallRow;
use turnwire_event::{Actor, CallId, StopReason, Timestamp, TokenUsage, TurnId};

/// One attempt of a model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmCall {
    /// Identifies the call and its events.
    pub call_id: CallId,
    /// The turn that made the call.
    pub turn_id: TurnId,
    /// The caller: the orchestrator or a sub-agent.
    pub actor: Actor,
    /// The model, as `provider:model`.
    pub model: String,
    /// The purpose of the call.
    pub purpose: CallPurpose,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether the call is running, and how it ended.
    pub status: CallState,
    /// The class of the error, if the call failed.
    pub error_class: Option<LlmErrorClass>,
    /// Why the model stopped, if the call completed.
    pub stop_reason: Option<StopReason>,
    /// Tokens and cost; null while the call runs, and if it failed and used nothing. Those of a call
    /// that failed or was stopped are what its provider reported, and otherwise `estimated`.
    pub usage: Option<TokenUsage>,
    /// The id that the provider gave its response, if any.
    pub provider_response_id: Option<String>,
    /// When the request was sent.
    pub started_at: Timestamp,
    /// When the call ended; null while it runs.
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

/// 200 of `GET /sessions/{id}/llm-calls`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmCallList {
    /// One page of calls.
    pub llm_calls: Vec<LlmCall>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<CallId>,
}
