//! A checked pack: everything a team wrote, with every name in it known to point at something.

pub(crate) mod agent;
pub(crate) mod status;
pub(crate) mod tool;
pub(crate) mod locale;
pub(crate) mod overrides;
pub(crate) mod flag;
pub(crate) mod provider;
pub(crate) mod routing;
pub(crate) mod price;
pub(crate) mod model_use;

use std::collections::BTreeMap;

use turnwire_event::body::turn::Versions;

use crate::pack::agent::{AgentDefinition, ORCHESTRATOR_ID};
use crate::pack::flag::{FeatureFlag, FlagCohort};
use crate::pack::locale::LocaleTable;
use crate::pack::model_use::ModelUse;
use crate::pack::overrides::RenderOverride;
use crate::pack::price::PriceTable;
use crate::pack::provider::ProviderDef;
use crate::pack::routing::RoutingPolicy;
use crate::pack::status::StatusRegistry;
use crate::pack::tool::{DataService, Enricher, McpServer, SERVER_PREFIX, ToolDef, ToolKind};
use crate::text::digest::Digest;

/// Numbers that bound a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackLimits {
    /// How long a sub-agent may take, where its own file does not say.
    pub sub_agent_timeout_ms: u64,
    /// Model calls of one agent in one turn.
    pub calls_max: u32,
    /// Tools that one message of a model may ask for.
    pub tool_calls_max: u32,
    /// Tokens, read and written, of all model calls of one turn.
    pub turn_tokens_max: u64,
    /// USD of all model calls of one turn; without it there is no such bound.
    pub turn_cost_max_usd: Option<f64>,
    /// Workers that one turn may have, one after the other or at once.
    pub workers_max: u32,
    /// How long statuses are gathered before they are shown together.
    pub status_window_ms: u64,
    /// Silence after which the default status is shown.
    pub watchdog_ms: u64,
    /// Characters of the conversation that a sub-agent is given.
    pub prior_context_chars: u32,
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
        }
    }
}

/// A pack that passed `check`.
#[derive(Clone, Debug)]
pub struct Pack {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The language that every text exists in.
    pub default_locale: String,
    /// A digest of all its files.
    pub digest: String,
    /// Sub-agents asked at once, at most.
    pub cap: u32,
    /// Numbers that bound a turn.
    pub limits: PackLimits,
    /// Flags, sorted by name.
    pub flags: Vec<FeatureFlag>,
    /// Names for models → `provider:model`.
    pub models: BTreeMap<String, String>,
    /// Who speaks with the person.
    pub orchestrator: AgentDefinition,
    /// Whom it may ask, in the order of its `sub_agents`.
    pub agents: Vec<AgentDefinition>,
    /// The status ids.
    pub registry: StatusRegistry,
    /// Prompt blocks by name.
    pub prompts: BTreeMap<String, String>,
    /// Services by name.
    pub services: BTreeMap<String, DataService>,
    /// Enrichers.
    pub enrichers: Vec<Enricher>,
    /// Tools.
    pub tools: Vec<ToolDef>,
    /// Tool servers by name.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Agents that only work in sessions of their own, for whoever delegates to them.
    pub workers: Vec<AgentDefinition>,
    /// Texts by language.
    pub locales: LocaleTable,
    /// What flags change.
    pub overrides: Vec<RenderOverride>,
    /// Scripts of the scripted model: file name without folder and ending, YAML.
    pub scripts: Vec<(String, String)>,
    /// Cassettes of the model that plays them: file name without folder and ending, JSON lines.
    pub cassettes: Vec<(String, String)>,
    /// Who can be asked over the network, by name: those of `providers.yaml`, and the built-in
    /// ones that it does not define.
    pub providers: BTreeMap<String, ProviderDef>,
    /// Which model serves which turn; without it every agent's own does.
    pub routing: Option<RoutingPolicy>,
    /// What models cost.
    pub prices: PriceTable,
    /// The models that agents and rules use, the speaker's first; one may be there many times.
    pub uses: Vec<ModelUse>,
    /// What the pack says of tools and tool servers before variables are filled in: tool, or
    /// `mcp:` and server → digest.
    pub(crate) unexpanded: BTreeMap<String, String>,
    /// Where `tools.yaml` names tools and tool servers: tool, or `mcp:` and server → line and
    /// column.
    pub tool_positions: BTreeMap<String, (u64, u64)>,
    /// Where `connectors.yaml` names services: name → line and column.
    pub service_positions: BTreeMap<String, (u64, u64)>,
    /// Where `providers.yaml` says where the key of a provider is: name → line and column.
    pub key_positions: BTreeMap<String, (u64, u64)>,
}

