//! `subagent.*`: a sub-agent runs inside the turn. `subagent.started` is durable before it runs.

use serde::{Deserialize, Serialize};

use crate::code::{AgentErrorClass, DispatchOutcome};
use crate::id::{EpisodeId, InvocationId, ToolUseId};

/// The context that a sub-agent inherits: references and short values, never a history (S2-015, S2-016).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentContext {
    /// The principal of the turn, unchanged.
    pub principal: String,
    /// The same person, as data services identify them.
    pub user_id: String,
    /// The episode of the session.
    pub episode_id: EpisodeId,
    /// The language of the turn, as a language tag.
    pub locale: String,
    /// The user's location, if the client sends it.
    pub location: Option<String>,
    /// The orchestrator's summary of earlier turns in another vertical.
    pub prior_context: Option<String>,
}

/// A sub-agent is about to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentStarted {
    /// Names this run of the sub-agent; its end has the same id.
    pub invocation_id: InvocationId,
    /// The id of the sub-agent in the pack.
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    /// The plan step that the invocation belongs to.
    pub plan_step_id: String,
    /// The values that the sub-agent inherits from the turn.
    pub context: SubagentContext,
}

/// A sub-agent gave its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentCompleted {
    /// The run of the sub-agent, as in its `subagent.started`.
    pub invocation_id: InvocationId,
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    /// `success`, or `status_error` if a data service failed during the invocation.
    pub outcome: DispatchOutcome,
    /// From the start of the sub-agent to this end.
    pub latency_ms: u64,
    /// The number of status events that the invocation emitted.
    pub status_events: u32,
}

/// A sub-agent failed (axis 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentFailed {
    /// The run of the sub-agent, as in its `subagent.started`.
    pub invocation_id: InvocationId,
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    /// From the start of the sub-agent to this end.
    pub latency_ms: u64,
    pub error_class: AgentErrorClass,
    /// The number of status events that the invocation emitted.
    pub status_events: u32,
}
