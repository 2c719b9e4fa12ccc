//! The factory of a pack: for every turn it binds who speaks in its session, the orchestrator or
//! a worker, and the sub-agents that the cohort has, before the first model call (S2-001, S2-002).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use turnwire_event::Mint;
use turnwire_event::body::subagent::Context;
use turnwire_event::port::{HistoryBudget, TurnInput};
use turnwire_model::Models;
use turnwire_model::routing::{Circumstances, Route, Routing};
use turnwire_pack::{AgentDefinition, FlagCohort, Pack};
use turnwire_tool::{ToolDependencies, Toolbox, toolbox};

use crate::assembly::Assembly;
use crate::dispatch::sub_agent::Member;
use crate::dispatch::turn_binding::{Axis2, Cast};
use crate::options::{Options, Retries};
use crate::prompt::failure_text::{Absent, Templates};
use crate::prompt::instructions;
use crate::resources::agent_resources::{Means, Who, spec};
use crate::resources::model_choice::{Candidate, Choice, names, provider_of};

/// The flag that makes a data service's failure end the turn of a single intent (S1-102).
const AXIS2_TERMINAL: &str = "ai_assistant_axis2_terminal";
/// Bytes that count as one token of history.
const TOKEN_BYTES: usize = 4;

/// Makes turns of one pack.
pub struct Factory {
    pack: Arc<Pack>,
    models: Arc<dyn Models>,
    mint: Arc<dyn Mint>,
    /// The orchestrator's tools; none if they could not be made.
    speaker: Option<Toolbox>,
    /// The tools of each sub-agent, in the pack's order.
    subs: Vec<Option<Toolbox>>,
    /// The tools of each worker, in the pack's order.
    workers: Vec<Option<Toolbox>>,
    routing: Arc<Routing>,
    retries: Retries,
}

impl Factory {
    /// A factory whose agents have the tools that the pack gives them.
    pub fn new(pack: Arc<Pack>, models: Arc<dyn Models>, kit: ToolDependencies) -> Self {
        let given = Arc::clone(&pack);
        let mint = Arc::clone(&kit.mint);
        let pick = move |names: &[String]| {
            let made = toolbox(&given, names, &kit);
            // A checked pack gives no cause; if one is found, whoever needs these tools fails.
            made.inspect_err(|why| tracing::error!(%why, "tools of the pack cannot be made"))
                .ok()
        };
        Self::picking(pack, models, mint, pick)
    }

    /// A factory whose agents pick their tools, by name, from `tools`.
    pub fn with_tools(
        pack: Arc<Pack>,
        models: Arc<dyn Models>,
        tools: &Toolbox,
        mint: Arc<dyn Mint>,
    ) -> Self {
        let pick = |names: &[String]| {
            names.iter().try_fold(Toolbox::new(), |picked, name| {
                let mut named = tools.named(name)?.into_iter();
                named.try_fold(picked, |picked, tool| picked.with(tool).ok())
            })
        };
        Self::picking(pack, models, mint, pick)
    }

    fn picking(
        pack: Arc<Pack>,
        models: Arc<dyn Models>,
        mint: Arc<dyn Mint>,
        pick: impl Fn(&[String]) -> Option<Toolbox>,
    ) -> Self {
        Self {
            speaker: pick(&pack.orchestrator.tools),
            subs: pack.agents.iter().map(|agent| pick(&agent.tools)).collect(),
            workers: pack.workers.iter().map(|one| pick(&one.tools)).collect(),
            routing: Arc::new(pack.routing.as_ref().map(Routing::new).unwrap_or_default()),
            retries: Retries::default(),
            pack,
            models,
            mint,
        }
    }

    /// The same with other rules of which model serves which turn than those of its pack. Turns
    /// that are bound keep theirs (S2-001).
    #[must_use]
    pub fn routing(mut self, routing: Arc<Routing>) -> Self {
        self.routing = routing;
        self
    }

    /// The same with other bounds on trying again; what the pack says of a provider stands over
    /// them.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// The most history any of its turns reads.
    pub fn history(&self) -> HistoryBudget {
        let pack = &*self.pack;
        let others = pack.workers.iter().chain(&pack.agents).map(budget);
        others.fold(budget(&pack.orchestrator), |most, one| HistoryBudget {
            messages_max: most.messages_max.max(one.messages_max),
            bytes_max: most.bytes_max.max(one.bytes_max),
        })
    }

