//! What a turn is bound to: its agent, the sub-agents it may call, and the rules of the dispatch.
//! Made before the first model call; a turn keeps its binding even if the pack changes (S2-001).

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::metric::TurnDimensions;

use super::sub_agent::BoundSubAgent;
use crate::history::prior_context::PriorContextLabels;
use crate::prompt::failure_text::FailureTexts;
use crate::resources::agent_resources::AgentResources;

/// What the failure of a data service means to a turn with a single sub-agent (S1-102).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopeFailurePolicy {
    /// The failure is reported and the turn goes on.
    Continue,
    /// The turn ends with the failure.
    EndTurn,
}

/// How many sub-agents a turn is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DispatchIntent {
    Single,
    /// Several, at once or one after the other.
    Mixed,
}

/// Everything that a turn is bound to; [`TurnFactory::bind`](crate::TurnFactory::bind) makes it.
pub(crate) struct TurnBinding {
    /// The agent that answers.
    pub(crate) resources: Arc<AgentResources>,
    /// The labels of the turn's metrics.
    pub(crate) dimensions: TurnDimensions,
    pub(crate) sub_agents: Vec<Arc<BoundSubAgent>>,
    /// The most sub-agents that one message may call.
    pub(crate) fan_out_max: usize,
    /// The most workers that the turn may start.
    pub(crate) workers_max: u32,
    /// How long a sub-agent may be silent before its default status is shown.
    pub(crate) watchdog: Duration,
    /// The most characters of prior context that a sub-agent is given.
    pub(crate) prior_context_chars_max: usize,
    pub(crate) prior_context_labels: PriorContextLabels,
    /// The most bytes of shown items in the result of one sub-agent.
    pub(crate) component_bytes_max: usize,
    pub(crate) envelope_failure_policy: EnvelopeFailurePolicy,
    /// Replies for when the agent's model fails; `None` for an agent without a pack.
    pub(crate) failure_texts: Option<FailureTexts>,
}

impl TurnBinding {
    /// An agent without sub-agents.
    pub(crate) fn standalone(resources: AgentResources, definition_version: &str) -> Self {
        Self {
            resources: Arc::new(resources),
            dimensions: TurnDimensions::of_definition(definition_version),
            sub_agents: Vec::new(),
            fan_out_max: 0,
            workers_max: 0,
            watchdog: Duration::ZERO,
            prior_context_chars_max: 0,
            prior_context_labels: PriorContextLabels::default(),
            component_bytes_max: 0,
            envelope_failure_policy: EnvelopeFailurePolicy::Continue,
            failure_texts: None,
        }
    }

    /// The sub-agent that the tool `name` calls.
    pub(crate) fn sub_agent_called_by(&self, name: &str) -> Option<&Arc<BoundSubAgent>> {
        let mut sub_agents = self.sub_agents.iter();
        sub_agents.find(|sub_agent| sub_agent.is_called_by(name))
    }
}
