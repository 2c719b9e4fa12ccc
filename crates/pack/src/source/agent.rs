//! The shapes of `orchestrator.yaml`, `verticals/<vertical>/agent.yaml` and
//! `workers/<id>/agent.yaml`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::form::ShortOrLong;
#[cfg(feature = "schema")]
use super::form::{ID_PATTERN, NOT_BLANK};
use super::relay::RelaySource;
#[cfg(feature = "schema")]
use crate::pack::agent::OnCancel;
use crate::yaml::Located;

/// The fields that the files of all agents have.
#[derive(Clone, Copy)]
pub(crate) struct CommonFields<'a> {
    pub(crate) id: &'a Option<Located<String>>,
    pub(crate) version: &'a Option<Located<String>>,
    pub(crate) description: &'a Option<Located<String>>,
    pub(crate) model: Option<&'a Located<String>>,
    pub(crate) prompt_blocks: &'a [Located<ShortOrLong<String, PromptBlockSource>>],
    /// True if the file has the field.
    pub(crate) has_prompt_blocks: bool,
    pub(crate) tools: &'a [Located<String>],
    pub(crate) history: Option<&'a Located<HistorySource>>,
    pub(crate) relay: Option<&'a Located<RelaySource>>,
}

/// Defines the shape of an agent's file: the word for its kind, and the fields besides the
/// [`CommonFields`]. After `not`: fields that other agents have and this one must not have.
macro_rules! agent_source {
    (
        $(#[$doc:meta])* $name:ident, $kind:literal;
        $($(#[$meta:meta])* $field:ident: $type:ty,)*
        ; not: $($(#[$refused_doc:meta])* $refused:ident,)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// The agent's id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
            #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
            pub(crate) id: Option<Located<String>>,
            /// The agent's version, in quotes: `"1"`.
            #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
            pub(crate) version: Option<Located<String>>,
            /// The kind of agent that the file defines.
            #[cfg_attr(feature = "schema", schemars(required, extend("const" = $kind)))]
            #[expect(dead_code, reason = "only its schema is used")]
            pub(crate) kind: Option<Located<String>>,
            /// What the agent is for and when to ask it. The orchestrator knows no more than this
            /// of a sub-agent.
            #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
            pub(crate) description: Option<Located<String>>,
            /// A name of `models` in pack.yaml, or `provider:model`. The default is `default`.
            pub(crate) model: Option<Located<String>>,
            /// The prompt: names of files in `prompts/`, without `.md`, or `{id, flag}`.
            #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
            pub(crate) prompt_blocks: Option<Vec<Located<ShortOrLong<String, PromptBlockSource>>>>,
            /// Tools of tools.yaml that the agent may call; `mcp:<server>` for all tools of a
            /// server.
            #[serde(default)]
            pub(crate) tools: Vec<Located<String>>,
            /// How much of the conversation the agent sees.
            pub(crate) history: Option<Located<HistorySource>>,
            /// Where the agent runs, if not in the server's process. Then it has no `model`,
            /// `prompt_blocks`, `tools` and `history`.
            pub(crate) relay: Option<Located<RelaySource>>,
            $($(#[$meta])* pub(crate) $field: $type,)*
            $(
                $(#[$refused_doc])*
                #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>", extend("not" = {})))]
                #[expect(dead_code, reason = "only its schema is used")]
                pub(crate) $refused: Option<IgnoredAny>,
            )*
        }

        impl $name {
            pub(crate) fn common(&self) -> CommonFields<'_> {
                CommonFields {
                    id: &self.id,
                    version: &self.version,
                    description: &self.description,
                    model: self.model.as_ref(),
                    prompt_blocks: self.prompt_blocks.as_deref().unwrap_or_default(),
                    has_prompt_blocks: self.prompt_blocks.is_some(),
                    tools: &self.tools,
                    history: self.history.as_ref(),
                    relay: self.relay.as_ref(),
                }
            }
        }
    };
}

agent_source! {
    /// The agent that talks to the user and calls the sub-agents.
    OrchestratorSource, "orchestrator";
    /// The sub-agents that the orchestrator may call: ids, or `{id, flag}`.
    #[serde(default)]
    sub_agents: Vec<Located<ShortOrLong<String, SubAgentSource>>>,
    /// Words that may not appear in the orchestrator's text, at most 64 characters each: no more
    /// text than that is held back to look for them.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = NOT_BLANK), length(max = 64))))]
    deny_words: Vec<Located<String>>,
    ; not:
}

agent_source! {
    /// An agent that the orchestrator calls.
    AgentSource, "sub_agent";
    /// The name of the agent's folder; optional.
    vertical: Option<Located<String>>,
    /// Other names that the model may use for the agent.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = ID_PATTERN))))]
    aliases: Vec<Located<String>>,
    /// Status ids that the agent may emit.
    #[serde(default)]
    emits: Vec<Located<String>>,
    /// What happens to the agent's work when the user cancels.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<OnCancel>"))]
    on_cancel: Option<Located<String>>,
    /// The maximum time for one answer, in milliseconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    timeout_ms: Option<Located<u64>>,
    /// The status shown after a silence; one of `emits`.
    default_status: Option<Located<String>>,
    ; not:
    /// Not allowed: a sub-agent cannot ask other agents; only orchestrator.yaml lists sub-agents.
    sub_agents,
}

agent_source! {
    /// An agent that works in sessions of its own, for the agent that delegates to it.
    WorkerSource, "worker";
    /// What happens to the worker's work when it is cancelled. The default is `discard`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OnCancel>"))]
    on_cancel: Option<Located<String>>,
    /// The maximum time for one turn, in milliseconds. The default is 600000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    timeout_ms: Option<Located<u64>>,
    ; not:
    /// Not allowed: a worker belongs to no vertical.
    vertical,
    /// Not allowed: the model never names a worker, so it needs no other names.
    aliases,
    /// Not allowed: a worker cannot ask sub-agents.
    sub_agents,
    /// Not allowed: a worker emits no status.
    emits,
    /// Not allowed: a worker emits no status.
    default_status,
}

impl OrchestratorSource {
    /// The ids of the sub-agents that the orchestrator lists, as far as they are written.
    pub(crate) fn sub_agent_ids(&self) -> Vec<Located<String>> {
        let listed = self.sub_agents.iter();
        let ids = listed.filter_map(|listed| match &listed.value {
            ShortOrLong::Short(id) => Some(Located {
                value: id.clone(),
                position: listed.position,
            }),
            ShortOrLong::Long(long) => long.id.clone(),
        });
        ids.collect()
    }
}

/// A prompt block behind a flag.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptBlockSource {
    /// The name of the file in `prompts/`, without `.md`.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
    pub(crate) id: Option<Located<String>>,
    /// A flag of pack.yaml: only users for whom it is on get the block.
    pub(crate) flag: Option<Located<String>>,
    /// A flag of pack.yaml: users for whom it is on do not get the block.
    pub(crate) unless: Option<Located<String>>,
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
    pub(crate) max_messages: Option<u32>,
    /// The maximum number of tokens.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub(crate) max_tokens: Option<u32>,
}
