//! `subagent.*`: a sub-agent runs inside the turn. `subagent.started` is durable before it runs.

use serde::{Deserialize, Serialize};

use crate::code::{AgentErrorClass, DispatchOutcome};
use crate::id::{EpisodeId, InvocationId, ToolUseId};

/// The context that a sub-agent inherits: references and short values, never a history (S2-015, S2-016).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Context"))]
pub struct SubagentContext {
    /// The principal of the turn, unchanged.
    pub principal: String,
    /// The same person, as data services identify them.
    pub user_id: String,
    pub episode_id: EpisodeId,
    pub locale: String,
    /// The user's location, if the client sends it.
    pub location: Option<String>,
    /// The orchestrator's summary of earlier turns in another vertical.
    pub prior_context: Option<String>,
}

/// A sub-agent is about to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Started"))]
pub struct SubagentStarted {
    pub invocation_id: InvocationId,
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    /// The plan step that the invocation belongs to.
    pub plan_step_id: String,
    pub context: SubagentContext,
}

/// A sub-agent gave its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Completed"))]
pub struct SubagentCompleted {
    pub invocation_id: InvocationId,
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    /// `success`, or `status_error` if a data service failed during the invocation.
    pub outcome: DispatchOutcome,
    pub latency_ms: u64,
    /// The number of status events that the invocation emitted.
    pub status_events: u32,
}

/// A sub-agent failed (axis 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Failed"))]
pub struct SubagentFailed {
    pub invocation_id: InvocationId,
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    pub latency_ms: u64,
    pub error_class: AgentErrorClass,
    /// The number of status events that the invocation emitted.
    pub status_events: u32,
}