    /// Binds one turn: everything it will use, whatever becomes of the pack in the meantime.
    pub fn bind(&self, input: &TurnInput, cohort: &FlagCohort) -> Assembly {
        let pack = &*self.pack;
        let versions = pack.versions(cohort);
        let Some(part) = self.part(input) else {
            let agent = input.agent.as_deref();
            tracing::error!(session = %input.session_id, agent, "the pack has no such agent");
            return Assembly::nobody(versions, budget(&pack.orchestrator));
        };
        // Whoever works for somebody asks nobody, unless it is the one that speaks (D-48).
        let members = match part.who {
            Who::Speaker => self.members(input, cohort),
            Who::Worker(_) | Who::Sub(_) => Vec::new(),
        };
        let cast = Cast {
            means: Arc::new(self.speaker(input, part, &members)),
            workers_max: pack.limits.workers_max,
            definition: versions.agent_definition.clone(),
            members,
            cap: pack.cap as usize,
            watchdog: Duration::from_millis(pack.limits.watchdog_ms),
            prior_context_chars: pack.limits.prior_context_chars as usize,
            axis2: if cohort.has(AXIS2_TERMINAL) {
                Axis2::Terminal
            } else {
                Axis2::Passing
            },
            templates: Some(Templates::new(&pack.locales, &input.locale)),
        };
        Assembly::new(versions, Arc::new(cast))
    }

    /// The sub-agents that the cohort has.
    fn members(&self, input: &TurnInput, cohort: &FlagCohort) -> Vec<Arc<Member>> {
        let pack = &*self.pack;
        let has = |agent: &AgentDefinition| {
            let mut refs = pack.orchestrator.sub_agents.iter();
            let flag = refs.find(|one| one.id == agent.id);
            let flag = flag.and_then(|one| one.flag.as_deref());
            flag.is_none_or(|flag| cohort.has(flag))
        };
        let agents = pack.agents.iter().zip(&self.subs);
        agents
            .filter(|(agent, _)| has(agent))
            .map(|(agent, toolbox)| Arc::new(self.member(input, agent, toolbox.as_ref())))
            .collect()
    }

    fn member(
        &self,
        input: &TurnInput,
        agent: &AgentDefinition,
        toolbox: Option<&Toolbox>,
    ) -> Member {
        let who = Who::Sub(agent.id.clone());
        let route = self.route(input, &who, agent);
        let mut served = self.served(&route);
        let choice = served
            .pop_front()
            .map(|first| self.choice(&route, first, served));
        let means = toolbox.zip(choice).map(|(toolbox, choice)| {
            let system = instructions::blocks(&self.pack, &agent.prompt_blocks);
            Arc::new(Means {
                who,
                options: self.options(agent, system),
                choice,
                toolbox: toolbox.clone(),
                tools: toolbox.iter().map(spec).collect(),
                asks: Vec::new(),
                mint: Arc::clone(&self.mint),
            })
        });
        Member {
            vertical: agent.vertical.clone().unwrap_or_default(),
            id: agent.id.clone(),
            aliases: agent.aliases.clone(),
            description: agent.description.clone(),
            timeout: Duration::from_millis(agent.timeout_ms),
            emits: agent.emits.clone(),
            default_status: agent.default_status.clone(),
            means,
        }
    }

