//! A checked pack: every name in it refers to something that exists.

pub(crate) mod flag;
pub(crate) mod provider;
pub(crate) mod relay;
pub(crate) mod agent;
pub(crate) mod status;
pub(crate) mod tool;
pub(crate) mod locale;
pub(crate) mod overrides;
pub(crate) mod routing;
pub(crate) mod price;
pub(crate) mod model_use;

use std::collections::BTreeMap;

use turnwire_event::body::turn::BoundVersions;

use crate::pack::agent::{AgentDefinition, ORCHESTRATOR_ID};
use crate::pack::flag::{FeatureFlag, FlagCohort, FlagRollout};
use crate::pack::locale::LocaleTable;
use crate::pack::model_use::ModelUse;
use crate::pack::overrides::RenderOverride;
use crate::pack::price::PriceTable;
use crate::pack::provider::ProviderDef;
use crate::pack::relay::RelayDef;
use crate::pack::routing::RoutingPolicy;
use crate::pack::status::StatusRegistry;
use crate::pack::tool::{DataService, Enricher, McpServer, SERVER_PREFIX, ToolDef, ToolKind};
use crate::text::digest::Digest;

/// The most flags of experiments whose combinations are told apart in metrics: six have 64.
const ARM_FLAGS_MAX: usize = 6;

/// Limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackLimits {
    /// The timeout of a sub-agent without one of its own.
    pub sub_agent_timeout_ms: u64,
    /// The maximum number of model calls of one agent in one turn.
    pub calls_max: u32,
    /// The maximum number of tool calls in one message of a model.
    pub tool_calls_max: u32,
    /// The maximum number of input and output tokens of one turn.
    pub turn_tokens_max: u64,
    /// The maximum cost of one turn; `None` for no limit.
    pub turn_cost_max_usd: Option<f64>,
    /// The maximum number of workers of one turn, one after the other or at once.
    pub workers_max: u32,
    /// How long statuses are collected before they are shown together.
    pub status_window_ms: u64,
    /// The silence after which a sub-agent's default status is shown.
    pub watchdog_ms: u64,
    /// The characters of the conversation that a sub-agent gets.
    pub prior_context_chars: u32,
    /// The bytes of shown ids and items that the result of one sub-agent gives the orchestrator's model.
    pub component_bytes: u32,
}

impl Default for PackLimits {
    fn default() -> Self {
        Self {
            sub_agent_timeout_ms: 20_000,
            calls_max: 8,
            tool_calls_max: 32,
            turn_tokens_max: 1_000_000,
            turn_cost_max_usd: None,
            workers_max: 8,
            status_window_ms: 150,
            watchdog_ms: 1_500,
            prior_context_chars: 2_000,
            component_bytes: 16_384,
        }
    }
}

