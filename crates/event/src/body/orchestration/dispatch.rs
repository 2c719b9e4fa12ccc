//! `dispatch.traced`: the sub-agents that a turn called and their outcomes; once per turn, before its
//! terminal, however the turn ends (S2-064).

use serde::{Deserialize, Serialize};

use crate::code::{CapBehavior, DispatchOutcome};

/// The outcome of one sub-agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentOutcome {
    pub sub_agent_id: String,
    pub outcome: DispatchOutcome,
    /// From the start of the sub-agent to its end.
    pub latency_ms: u64,
}

/// The dispatch decisions of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatchTraced {
    /// The sub-agents that ran, in the order they began.
    pub sub_agents_invoked: Vec<String>,
    /// The number of sub-agents that one response of the model requested: the largest of the turn.
    pub intent_count: u32,
    /// The number of sub-agents that may run in parallel; 0 if the turn requested none.
    pub cap: u32,
    /// Whether the model requested more than the cap.
    pub cap_behavior: CapBehavior,
    /// The requested sub-agents that did not run.
    pub dropped: Vec<String>,
    /// The outcomes of the sub-agents that ran.
    pub outcomes: Vec<AgentOutcome>,
    /// The `versions.agent_definition` of `turn.started`.
    pub agent_definition_version: String,
    /// The `versions.prompt` of `turn.started`.
    pub prompt_version: String,
}