impl Pack {
    /// The versions a turn of this cohort is bound to.
    pub fn versions(&self, cohort: &FlagCohort) -> Versions {
        let definitions = self.definitions().full();
        Versions {
            agent_definition: format!("{}@{}+{}", self.name, self.version, &definitions[..8]),
            registry: self.registry.version.clone(),
            prompt: self.prompt_version(),
            cohort: cohort.id.clone(),
        }
    }

    /// What a principal gets.
    pub fn cohort(&self, principal: &str) -> FlagCohort {
        let active = self.flags.iter().filter(|flag| flag.active(principal));
        let mut flags: Vec<String> = active.map(|flag| flag.name.clone()).collect();
        flags.sort();
        let mut digest = Digest::default();
        for definition in self.every() {
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

    /// A tool by name.
    pub fn tool(&self, name: &str) -> Option<&ToolDef> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// A sub-agent by id.
    pub fn agent(&self, id: &str) -> Option<&AgentDefinition> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// Who works in a session of its own: a worker or a sub-agent by id, or `orchestrator`.
    pub fn worker(&self, id: &str) -> Option<&AgentDefinition> {
        if id == ORCHESTRATOR_ID {
            return Some(&self.orchestrator);
        }
        let mut all = self.workers.iter().chain(&self.agents);
        all.find(|agent| agent.id == id)
    }

    /// The `provider:model` of a name; what is not a name stays as it is.
    pub fn model<'a>(&'a self, name: &'a str) -> &'a str {
        self.models.get(name).map_or(name, String::as_str)
    }

    /// Who of the providers is used by an agent or a rule, by name.
    pub fn used_providers(&self) -> BTreeMap<&str, &ProviderDef> {
        let names = self.uses.iter().map(ModelUse::provider);
        names
            .filter_map(|name| Some((name, self.providers.get(name)?)))
            .collect()
    }

    fn every(&self) -> impl Iterator<Item = &AgentDefinition> {
        let speaker = std::iter::once(&self.orchestrator);
        speaker.chain(&self.agents).chain(&self.workers)
    }

    /// Of everything the definitions say and of the tools they list, with their enrichers, so that
    /// an edit without a new version shows too. Where a service is, is no part of it: the same pack
    /// is the same in every position.
    fn definitions(&self) -> Digest {
        let mut digest = Digest::default();
        for definition in self.every() {
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
                for enricher in self.enrichers.iter().filter(|one| serves(one, &tool.kind)) {
                    digest.add(&format!("{enricher:?}"));
                }
            }
        }
        digest
    }

    /// Of a tool server, as the pack says it.
    fn server(&self, digest: &mut Digest, name: &str) {
        let unexpanded = self.unexpanded.get(&format!("{SERVER_PREFIX}{name}"));
        digest.add(unexpanded.map_or("", String::as_str));
        if let Some(server) = self.mcp_servers.get(name) {
            digest.add(&format!("{server:?}"));
        }
    }

    fn prompt_version(&self) -> String {
        let texts = self.prompts.iter();
        Digest::of(texts.flat_map(|(name, text)| [name.as_str(), text.as_str()])).short()
    }
}

/// Whether an enricher gives what a tool fetches or shows.
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
