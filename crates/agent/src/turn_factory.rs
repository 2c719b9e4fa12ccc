//! Binds turns to a pack: for every turn the agent of its session, the orchestrator or a worker,
//! and the sub-agents that the cohort has, before the first model call (S2-001, S2-002).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use turnwire_event::IdGenerator;
use turnwire_event::metric::{SubAgentVerticals, TurnDimensions};
use turnwire_event::port::{HistoryBudget, TurnInput};
use turnwire_model::ProviderLookup;
use turnwire_model::routing::{ModelRoute, ModelRouter, RoutingInput};
use turnwire_pack::{AXIS2_TERMINAL_FLAG, AgentDefinition, FlagCohort, Pack};
use turnwire_relay::RelayedAgent;
use turnwire_tool::{ToolDependencies, Toolbox, build_toolbox};

use crate::dispatch::sub_agent::BoundSubAgent;
use crate::dispatch::turn_binding::{EnvelopeFailurePolicy, TurnBinding};
use crate::history::prior_context::PriorContextLabels;
use crate::options::{AgentOptions, RetryOptions};
use crate::prompt::failure_text::{FailureTexts, UnavailableModel};
use crate::prompt::system_prompt::{
    orchestrator_prompt, prompt_blocks, sub_agent_prompt, subagent_context,
};
use crate::resources::agent_resources::{AgentResources, tool_spec};
use crate::resources::agent_role::AgentRole;
use crate::resources::model_choice::{ModelCandidate, ModelChoice, model_names, provider_name};
use crate::turn_assembly::TurnAssembly;

/// Bytes that count as one token of history.
const TOKEN_BYTES: usize = 4;

/// Creates a [`TurnAssembly`] for each turn of one [`Pack`].
pub struct TurnFactory {
    pack: Arc<Pack>,
    models: Arc<dyn ProviderLookup>,
    id_generator: Arc<dyn IdGenerator>,
    /// The tools of the orchestrator; `None` if they could not be created.
    orchestrator_tools: Option<Toolbox>,
    /// The tools of each sub-agent, in the pack's order.
    sub_agent_tools: Vec<Option<Toolbox>>,
    /// The tools of each worker, in the pack's order.
    worker_tools: Vec<Option<Toolbox>>,
    routing: Arc<ModelRouter>,
    retries: RetryOptions,
    verticals: SubAgentVerticals,
    /// The sub-agents that run elsewhere.
    relayed: RelayedAgents,
}

/// The sub-agents of a pack that run elsewhere, by id.
pub type RelayedAgents = BTreeMap<String, Arc<RelayedAgent>>;

impl TurnFactory {
    /// A factory whose agents have the tools that `pack` defines, created with the
    /// [`ToolDependencies`] of `dependencies`.
    pub fn new(
        pack: Arc<Pack>,
        models: Arc<dyn ProviderLookup>,
        dependencies: ToolDependencies,
    ) -> Self {
        let tool_pack = Arc::clone(&pack);
        let id_generator = Arc::clone(&dependencies.id_generator);
        let create = move |names: &[String]| {
            let created = build_toolbox(&tool_pack, names, &dependencies);
            // A checked pack has no such error; if there is one, the agents with these tools fail.
            created
                .inspect_err(|error| tracing::error!(%error, "tools of the pack were not created"))
                .ok()
        };
        Self::with_toolboxes(pack, models, id_generator, create)
    }

    /// A factory whose agents select their tools by name from one [`Toolbox`].
    pub fn with_tools(
        pack: Arc<Pack>,
        models: Arc<dyn ProviderLookup>,
        tools: &Toolbox,
        id_generator: Arc<dyn IdGenerator>,
    ) -> Self {
        let select = |names: &[String]| {
            names.iter().try_fold(Toolbox::new(), |selected, name| {
                let mut named = tools.tools_named(name)?.into_iter();
                named.try_fold(selected, |selected, tool| selected.with(tool).ok())
            })
        };
        Self::with_toolboxes(pack, models, id_generator, select)
    }

