//! `plan.*`: one step of a plan: expected slots, then exactly one completion (D-78).

use serde::{Deserialize, Serialize};

use crate::code::{SlotStatus, StepStatus};

/// A step was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStarted {
    /// Which step; `turn-<turn_id>-<n>` for the n-th dispatch of a turn.
    pub plan_step_id: String,
    /// The sub-agents whose results are expected, in the order they were asked for.
    pub expected_subagents: Vec<String>,
    /// How many may run at once in a step.
    pub cap: u32,
    /// Those asked for beyond the cap, which will not run.
    pub dropped: Vec<String>,
    /// How long the slowest slot may take.
    pub deadline_ms: u64,
}

/// How a slot ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotEnd {
    /// The sub-agent.
    pub subagent: String,
    /// Which result of it.
    pub result_key: String,
    /// How it ended.
    pub status: SlotStatus,
}

/// A step is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepCompleted {
    /// Which step.
    pub plan_step_id: String,
    /// How.
    pub status: StepStatus,
    /// Its slots.
    pub slots: Vec<SlotEnd>,
}
