//! `plan.*`: a step of a plan: its expected slots, then exactly one completion (D-78).

use serde::{Deserialize, Serialize};

use crate::code::{SlotStatus, StepStatus};

/// A plan step started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStarted {
    /// The step; `turn-<turn_id>-<n>` for the n-th dispatch of a turn.
    pub plan_step_id: String,
    /// The sub-agents whose results are expected, in the order of the model's requests.
    pub expected_subagents: Vec<String>,
    /// The number of sub-agents that may run in parallel in a step.
    pub cap: u32,
    /// The requested sub-agents beyond the cap, which do not run.
    pub dropped: Vec<String>,
    /// The time limit of the slowest slot.
    pub deadline_ms: u64,
}

/// The result of one slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotEnd {
    /// The sub-agent whose result the slot holds.
    pub subagent: String,
    /// The key of the result within the sub-agent.
    pub result_key: String,
    pub status: SlotStatus,
}

/// A plan step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepCompleted {
    /// The step, as in its `plan.step_started`.
    pub plan_step_id: String,
    pub status: StepStatus,
    /// One for each expected sub-agent, in the same order.
    pub slots: Vec<SlotEnd>,
}
