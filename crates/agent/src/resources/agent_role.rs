//! The role of an agent in a turn: who it is in events, and who sees its messages.

use turnwire_event::Actor;
use turnwire_event::row::MessageScope;

/// The name of the orchestrator in scripts and events.
const ORCHESTRATOR: &str = "orchestrator";

/// The role of an agent in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentRole {
    /// Answers the user: its text is streamed.
    Orchestrator,
    /// Answers in a session of its own, in which it works for a turn of another session.
    Worker(String),
    /// Works for the orchestrator: clients do not see its messages (D-46).
    SubAgent(String),
}

impl AgentRole {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Orchestrator => ORCHESTRATOR,
            Self::Worker(id) | Self::SubAgent(id) => id,
        }
    }

    /// The id of a sub-agent; `None` for the other roles.
    pub(crate) fn sub_agent_id(&self) -> Option<&str> {
        match self {
            Self::Orchestrator | Self::Worker(_) => None,
            Self::SubAgent(id) => Some(id),
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        let sub_agent = self.sub_agent_id();
        sub_agent.map_or(Actor::ORCHESTRATOR, Actor::subagent)
    }

    /// Who may read the messages of this agent.
    pub(crate) fn scope(&self) -> MessageScope {
        let sub_agent = self.sub_agent_id().map(str::to_owned);
        sub_agent.map_or(MessageScope::Shared, MessageScope::Agent)
    }
}
