//! The shapes of `orchestrator.yaml`, `verticals/<vertical>/agent.yaml` and
//! `workers/<id>/agent.yaml`.

use serde::Deserialize;
use serde::de::IgnoredAny;

#[cfg(feature = "schema")]
use super::form::ID_PATTERN;
use super::form::ShortOrLong;
#[cfg(feature = "schema")]
use crate::pack::agent::OnCancel;
use crate::yaml::Located;

/// The agent that talks to the user and calls the sub-agents.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct OrchestratorSource {
    /// The agent's id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = ID_PATTERN))
    )]
    pub(crate) id: Option<Located<String>>,
    /// The agent's version, in quotes: `"1"`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<Located<String>>,
    /// The literal text `orchestrator`.
    #[cfg_attr(feature = "schema", schemars(required, extend("const" = "orchestrator")))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) kind: Option<Located<String>>,
    /// What the agent is for.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<Located<String>>,
    /// A name of `models` in pack.yaml, or `provider:model`. The default is `default`.
    pub(crate) model: Option<Located<String>>,
    /// The prompt: names of files in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) prompt_blocks: Option<Located<Vec<Located<String>>>>,
    /// The sub-agents that the orchestrator may call: ids, or `{id, flag}`.
    #[serde(default)]
    pub(crate) sub_agents: Vec<Located<ShortOrLong<String, SubAgentSource>>>,
    /// Tools of tools.yaml that the orchestrator may call; `mcp:<server>` for all tools of a server.
    #[serde(default)]
    pub(crate) tools: Vec<Located<String>>,
    /// How much of the conversation the agent sees.
    pub(crate) history: Option<HistorySource>,
    /// Words that may not appear in the orchestrator's text.
    #[serde(default)]
    pub(crate) deny_words: Vec<Located<String>>,
}

impl OrchestratorSource {
    /// The ids of the sub-agents that the orchestrator lists, as far as they are written.
    pub(crate) fn sub_agent_ids(&self) -> Vec<Located<String>> {
        let ids = self
            .sub_agents
            .iter()
            .filter_map(|listed| match &listed.value {
                ShortOrLong::Short(id) => Some(Located {
                    value: id.clone(),
                    position: listed.position,
                }),
                ShortOrLong::Long(long) => long.id.clone(),
            });
        ids.collect()
    }
}

/// A sub-agent behind a flag.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SubAgentSource {
    /// The id of the sub-agent.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
    pub(crate) id: Option<Located<String>>,
    /// A flag of pack.yaml: only users for whom it is on get the sub-agent.
    pub(crate) flag: Option<Located<String>>,
}

/// How much of the conversation an agent sees.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct HistorySource {
    /// The maximum number of messages.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000)))]
    pub(crate) max_messages: Option<Located<u64>>,
    /// The maximum number of tokens.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub(crate) max_tokens: Option<Located<u64>>,
}

/// An agent that the orchestrator calls.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSource {
    /// The agent's id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = ID_PATTERN))
    )]
    pub(crate) id: Option<Located<String>>,
    /// The agent's version, in quotes: `"1"`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<Located<String>>,
    /// The literal text `sub_agent`.
    #[cfg_attr(feature = "schema", schemars(required, extend("const" = "sub_agent")))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) kind: Option<Located<String>>,
    /// The name of the agent's folder; optional.
    pub(crate) vertical: Option<Located<String>>,
    /// Other names that the model may use for the agent.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = ID_PATTERN))))]
    pub(crate) aliases: Vec<Located<String>>,
    /// What the agent is for and when to ask it: the description of the tool `ask_<id>`, and all
    /// that the orchestrator knows of the agent.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<Located<String>>,
    /// A name of `models` in pack.yaml, or `provider:model`. The default is `default`.
    pub(crate) model: Option<Located<String>>,
    /// The prompt: names of files in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) prompt_blocks: Option<Located<Vec<Located<String>>>>,
    /// Tools of tools.yaml that the agent may call; `mcp:<server>` for all tools of a server.
    #[serde(default)]
    pub(crate) tools: Vec<Located<String>>,
    /// Not allowed: a sub-agent cannot ask other agents; only orchestrator.yaml lists sub-agents.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) sub_agents: Option<IgnoredAny>,
    /// Status ids that the agent may emit.
    #[serde(default)]
    pub(crate) emits: Vec<Located<String>>,
    /// What happens to the agent's work when the user cancels.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<OnCancel>"))]
    pub(crate) on_cancel: Option<Located<String>>,
    /// The maximum time for one answer, in milliseconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) timeout_ms: Option<Located<u64>>,
    /// The status shown after a silence; one of `emits`.
    pub(crate) default_status: Option<Located<String>>,
    /// How much of the conversation the agent sees.
    pub(crate) history: Option<HistorySource>,
}

/// An agent that works in sessions of its own, for the agent that delegates to it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSource {
    /// The worker's id, the name of its folder: a to z, 0 to 9 and _, beginning with a letter, at
    /// most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = ID_PATTERN))
    )]
    pub(crate) id: Option<Located<String>>,
    /// The agent's version, in quotes: `"1"`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<Located<String>>,
    /// The literal text `worker`.
    #[cfg_attr(feature = "schema", schemars(required, extend("const" = "worker")))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) kind: Option<Located<String>>,
    /// What the agent is for.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<Located<String>>,
    /// A name of `models` in pack.yaml, or `provider:model`. The default is `default`.
    pub(crate) model: Option<Located<String>>,
    /// The prompt: names of files in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) prompt_blocks: Option<Located<Vec<Located<String>>>>,
    /// Tools of tools.yaml that the agent may call; `mcp:<server>` for all tools of a server.
    #[serde(default)]
    pub(crate) tools: Vec<Located<String>>,
    /// What happens to the worker's work when it is cancelled. The default is `discard`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OnCancel>"))]
    pub(crate) on_cancel: Option<Located<String>>,
    /// The maximum time for one turn, in milliseconds. The default is 600000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) timeout_ms: Option<Located<u64>>,
    /// How much of the conversation the agent sees.
    pub(crate) history: Option<HistorySource>,
    /// Not allowed: a worker belongs to no vertical.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) vertical: Option<IgnoredAny>,
    /// Not allowed: the model never names a worker, so it needs no other names.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) aliases: Option<IgnoredAny>,
    /// Not allowed: a worker cannot ask sub-agents.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) sub_agents: Option<IgnoredAny>,
    /// Not allowed: a worker emits no status.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) emits: Option<IgnoredAny>,
    /// Not allowed: a worker emits no status.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(crate) default_status: Option<IgnoredAny>,
}