/// A pack that passed [`crate::check()`].
#[derive(Clone, Debug)]
pub struct Pack {
    /// The pack's name, an id.
    pub name: String,
    /// The version that the pack's author wrote.
    pub version: String,
    /// The language that every text exists in.
    pub default_locale: String,
    /// A digest of all files of the pack.
    pub digest: String,
    /// The maximum number of sub-agents that run at once.
    pub cap: u32,
    /// Limits of a turn; defaults where the pack sets none.
    pub limits: PackLimits,
    /// The [`FeatureFlag`]s, sorted by name.
    pub flags: Vec<FeatureFlag>,
    /// Names for models → `provider:model`.
    pub models: BTreeMap<String, String>,
    /// The [`AgentDefinition`] of the agent that talks to the user.
    pub orchestrator: AgentDefinition,
    /// The sub-agents, in the order of the orchestrator's [`AgentDefinition::sub_agents`].
    pub agents: Vec<AgentDefinition>,
    /// The [`StatusRegistry`]: the status ids that agents may emit.
    pub registry: StatusRegistry,
    /// Prompt blocks by name.
    pub prompts: BTreeMap<String, String>,
    /// Each [`DataService`] by its name.
    pub services: BTreeMap<String, DataService>,
    /// The kinds of data that [`Self::services`] return.
    pub enrichers: Vec<Enricher>,
    /// Each [`ToolDef`] of `tools.yaml`, in its order.
    pub tools: Vec<ToolDef>,
    /// Each [`McpServer`] by its name.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Agents that work in sessions of their own, for the agent that delegates to them.
    pub workers: Vec<AgentDefinition>,
    /// The [`LocaleTable`]: the texts that users read, by language.
    pub locales: LocaleTable,
    /// How [`Self::flags`] change what is shown.
    pub overrides: Vec<RenderOverride>,
    /// Scripts of the scripted model: file name without folder and extension, YAML.
    pub scripts: Vec<(String, String)>,
    /// Recorded model calls: file name without folder and extension, JSON lines.
    pub cassettes: Vec<(String, String)>,
    /// Each [`ProviderDef`] by its name: those of `providers.yaml`, and the built-in ones that it does not
    /// define.
    pub providers: BTreeMap<String, ProviderDef>,
    /// Which model serves which turn; `None` if every agent uses its own.
    pub routing: Option<RoutingPolicy>,
    /// The [`PriceTable`] of the models.
    pub prices: PriceTable,
    /// Every [`ModelUse`] by an agent or a rule, the orchestrator's first.
    pub uses: Vec<ModelUse>,
    /// Digests of tools and MCP servers before variables are filled in: tool, or `mcp:` and server
    /// → digest.
    pub(crate) unexpanded: BTreeMap<String, String>,
    /// Where `tools.yaml` names tools and MCP servers: tool, or `mcp:` and server → line and
    /// column.
    pub tool_positions: BTreeMap<String, (u64, u64)>,
    /// Where `connectors.yaml` names services: name → line and column.
    pub service_positions: BTreeMap<String, (u64, u64)>,
    /// Where `providers.yaml` names the key of a provider: provider → line and column.
    pub key_positions: BTreeMap<String, (u64, u64)>,
}

impl Pack {
    /// The [`BoundVersions`] of a turn of `cohort`.
    pub fn versions(&self, cohort: &FlagCohort) -> BoundVersions {
        let definitions = self.definitions().full();
        BoundVersions {
            agent_definition: format!("{}@{}+{}", self.name, self.version, &definitions[..8]),
            registry: self.registry.version.clone(),
            prompt: self.prompt_version(cohort),
            cohort: cohort.id.clone(),
        }
    }

    /// The [`FlagCohort`] of a principal: the flags that are on for it, and their digest.
    pub fn cohort(&self, principal: &str) -> FlagCohort {
        let active = self.flags.iter().filter(|flag| flag.active(principal));
        let mut flags: Vec<String> = active.map(|flag| flag.name.clone()).collect();
        flags.sort();
        let mut digest = Digest::default();
        for definition in self.all_agents() {
            digest.add(&definition.id);
            digest.add(&definition.version);
        }
        digest.add(&self.registry.version);
        for flag in &flags {
            digest.add(flag);
        }
        FlagCohort {
            id: digest.short(),
            flags,
        }
    }

    /// The experiments that a cohort is part of: the flags with a partial rollout that are on for it,
    /// sorted and joined by `+`; `control` if none is, and empty if the pack has no such flag. Above
    /// six of these flags their combinations would be too many series: then `many`.
    pub fn experiment_arm(&self, cohort: &FlagCohort) -> String {
        let flags = self.experiment_flags();
        if flags.len() > ARM_FLAGS_MAX {
            return "many".to_owned();
        }
        let mut active: Vec<&str> = flags
            .iter()
            .copied()
            .filter(|flag| cohort.has(flag))
            .collect();
        active.sort_unstable();
        match (flags.is_empty(), active.is_empty()) {
            (true, _) => String::new(),
            (false, true) => "control".to_owned(),
            (false, false) => active.join("+"),
        }
    }

    /// The flags with a partial rollout.
    pub fn experiment_flags(&self) -> Vec<&str> {
        let flags = self.flags.iter().filter(|flag| match flag.rollout {
            FlagRollout::Share(_) | FlagRollout::Principals(_) => true,
            FlagRollout::On | FlagRollout::Off => false,
        });
        flags.map(|flag| flag.name.as_str()).collect()
    }

