//! `orchestrator.yaml`, `verticals/<vertical>/agent.yaml` and `workers/<id>/agent.yaml` as they
//! are written.

use serde::Deserialize;

use super::form::Either;
#[cfg(feature = "schema")]
use crate::definition::OnCancel;
use crate::place::At;

/// The agent that speaks with the person and asks the sub-agents.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct OrchestratorSource {
    /// Its id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) id: Option<At<String>>,
    /// Its version, in quotes.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<At<String>>,
    /// `orchestrator`.
    #[cfg_attr(feature = "schema", schemars(required, extend("const" = "orchestrator")))]
    pub(crate) kind: Option<At<String>>,
    /// What it is for.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<At<String>>,
    /// A name of `models` in pack.yaml, or `provider:model`; `default` where it is left out.
    pub(crate) model: Option<At<String>>,
    /// Its prompt: names of files in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) prompt_blocks: Option<At<Vec<At<String>>>>,
    /// Whom it may ask: ids, or `{id, flag}`.
    #[serde(default)]
    pub(crate) sub_agents: Vec<At<Either<String, SubAgentSource>>>,
    /// Tools of tools.yaml that it may use itself; `mcp:<server>` for all of a tool server.
    #[serde(default)]
    pub(crate) tools: Vec<At<String>>,
    /// How much of the past it sees.
    pub(crate) history: Option<HistorySource>,
    /// Words that its text may not hold.
    #[serde(default)]
    pub(crate) deny_words: Vec<At<String>>,
}

/// A sub-agent behind a flag.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SubAgentSource {
    /// The sub-agent's id.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) id: Option<At<String>>,
    /// A flag of pack.yaml: only those it is active for have the sub-agent.
    pub(crate) flag: Option<At<String>>,
}

/// How much of the past an agent sees.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct HistorySource {
    /// Messages at most.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000)))]
    pub(crate) max_messages: Option<At<u64>>,
    /// Tokens at most.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub(crate) max_tokens: Option<At<u64>>,
}

/// An agent that the orchestrator asks.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSource {
    /// Its id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) id: Option<At<String>>,
    /// Its version, in quotes.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<At<String>>,
    /// `sub_agent`.
    #[cfg_attr(feature = "schema", schemars(required, extend("const" = "sub_agent")))]
    pub(crate) kind: Option<At<String>>,
    /// The name of its folder; may be left out.
    pub(crate) vertical: Option<At<String>>,
    /// Other names that the model may use for it.
    #[serde(default)]
    pub(crate) aliases: Vec<At<String>>,
    /// What it is for: word for word the description of the tool `ask_<id>`, and all that the
    /// orchestrator knows of it.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<At<String>>,
    /// A name of `models` in pack.yaml, or `provider:model`; `default` where it is left out.
    pub(crate) model: Option<At<String>>,
    /// Its prompt: names of files in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) prompt_blocks: Option<At<Vec<At<String>>>>,
    /// Tools of tools.yaml that it may use; `mcp:<server>` for all of a tool server.
    #[serde(default)]
    pub(crate) tools: Vec<At<String>>,
    /// Refused: a sub-agent asks nobody.
    #[cfg_attr(feature = "schema", schemars(extend("not" = {})))]
    pub(crate) sub_agents: Option<At<serde_json::Value>>,
    /// Status ids that it may emit.
    #[serde(default)]
    pub(crate) emits: Vec<At<String>>,
    /// What becomes of its work when the person cancels.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<OnCancel>"))]
    pub(crate) on_cancel: Option<At<String>>,
    /// How long one answer may take.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) timeout_ms: Option<At<u64>>,
    /// The status shown when nothing else has been for a while; one of `emits`.
    pub(crate) default_status: Option<At<String>>,
    /// How much of the past it sees.
    pub(crate) history: Option<HistorySource>,
}

/// An agent that only works in sessions of its own, for whoever delegates to it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSource {
    /// Its id, the name of its folder: a to z, 0 to 9 and _, beginning with a letter, at most 48
    /// characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) id: Option<At<String>>,
    /// Its version, in quotes.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<At<String>>,
    /// `worker`.
    #[cfg_attr(feature = "schema", schemars(required, extend("const" = "worker")))]
    pub(crate) kind: Option<At<String>>,
    /// What it is for.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<At<String>>,
    /// A name of `models` in pack.yaml, or `provider:model`; `default` where it is left out.
    pub(crate) model: Option<At<String>>,
    /// Its prompt: names of files in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) prompt_blocks: Option<At<Vec<At<String>>>>,
    /// Tools of tools.yaml that it may use; `mcp:<server>` for all of a tool server.
    #[serde(default)]
    pub(crate) tools: Vec<At<String>>,
    /// What becomes of its work when somebody cancels; `discard`, also where it is left out.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OnCancel>"))]
    pub(crate) on_cancel: Option<At<String>>,
    /// How long one turn of it may take; 600000 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) timeout_ms: Option<At<u64>>,
    /// How much of the past it sees.
    pub(crate) history: Option<HistorySource>,
    /// Refused: it is of no vertical.
    #[cfg_attr(feature = "schema", schemars(extend("not" = {})))]
    pub(crate) vertical: Option<At<serde_json::Value>>,
    /// Refused: nobody asks it by a name.
    #[cfg_attr(feature = "schema", schemars(extend("not" = {})))]
    pub(crate) aliases: Option<At<serde_json::Value>>,
    /// Refused: it asks nobody.
    #[cfg_attr(feature = "schema", schemars(extend("not" = {})))]
    pub(crate) sub_agents: Option<At<serde_json::Value>>,
    /// Refused: it emits no status.
    #[cfg_attr(feature = "schema", schemars(extend("not" = {})))]
    pub(crate) emits: Option<At<serde_json::Value>>,
    /// Refused: it emits no status.
    #[cfg_attr(feature = "schema", schemars(extend("not" = {})))]
    pub(crate) default_status: Option<At<serde_json::Value>>,
}
