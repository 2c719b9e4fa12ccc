//! `dispatch.traced`: which sub-agents a turn asked and how they did; once a turn, before its
//! terminal, whatever became of the turn (S2-064).

use serde::{Deserialize, Serialize};

use crate::code::{CapBehavior, DispatchOutcome};

/// How one sub-agent did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentOutcome {
    /// Which sub-agent.
    pub sub_agent_id: String,
    /// How it did.
    pub outcome: DispatchOutcome,
    /// How long it took.
    pub latency_ms: u64,
}

/// The routing decision of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traced {
    /// The sub-agents that ran, in the order they began.
    pub sub_agents_invoked: Vec<String>,
    /// How many were asked for.
    pub intent_count: u32,
    /// How many may run at once; 0 if the turn asked for none.
    pub cap: u32,
    /// Whether more were asked for.
    pub cap_behavior: CapBehavior,
    /// Those that did not run.
    pub dropped: Vec<String>,
    /// How those that ran did.
    pub outcomes: Vec<AgentOutcome>,
    /// The version of the agent's definition.
    pub agent_definition_version: String,
    /// The version of the prompt.
    pub prompt_version: String,
}