    /// The [`ToolDef`] of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDef> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The sub-agent of this id, one of [`Self::agents`].
    pub fn agent(&self, id: &str) -> Option<&AgentDefinition> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// The agent that a delegate tool names: a worker or a sub-agent by id, or `orchestrator`.
    pub fn worker(&self, id: &str) -> Option<&AgentDefinition> {
        if id == ORCHESTRATOR_ID {
            return Some(&self.orchestrator);
        }
        let mut all = self.workers.iter().chain(&self.agents);
        all.find(|agent| agent.id == id)
    }

    /// The `provider:model` of a name in [`Self::models`]; another text is returned as it is.
    pub fn model<'a>(&'a self, name: &'a str) -> &'a str {
        self.models.get(name).map_or(name, String::as_str)
    }

    /// Those of [`Self::providers`] that an agent or a rule uses, by name.
    pub fn used_providers(&self) -> BTreeMap<&str, &ProviderDef> {
        let names = self.uses.iter().map(ModelUse::provider);
        names
            .filter_map(|name| Some((name, self.providers.get(name)?)))
            .collect()
    }

    /// The agents that run elsewhere.
    pub fn relays(&self) -> impl Iterator<Item = (&AgentDefinition, &RelayDef)> {
        let agents = self.all_agents();
        agents.filter_map(|agent| Some((agent, agent.relay.as_ref()?)))
    }

    fn all_agents(&self) -> impl Iterator<Item = &AgentDefinition> {
        let speaker = std::iter::once(&self.orchestrator);
        speaker.chain(&self.agents).chain(&self.workers)
    }

    /// The digest of the definitions and of the tools they list, with their enrichers: an edit
    /// without a new version changes it too. Addresses of services are left out, so that a pack has
    /// the same digest in every environment.
    fn definitions(&self) -> Digest {
        let mut digest = Digest::default();
        for definition in self.all_agents() {
            digest.add(&format!("{definition:?}"));
            for name in &definition.tools {
                if let Some(server) = name.strip_prefix(SERVER_PREFIX) {
                    self.server(&mut digest, server);
                }
                let Some(tool) = self.tool(name) else {
                    continue;
                };
                digest.add(&format!("{tool:?}"));
                if let Some(unexpanded) = self.unexpanded.get(name) {
                    digest.add(unexpanded);
                }
                if let ToolKind::Mcp { server, .. } = &tool.kind {
                    self.server(&mut digest, server);
                }
                let enrichers = self.enrichers.iter();
                for enricher in enrichers.filter(|enricher| serves(enricher, &tool.kind)) {
                    digest.add(&format!("{enricher:?}"));
                }
            }
        }
        digest
    }

    /// Adds an MCP server before variables are filled in.
    fn server(&self, digest: &mut Digest, name: &str) {
        let unexpanded = self.unexpanded.get(&format!("{SERVER_PREFIX}{name}"));
        digest.add(unexpanded.map_or("", String::as_str));
        if let Some(server) = self.mcp_servers.get(name) {
            digest.add(&format!("{server:?}"));
        }
    }

    /// The version of the prompts that `cohort` gets: their texts, and which of the blocks behind
    /// a flag it has, so that prompts can be compared.
    fn prompt_version(&self, cohort: &FlagCohort) -> String {
        let texts = self.prompts.iter();
        let texts = texts.flat_map(|(name, text)| [name.as_str(), text.as_str()]);
        let gated = self.all_agents().flat_map(|agent| {
            let blocks = agent.prompt_blocks.iter();
            let active = blocks.filter(|block| block.is_gated() && block.is_active(cohort));
            active.flat_map(|block| [agent.id.as_str(), block.name.as_str()])
        });
        Digest::of(texts.chain(gated)).short()
    }
}

/// True if an enricher returns what a tool fetches or shows.
fn serves(enricher: &Enricher, kind: &ToolKind) -> bool {
    match kind {
        ToolKind::Ccs {
            enricher_id,
            domain_type,
        } => (&enricher.enricher_id, &enricher.domain_type) == (enricher_id, domain_type),
        ToolKind::Render { data_type, .. } => enricher.domain_type == *data_type,
        ToolKind::Direct(_)
        | ToolKind::Http(_)
        | ToolKind::Process(_)
        | ToolKind::Mcp { .. }
        | ToolKind::Delegate { .. } => false,
    }
}

#[cfg(test)]
mod tests;