    fn with_toolboxes(
        pack: Arc<Pack>,
        models: Arc<dyn ProviderLookup>,
        id_generator: Arc<dyn IdGenerator>,
        toolbox_of: impl Fn(&[String]) -> Option<Toolbox>,
    ) -> Self {
        let toolboxes = |agents: &[AgentDefinition]| -> Vec<Option<Toolbox>> {
            let toolboxes = agents.iter().map(|agent| toolbox_of(&agent.tools));
            toolboxes.collect()
        };
        let routing = pack.routing.as_ref().map(ModelRouter::new);
        let verticals = pack.agents.iter().filter_map(|agent| {
            let vertical = agent.vertical.clone()?;
            Some((agent.id.clone(), vertical))
        });
        Self {
            verticals: Arc::new(verticals.collect()),
            orchestrator_tools: toolbox_of(&pack.orchestrator.tools),
            sub_agent_tools: toolboxes(&pack.agents),
            worker_tools: toolboxes(&pack.workers),
            routing: Arc::new(routing.unwrap_or_default()),
            retries: RetryOptions::default(),
            relayed: RelayedAgents::new(),
            pack,
            models,
            id_generator,
        }
    }

    /// Replaces the routing policy of the pack. Turns that are bound keep theirs (S2-001).
    #[must_use]
    pub fn routing(mut self, routing: Arc<ModelRouter>) -> Self {
        self.routing = routing;
        self
    }

    /// Sets the sub-agents that run elsewhere.
    #[must_use]
    pub fn relayed(mut self, relayed: RelayedAgents) -> Self {
        self.relayed = relayed;
        self
    }

    /// Sets the default [`RetryOptions`]; what the pack says about a provider takes precedence.
    #[must_use]
    pub fn retries(mut self, retries: RetryOptions) -> Self {
        self.retries = retries;
        self
    }

    /// The verticals of the pack's sub-agents.
    pub fn verticals(&self) -> SubAgentVerticals {
        Arc::clone(&self.verticals)
    }

    /// The most history that a turn of the pack reads.
    pub fn history(&self) -> HistoryBudget {
        let pack = &*self.pack;
        let others = pack.workers.iter().chain(&pack.agents).map(history_budget);
        others.fold(history_budget(&pack.orchestrator), |most, budget| {
            HistoryBudget {
                messages_max: most.messages_max.max(budget.messages_max),
                bytes_max: most.bytes_max.max(budget.bytes_max),
            }
        })
    }

    /// Binds one turn to everything it will use, even if the pack changes in the meantime.
    pub fn bind(&self, input: &TurnInput, cohort: &FlagCohort) -> TurnAssembly {
        let pack = &*self.pack;
        let versions = pack.versions(cohort);
        let Some(agent) = self.session_agent(input, cohort) else {
            let name = input.agent.as_deref();
            tracing::error!(session = %input.session_id, agent = name, "the pack has no such agent");
            return TurnAssembly::without_agent(versions, history_budget(&pack.orchestrator));
        };
        // Only the orchestrator calls sub-agents (D-48).
        let sub_agents = match agent.role {
            AgentRole::Orchestrator => self.sub_agents(input, cohort),
            AgentRole::Worker(_) | AgentRole::SubAgent(_) => Vec::new(),
        };
        let binding = TurnBinding {
            resources: Arc::new(self.agent_resources(input, agent, &sub_agents).0),
            workers_max: pack.limits.workers_max,
            dimensions: TurnDimensions {
                agent_definition: versions.agent_definition.clone(),
                dm_type: input.dm_type.clone(),
                experiment_arm: pack.experiment_arm(cohort),
                verticals: self.verticals(),
            },
            sub_agents,
            fan_out_max: pack.cap as usize,
            watchdog: Duration::from_millis(pack.limits.watchdog_ms),
            prior_context_chars_max: pack.limits.prior_context_chars as usize,
            prior_context_labels: PriorContextLabels::new(&pack.locales, &input.locale),
            component_bytes_max: pack.limits.component_bytes as usize,
            envelope_failure_policy: match cohort.has(AXIS2_TERMINAL_FLAG) {
                true => EnvelopeFailurePolicy::EndTurn,
                false => EnvelopeFailurePolicy::Continue,
            },
            failure_texts: Some(FailureTexts::new(&pack.locales, &input.locale)),
        };
        TurnAssembly::new(versions, Arc::new(binding))
    }

