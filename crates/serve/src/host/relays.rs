//! The agents of a pack that run elsewhere: each with its upstream, its key and its bounds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use turnwire_agent::RelayedAgents;
use turnwire_dial::{RequestHeaders, Url};
use turnwire_event::port::{HistoryBudget, TurnInput};
use turnwire_pack::{AgentDefinition, AgentKind, Pack, RelayDef, RelayDialect};
use turnwire_relay::{RelayedAgent, RelayedTurns, Upstream, UpstreamDialect, UpstreamLimits};

use super::agent_file::agent_file;
use super::keys::key;
use super::{HostResources, PackLoadError, ServerVariables};

/// The name of the agent of a session that names none.
const ORCHESTRATOR: &str = "orchestrator";

/// The relayed agents of a pack.
#[derive(Default)]
pub(super) struct PackRelays {
    /// Those that answer turns, by the name by which a session has them.
    turns: BTreeMap<String, Arc<RelayedTurns>>,
    /// Those that the orchestrator asks.
    pub(super) sub_agents: RelayedAgents,
}

impl PackRelays {
    /// The upstreams of the pack. Keys are read here.
    pub(super) fn new(
        pack: &Pack,
        variables: &ServerVariables,
        resources: &HostResources,
    ) -> Result<Self, PackLoadError> {
        let mut relays = Self::default();
        for (agent, relay) in pack.relays() {
            let upstream = Arc::new(upstream(agent, relay, variables, resources)?);
            let name = match agent.kind {
                AgentKind::Orchestrator => ORCHESTRATOR,
                AgentKind::SubAgent | AgentKind::Worker => agent.id.as_str(),
            };
            let ids = Arc::clone(&resources.id_generator);
            if agent.kind == AgentKind::SubAgent {
                let asked = RelayedAgent::new(Arc::clone(&upstream), Arc::clone(&ids));
                relays.sub_agents.insert(agent.id.clone(), Arc::new(asked));
            }
            let turns = RelayedTurns::new(upstream, ids);
            relays.turns.insert(name.to_owned(), Arc::new(turns));
        }
        Ok(relays)
    }

    /// The upstream that answers the turn; `None` if its agent runs in this process.
    pub(super) fn of(&self, input: &TurnInput) -> Option<Arc<RelayedTurns>> {
        let name = input.agent.as_deref().unwrap_or(ORCHESTRATOR);
        self.turns.get(name).cloned()
    }

    /// The most history that a relayed turn reads.
    pub(super) fn history(&self, most: HistoryBudget) -> HistoryBudget {
        let budgets = self.turns.values().map(|turns| turns.history());
        budgets.fold(most, |most, budget| HistoryBudget {
            messages_max: most.messages_max.max(budget.messages_max),
            bytes_max: most.bytes_max.max(budget.bytes_max),
        })
    }
}

fn upstream(
    agent: &AgentDefinition,
    relay: &RelayDef,
    variables: &ServerVariables,
    resources: &HostResources,
) -> Result<Upstream, PackLoadError> {
    let wrong = |why: &dyn std::fmt::Display| {
        let message = format!("the upstream of `{}` cannot be called: {why}", agent.id);
        PackLoadError::at(agent_file(agent).as_str(), relay.position, message)
    };
    let url = |text: &str| Url::parse(text).map_err(|error| wrong(&error));
    let key = key(&relay.key, variables).map_err(|error| wrong(&error))?;
    let bearer = key.map(|key| format!("Bearer {}", key.expose()));
    let own = relay
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let with_key = bearer.iter().map(|value| ("authorization", value.as_str()));
    let headers = RequestHeaders::new(own.chain(with_key)).map_err(|error| wrong(&error))?;
    let limits = resources.upstream_limits;
    let or = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
    Ok(Upstream {
        agent: agent.id.clone(),
        dialect: match relay.dialect {
            RelayDialect::Turnwire => UpstreamDialect::Turnwire(Arc::new(relay.types.clone())),
            RelayDialect::OpenaiChat => UpstreamDialect::OpenAiChat {
                model: relay.model.clone().unwrap_or_default(),
            },
        },
        url: url(&relay.url)?,
        cancel_url: relay.cancel_url.as_deref().map(url).transpose()?,
        headers,
        limits: UpstreamLimits {
            connect: or(relay.connect_ms, limits.connect),
            idle: or(relay.idle_ms, limits.idle),
            ..limits
        },
        history_max: relay.history as usize,
        dialer: Arc::clone(&resources.dialer),
    })
}