    /// Who speaks in the turn's session; none if the pack has nobody of that name (any more).
    fn part(&self, input: &TurnInput) -> Option<Part<'_>> {
        let pack = &*self.pack;
        let name = input.agent.as_deref().unwrap_or(Who::Speaker.name());
        if name == Who::Speaker.name() {
            return Some(Part {
                who: Who::Speaker,
                definition: &pack.orchestrator,
                toolbox: self.speaker.as_ref(),
                system: instructions::speaker(pack),
            });
        }
        let workers = pack.workers.iter().zip(&self.workers);
        let mut all = workers.chain(pack.agents.iter().zip(&self.subs));
        let (definition, toolbox) = all.find(|(definition, _)| definition.id == name)?;
        let blocks = instructions::blocks(pack, &definition.prompt_blocks);
        Some(Part {
            who: Who::Worker(name.to_owned()),
            definition,
            toolbox: toolbox.as_ref(),
            system: instructions::sub_agent(Some(&blocks), &context(input), &[]),
        })
    }

    fn speaker(&self, input: &TurnInput, part: Part<'_>, members: &[Arc<Member>]) -> Means {
        let definition = part.definition;
        let asks = members.iter().flat_map(|member| member.tools());
        let route = self.route(input, &part.who, definition);
        let (toolbox, mut served) = match part.toolbox {
            Some(toolbox) => (toolbox.clone(), self.served(&route)),
            None => (Toolbox::new(), VecDeque::new()),
        };
        let first = served.pop_front().unwrap_or_else(|| absent(&route.model));
        let specs = members.iter().map(|member| member.spec());
        Means {
            who: part.who,
            options: self.options(definition, part.system),
            choice: self.choice(&route, first, served),
            tools: toolbox.iter().map(spec).chain(specs).collect(),
            toolbox,
            asks: asks.collect(),
            mint: Arc::clone(&self.mint),
        }
    }

    /// Which model the rules give an agent in this turn.
    fn route(&self, input: &TurnInput, who: &Who, definition: &AgentDefinition) -> Route {
        let at = Circumstances {
            tenant: &input.owner.tenant.to_string(),
            agent: who.name(),
            locale: &input.locale,
            kind: input.kind,
            cost_usd: input.cost_usd,
        };
        self.routing.route(&definition.model, &at)
    }

    /// What of `route` is served, in its order.
    fn served(&self, route: &Route) -> VecDeque<Candidate> {
        let names = names(route).into_iter();
        names.filter_map(|model| self.candidate(model)).collect()
    }

    fn choice(&self, route: &Route, first: Candidate, others: VecDeque<Candidate>) -> Choice {
        Choice::new(route, self.routing.version(), first, others.into())
    }

    /// The model called `model`; none if nobody serves it.
    fn candidate(&self, model: &str) -> Option<Candidate> {
        let provider = self.models.provider(model)?;
        Some(Candidate {
            retries: self.patience(provider_of(model)),
            model: model.to_owned(),
            provider,
        })
    }

    /// How often a provider is asked: what the pack says of it, and the server's word for the rest.
    fn patience(&self, provider: &str) -> Retries {
        let given = self.retries;
        let Some(own) = self.pack.providers.get(provider) else {
            return given;
        };
        let millis = |ms: Option<u64>, given| ms.map_or(given, Duration::from_millis);
        Retries {
            attempts: own.retries.attempts.unwrap_or(given.attempts),
            base: millis(own.retries.base_ms, given.base),
            max: millis(own.retries.max_ms, given.max),
        }
    }

    fn options(&self, definition: &AgentDefinition, system: String) -> Options {
        Options {
            model: definition.model.clone(),
            system: (!system.is_empty()).then_some(system),
            history: budget(definition),
            calls_max: self.pack.limits.calls_max,
            tool_calls_max: self.pack.limits.tool_calls_max as usize,
            turn_tokens_max: self.pack.limits.turn_tokens_max,
            turn_cost_max_usd: self.pack.limits.turn_cost_max_usd,
            retries: self.retries,
            ..Options::default()
        }
    }
}

/// Who speaks, and with what.
struct Part<'a> {
    who: Who,
    definition: &'a AgentDefinition,
    /// None if its tools could not be made.
    toolbox: Option<&'a Toolbox>,
    system: String,
}

/// What a worker is told of the person it works for.
fn context(input: &TurnInput) -> Context {
    let principal = input.owner.principal.to_string();
    Context {
        user_id: principal.clone(),
        principal,
        episode_id: input.episode_id,
        locale: input.locale.clone(),
        location: input.location.clone(),
        prior_context: None,
    }
}

/// Stands where no model is served: its call fails like any other, and the person is told.
fn absent(model: &str) -> Candidate {
    Candidate {
        model: model.to_owned(),
        provider: Arc::new(Absent),
        retries: Retries::default(),
    }
}

fn budget(definition: &AgentDefinition) -> HistoryBudget {
    let history = definition.history;
    HistoryBudget {
        messages_max: history.max_messages as usize,
        bytes_max: (history.max_tokens as usize).saturating_mul(TOKEN_BYTES),
    }
}