    /// The sub-agents that the [`FlagCohort`] has.
    fn sub_agents(&self, input: &TurnInput, cohort: &FlagCohort) -> Vec<Arc<BoundSubAgent>> {
        let pack = &*self.pack;
        let is_enabled = |agent: &AgentDefinition| {
            let mut references = pack.orchestrator.sub_agents.iter();
            let reference = references.find(|reference| reference.id == agent.id);
            let flag = reference.and_then(|reference| reference.flag.as_deref());
            flag.is_none_or(|flag| cohort.has(flag))
        };
        let agents = pack.agents.iter().zip(&self.sub_agent_tools);
        agents
            .filter(|(agent, _)| is_enabled(agent))
            .map(|(agent, tools)| Arc::new(self.sub_agent(input, cohort, agent, tools.as_ref())))
            .collect()
    }

    fn sub_agent(
        &self,
        input: &TurnInput,
        cohort: &FlagCohort,
        agent: &AgentDefinition,
        toolbox: Option<&Toolbox>,
    ) -> BoundSubAgent {
        let sub_agent = TurnAgent {
            role: AgentRole::SubAgent(agent.id.clone()),
            definition: agent,
            toolbox,
            system: prompt_blocks(&self.pack, agent, cohort),
        };
        let remote = self.relayed.get(&agent.id).cloned();
        // The models and tools of an agent elsewhere are not those of the pack.
        let resources = agent.relay.is_none().then(|| {
            let (resources, is_available) = self.agent_resources(input, sub_agent, &[]);
            is_available.then(|| Arc::new(resources))
        });
        BoundSubAgent {
            remote,
            vertical: agent.vertical.clone().unwrap_or_default(),
            id: agent.id.clone(),
            aliases: agent.aliases.clone(),
            description: agent.description.clone(),
            timeout: Duration::from_millis(agent.timeout_ms),
            shown_status_ids: agent.emits.clone(),
            default_status: agent.default_status.clone(),
            resources: resources.flatten(),
        }
    }

