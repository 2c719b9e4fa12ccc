//! The file of a pack that defines an agent, for findings.

use turnwire_pack::{AgentDefinition, AgentKind};

/// The file that defines an agent.
pub(super) fn agent_file(agent: &AgentDefinition) -> String {
    match (&agent.kind, &agent.vertical) {
        (AgentKind::Orchestrator, _) => "orchestrator.yaml".to_owned(),
        (AgentKind::SubAgent, Some(vertical)) => format!("verticals/{vertical}/agent.yaml"),
        (AgentKind::SubAgent | AgentKind::Worker, _) => format!("workers/{}/agent.yaml", agent.id),
    }
}
