//! The definition of an agent: the orchestrator, a sub-agent or a worker.

use serde::Deserialize;

use super::flag::FlagCohort;
use super::relay::RelayDef;

/// The name of the orchestrator in tools and rules, whatever its id.
pub(crate) const ORCHESTRATOR_ID: &str = "orchestrator";

/// The role of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentKind {
    /// Talks to the user and calls the sub-agents.
    #[default]
    Orchestrator,
    SubAgent,
    /// Works in sessions of its own.
    Worker,
}

/// What happens to a sub-agent's work when the user cancels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// The work is discarded.
    #[default]
    Discard,
}

/// A sub-agent that the orchestrator may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAgentRef {
    pub id: String,
    /// The flag that turns the sub-agent on; `None` if it is on for everybody.
    pub flag: Option<String>,
}

/// A block of an agent's prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptBlockRef {
    /// The name of the block in [`Pack::prompts`](crate::Pack::prompts).
    pub name: String,
    /// The flag that turns the block on; `None` if it is on for everybody.
    pub flag: Option<String>,
    /// The flag that turns the block off.
    pub unless: Option<String>,
}

impl PromptBlockRef {
    /// True if the prompt of `cohort` has the block.
    pub fn is_active(&self, cohort: &FlagCohort) -> bool {
        self.flag.as_ref().is_none_or(|flag| cohort.has(flag))
            && !self.unless.as_ref().is_some_and(|flag| cohort.has(flag))
    }

    /// True if the flags of a cohort decide whether its prompt has the block.
    pub(crate) const fn is_gated(&self) -> bool {
        self.flag.is_some() || self.unless.is_some()
    }
}

/// How much of the conversation an agent sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The maximum number of messages.
    pub max_messages: u32,
    /// The maximum number of tokens.
    pub max_tokens: u32,
}

/// An agent, as its file defines it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The id; the orchestrator calls a sub-agent with the tool `ask_<id>`.
    pub id: String,
    /// The version that the agent's author wrote.
    pub version: String,
    /// The [`AgentKind`] of the agent.
    pub kind: AgentKind,
    /// The vertical of a sub-agent: its folder. `None` for the orchestrator and workers.
    pub vertical: Option<String>,
    /// Other names that the model may use for the agent.
    pub aliases: Vec<String>,
    /// What the agent is for: the description of the tool `ask_<id>`.
    pub description: String,
    /// The model, as `provider:model`.
    pub model: String,
    /// Each [`PromptBlockRef`] of the prompt, in order.
    pub prompt_blocks: Vec<PromptBlockRef>,
    /// The tools that the agent may call; `mcp:<server>` for all tools of a server.
    pub tools: Vec<String>,
    /// Each [`SubAgentRef`] that the agent may call; empty for a sub-agent and a worker.
    pub sub_agents: Vec<SubAgentRef>,
    /// The status ids that the agent may emit.
    pub emits: Vec<String>,
    /// What happens to the agent's work when the user cancels.
    pub on_cancel: OnCancel,
    /// The maximum time for one answer.
    pub timeout_ms: u64,
    /// The status shown after a silence.
    pub default_status: Option<String>,
    /// How much of the conversation the agent sees.
    pub history: HistoryLimits,
    /// Words that may not appear in the agent's text.
    pub deny_words: Vec<String>,
    /// Where the agent runs, if not in this process: then it has no model, prompt and tools here.
    pub relay: Option<RelayDef>,
}