    /// The agent of the turn's session; `None` if the pack no longer has an agent of that name.
    fn session_agent(&self, input: &TurnInput, cohort: &FlagCohort) -> Option<TurnAgent<'_>> {
        let pack = &*self.pack;
        let orchestrator = AgentRole::Orchestrator;
        let name = input.agent.as_deref().unwrap_or(orchestrator.name());
        if name == orchestrator.name() {
            return Some(TurnAgent {
                role: orchestrator,
                definition: &pack.orchestrator,
                toolbox: self.orchestrator_tools.as_ref(),
                system: orchestrator_prompt(pack, cohort),
            });
        }
        let workers = pack.workers.iter().zip(&self.worker_tools);
        let mut agents = workers.chain(pack.agents.iter().zip(&self.sub_agent_tools));
        let (definition, toolbox) = agents.find(|(definition, _)| definition.id == name)?;
        let blocks = prompt_blocks(pack, definition, cohort);
        Some(TurnAgent {
            role: AgentRole::Worker(name.to_owned()),
            definition,
            toolbox: toolbox.as_ref(),
            system: sub_agent_prompt(Some(&blocks), &subagent_context(input, None), &[]),
        })
    }

    /// The resources of an agent, and whether its tools and at least one of its models are available;
    /// if not, its calls fail.
    fn agent_resources(
        &self,
        input: &TurnInput,
        agent: TurnAgent<'_>,
        sub_agents: &[Arc<BoundSubAgent>],
    ) -> (AgentResources, bool) {
        let route = self.route(input, &agent);
        let (toolbox, mut candidates) = match agent.toolbox {
            Some(toolbox) => (toolbox.clone(), self.candidates(&route)),
            None => (Toolbox::new(), VecDeque::new()),
        };
        let is_available = !candidates.is_empty();
        let first = candidates.pop_front();
        let first = first.unwrap_or_else(|| unavailable_candidate(&route.model));
        let version = self.routing.version();
        let sub_agent_specs = sub_agents.iter().map(|sub_agent| sub_agent.tool_spec());
        let specs = toolbox.iter().map(tool_spec).chain(sub_agent_specs);
        let sub_agent_tools = sub_agents.iter().flat_map(|agent| agent.tool_names());
        let resources = AgentResources {
            role: agent.role,
            options: self.options(agent.definition, agent.system),
            models: ModelChoice::new(&route, version, first, candidates.into()),
            tool_specs: specs.collect(),
            toolbox,
            sub_agent_tools: sub_agent_tools.collect(),
            id_generator: Arc::clone(&self.id_generator),
        };
        (resources, is_available)
    }

    /// The models that the [`ModelRouter`] gives an agent in this turn.
    fn route(&self, input: &TurnInput, agent: &TurnAgent<'_>) -> ModelRoute {
        let routing_input = RoutingInput {
            tenant: &input.owner.tenant.to_string(),
            agent: agent.role.name(),
            locale: &input.locale,
            kind: input.kind,
            cost_usd: input.cost_usd,
        };
        self.routing.route(&agent.definition.model, &routing_input)
    }

    /// The models of a [`ModelRoute`] that are available, in its order.
    fn candidates(&self, route: &ModelRoute) -> VecDeque<ModelCandidate> {
        let names = model_names(route).into_iter();
        names.filter_map(|model| self.candidate(model)).collect()
    }

    /// The model called `model`; `None` if it is not available.
    fn candidate(&self, model: &str) -> Option<ModelCandidate> {
        let provider = self.models.provider(model)?;
        Some(ModelCandidate {
            retries: self.retries_of(provider_name(model)),
            model: model.to_owned(),
            provider,
        })
    }

    /// The retry options of `provider`: those of the pack, and the defaults where it has none.
    fn retries_of(&self, provider: &str) -> RetryOptions {
        let default = self.retries;
        let Some(provider) = self.pack.providers.get(provider) else {
            return default;
        };
        let millis = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
        RetryOptions {
            attempts: provider.retries.attempts.unwrap_or(default.attempts),
            base_delay: millis(provider.retries.base_ms, default.base_delay),
            max_delay: millis(provider.retries.max_ms, default.max_delay),
        }
    }

    fn options(&self, definition: &AgentDefinition, system: String) -> AgentOptions {
        AgentOptions {
            model: definition.model.clone(),
            system: (!system.is_empty()).then_some(system),
            history: history_budget(definition),
            calls_max: self.pack.limits.calls_max,
            tool_calls_max: self.pack.limits.tool_calls_max as usize,
            turn_tokens_max: self.pack.limits.turn_tokens_max,
            turn_cost_max_usd: self.pack.limits.turn_cost_max_usd,
            retries: self.retries,
            ..AgentOptions::default()
        }
    }
}

/// An agent of a turn, as its [`AgentDefinition`] describes it.
struct TurnAgent<'a> {
    role: AgentRole,
    definition: &'a AgentDefinition,
    /// `None` if its tools could not be created.
    toolbox: Option<&'a Toolbox>,
    system: String,
}

/// A candidate for a model that is not available: [`UnavailableModel`] fails like any other, and
/// the user is told.
fn unavailable_candidate(model: &str) -> ModelCandidate {
    ModelCandidate {
        model: model.to_owned(),
        provider: Arc::new(UnavailableModel),
        retries: RetryOptions::default(),
    }
}

fn history_budget(definition: &AgentDefinition) -> HistoryBudget {
    let history = definition.history;
    HistoryBudget {
        messages_max: history.max_messages as usize,
        bytes_max: (history.max_tokens as usize).saturating_mul(TOKEN_BYTES),
    }
}
