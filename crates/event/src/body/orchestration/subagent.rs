//! `subagent.*`: a sub-agent works inside the turn. `subagent.started` is durable before it does.

use serde::{Deserialize, Serialize};

use crate::code::{AgentErrorClass, DispatchOutcome};
use crate::id::{EpisodeId, InvocationId, ToolUseId};

/// What a sub-agent inherits: references and short values, never a history (S2-015, S2-016).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// On whose behalf; the turn's, unchanged.
    pub principal: String,
    /// The same person, as data services name them.
    pub user_id: String,
    /// The episode.
    pub episode_id: EpisodeId,
    /// The language the person wants.
    pub locale: String,
    /// Where the person is, if the client says.
    pub location: Option<String>,
    /// What went before in another vertical, in the orchestrator's words.
    pub prior_context: Option<String>,
}

/// A sub-agent is about to work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// Which invocation.
    pub invocation_id: InvocationId,
    /// Which sub-agent.
    pub sub_agent_id: String,
    /// The tool use that asked for it.
    pub tool_use_id: ToolUseId,
    /// The plan step it is a slot of.
    pub plan_step_id: String,
    /// What it inherits.
    pub context: Context,
}

/// A sub-agent gave its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completed {
    /// Which invocation.
    pub invocation_id: InvocationId,
    /// Which sub-agent.
    pub sub_agent_id: String,
    /// The tool use that asked for it.
    pub tool_use_id: ToolUseId,
    /// Whether it had all it wanted: `success`, or `status_error` if a data service failed it.
    pub outcome: DispatchOutcome,
    /// How long it took.
    pub latency_ms: u64,
    /// How many status events it emitted.
    pub status_events: u32,
}

/// A sub-agent gave none (axis 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failed {
    /// Which invocation.
    pub invocation_id: InvocationId,
    /// Which sub-agent.
    pub sub_agent_id: String,
    /// The tool use that asked for it.
    pub tool_use_id: ToolUseId,
    /// How long it took.
    pub latency_ms: u64,
    /// Why.
    pub error_class: AgentErrorClass,
    /// How many status events it emitted.
    pub status_events: u32,
}
