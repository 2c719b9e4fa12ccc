//! The factory of a pack: for every turn it binds the orchestrator and the sub-agents that the
//! cohort has, before the first model call (S2-001, S2-002).

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::port::{HistoryBudget, TurnInput};
use turnwire_event::{Clock, Mint};
use turnwire_model::{Models, Provider};
use turnwire_pack::{Cohort, Definition, Pack};
use turnwire_tool::{Connector, Toolbox, toolbox};

use crate::assembly::Assembly;
use crate::cast::{Axis2, Cast};
use crate::means::{Means, Who, spec};
use crate::member::Member;
use crate::options::Options;
use crate::prompt;
use crate::template::{Absent, Templates};

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
}

impl Factory {
    /// A factory whose agents have the tools that the pack gives them; those that ask a data
    /// service do it through `connector`.
    pub fn new(
        pack: Arc<Pack>,
        models: Arc<dyn Models>,
        connector: Arc<Connector>,
        clock: Arc<dyn Clock>,
        mint: Arc<dyn Mint>,
    ) -> Self {
        let given = Arc::clone(&pack);
        let tools = Arc::clone(&mint);
        let pick = move |names: &[String]| {
            let made = toolbox(&given, names, &connector, &clock, &tools);
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
                picked.with(Arc::clone(tools.get(name)?)).ok()
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
            pack,
            models,
            mint,
        }
    }

    /// The most history any of its turns reads.
    pub fn history(&self) -> HistoryBudget {
        budget(&self.pack.orchestrator)
    }

    /// Binds one turn: everything it will use, whatever becomes of the pack in the meantime.
    pub fn bind(&self, input: &TurnInput, cohort: &Cohort) -> Assembly {
        let pack = &*self.pack;
        let versions = pack.versions(cohort);
        let members = self.members(cohort);
        let cast = Cast {
            means: Arc::new(self.speaker(&members)),
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
    fn members(&self, cohort: &Cohort) -> Vec<Arc<Member>> {
        let pack = &*self.pack;
        let has = |agent: &Definition| {
            let mut refs = pack.orchestrator.sub_agents.iter();
            let flag = refs.find(|one| one.id == agent.id);
            let flag = flag.and_then(|one| one.flag.as_deref());
            flag.is_none_or(|flag| cohort.has(flag))
        };
        let agents = pack.agents.iter().zip(&self.subs);
        agents
            .filter(|(agent, _)| has(agent))
            .map(|(agent, toolbox)| Arc::new(self.member(agent, toolbox.as_ref())))
            .collect()
    }

    fn member(&self, agent: &Definition, toolbox: Option<&Toolbox>) -> Member {
        let provider = self.models.provider(&agent.model);
        let means = toolbox.zip(provider).map(|(toolbox, provider)| {
            let system = prompt::blocks(&self.pack, &agent.prompt_blocks);
            Arc::new(Means {
                who: Who::Sub(agent.id.clone()),
                options: self.options(agent, system),
                provider,
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

    fn speaker(&self, members: &[Arc<Member>]) -> Means {
        let definition = &self.pack.orchestrator;
        let asks = members.iter().flat_map(|member| member.tools());
        let (toolbox, provider) = match &self.speaker {
            Some(toolbox) => (toolbox.clone(), self.models.provider(&definition.model)),
            None => (Toolbox::new(), None),
        };
        let specs = members.iter().map(|member| member.spec());
        Means {
            who: Who::Speaker,
            options: self.options(definition, prompt::speaker(&self.pack)),
            // Its call fails like any other, and the person is told.
            provider: provider.unwrap_or_else(|| Arc::new(Absent) as Arc<dyn Provider>),
            tools: toolbox.iter().map(spec).chain(specs).collect(),
            toolbox,
            asks: asks.collect(),
            mint: Arc::clone(&self.mint),
        }
    }

    fn options(&self, definition: &Definition, system: String) -> Options {
        Options {
            model: definition.model.clone(),
            system: (!system.is_empty()).then_some(system),
            history: budget(definition),
            calls_max: self.pack.limits.calls_max,
            ..Options::default()
        }
    }
}

fn budget(definition: &Definition) -> HistoryBudget {
    let history = definition.history;
    HistoryBudget {
        messages_max: history.max_messages as usize,
        bytes_max: (history.max_tokens as usize).saturating_mul(TOKEN_BYTES),
    }
}
