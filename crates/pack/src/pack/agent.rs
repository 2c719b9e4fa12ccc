//! What an agent is: the orchestrator, a sub-agent or a worker, as its file defines it.

use serde::Deserialize;

/// The agent that speaks, whatever its id.
pub(crate) const ORCHESTRATOR_ID: &str = "orchestrator";

/// Which of the three an agent is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentKind {
    /// Speaks with the person and asks the others.
    #[default]
    Orchestrator,
    /// Answers the orchestrator.
    SubAgent,
    /// Works in sessions of its own.
    Worker,
}

/// What becomes of a sub-agent's work when the person cancels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// The work is thrown away.
    #[default]
    Discard,
}

/// A sub-agent that the orchestrator may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAgentRef {
    /// Which one.
    pub id: String,
    /// The flag it stands behind; without one everybody has it.
    pub flag: Option<String>,
}

/// How much of the past an agent sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Messages at most.
    pub max_messages: u32,
    /// Tokens at most.
    pub max_tokens: u32,
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDefinition {
    /// Its name; the orchestrator asks a sub-agent with the tool `ask_<id>`.
    pub id: String,
    /// The version its author gave it.
    pub version: String,
    /// Which of the three it is.
    pub kind: AgentKind,
    /// The vertical it belongs to: its folder. None for the orchestrator and workers.
    pub vertical: Option<String>,
    /// Other names that the model may use for it.
    pub aliases: Vec<String>,
    /// What it is for; word for word the description of `ask_<id>`.
    pub description: String,
    /// The model, as `provider:model`.
    pub model: String,
    /// Its prompt, block by block.
    pub prompt_blocks: Vec<String>,
    /// The tools it may use; `mcp:<server>` stands for all of a tool server.
    pub tools: Vec<String>,
    /// Whom it may ask; empty for a sub-agent and a worker.
    pub sub_agents: Vec<SubAgentRef>,
    /// The status ids it may emit.
    pub emits: Vec<String>,
    /// What happens when the person cancels.
    pub on_cancel: OnCancel,
    /// How long one answer may take; for the orchestrator, and where a worker's file does
    /// not say, the longest that is allowed.
    pub timeout_ms: u64,
    /// The status shown when nothing else has been for a while.
    pub default_status: Option<String>,
    /// How much of the past it sees.
    pub history: HistoryLimits,
    /// Words that its text may not hold.
    pub deny_words: Vec<String>,
}
