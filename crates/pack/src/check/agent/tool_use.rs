//! Checks which agents use which tools, and reports tools that no agent uses.

use crate::check::agent::team::AgentFile;
use crate::check::tool::CheckedTools;
use crate::check::tool::server::{self, CheckedServers};
use crate::finding::Findings;
use crate::pack::agent::ORCHESTRATOR_ID;
use crate::pack::tool::{DataService, SERVER_PREFIX, ToolDef, ToolKind};
use crate::source::agent::OrchestratorSource;
use crate::yaml::{Located, TextPosition};

const ORCHESTRATOR: &str = "orchestrator.yaml";

/// The agents that use tools.
pub(crate) struct ToolUsers<'a> {
    pub(crate) orchestrator: &'a OrchestratorSource,
    pub(crate) sub_agents: &'a [AgentFile<'a>],
    pub(crate) workers: &'a [AgentFile<'a>],
}

/// Checks that only sub-agents emit statuses and only the orchestrator waits for approvals.
pub(crate) fn check(users: &ToolUsers<'_>, tools: &CheckedTools, findings: &mut Findings) {
    check_statuses(ORCHESTRATOR, &users.orchestrator.tools, tools, findings);
    for worker in users.workers {
        check_statuses(worker.file, worker.fields.tools, tools, findings);
    }
    for agent in users.workers.iter().chain(users.sub_agents) {
        check_approvals(agent.file, agent.fields.tools, tools, findings);
    }
}

/// The known tools of a list of names.
fn used<'a>(
    names: &'a [Located<String>],
    tools: &'a CheckedTools,
) -> impl Iterator<Item = (&'a Located<String>, &'a ToolDef)> {
    let names = names.iter();
    names.filter_map(|name| Some((name, tools.get(&name.value)?)))
}

/// Reports tools that emit a status, of an agent that may not.
fn check_statuses(
    file: &str,
    names: &[Located<String>],
    tools: &CheckedTools,
    findings: &mut Findings,
) {
    for (name, tool) in used(names, tools) {
        let fields = [
            ("status", &tool.status),
            ("progress_status", &tool.progress_status),
        ];
        for (field, status) in fields {
            if let Some(status) = status {
                let message = format!(
                    "the tool `{}` emits `{status}`, and only sub-agents emit statuses",
                    name.value
                );
                let instead = format!("a tool without `{field}`, or give it to a sub-agent");
                findings.error(file, name.position, message, instead);
            }
        }
    }
}

/// Reports tools that need approval, of an agent that no person talks to.
fn check_approvals(
    file: &str,
    names: &[Located<String>],
    tools: &CheckedTools,
    findings: &mut Findings,
) {
    for (name, tool) in used(names, tools).filter(|(_, tool)| tool.approval) {
        let message = format!(
            "the tool `{}` waits for approval, and only the orchestrator can wait for a person",
            tool.name
        );
        let instead = "it in `tools` of orchestrator.yaml, or no `approval` in tools.yaml";
        findings.error(file, name.position, message, instead);
    }
}

/// Reports tools, tool servers and workers that no agent uses.
pub(crate) fn check_unused<'a>(
    users: &ToolUsers<'_>,
    tools: &CheckedTools,
    servers: &CheckedServers,
    services: impl Iterator<Item = &'a DataService>,
    findings: &mut Findings,
) {
    let agents = users.sub_agents.iter().chain(users.workers);
    let names = agents
        .flat_map(|agent| agent.fields.tools)
        .chain(&users.orchestrator.tools);
    let listed: Vec<&str> = names.map(|name| name.value.as_str()).collect();
    for (tool, position) in tools.tools.iter().zip(&tools.positions) {
        if !tool.name.is_empty() && !listed.contains(&tool.name.as_str()) {
            let message = format!("nobody uses the tool `{}`", tool.name);
            let instead = "its name in `tools` of an agent, or no entry";
            findings.warning("tools.yaml", *position, message, instead);
        }
    }
    let whole_servers = listed
        .iter()
        .filter_map(|name| name.strip_prefix(SERVER_PREFIX));
    let single = tools.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Mcp { server, .. } => Some(server.as_str()),
        _ => None,
    });
    let behind = services.filter_map(|service| service.mcp.as_deref());
    let used: Vec<&str> = whole_servers.chain(single).chain(behind).collect();
    // A misspelt name may mean a server that seems unused.
    if !used.iter().any(|name| servers.known_names.lacks(name)) {
        server::warn_unused(servers, &used, findings);
    }
    check_idle_workers(users, tools, findings);
}

/// Reports workers that no tool delegates to.
fn check_idle_workers(users: &ToolUsers<'_>, tools: &CheckedTools, findings: &mut Findings) {
    let delegates = tools.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Delegate { agent } => Some(agent.as_str()),
        _ => None,
    });
    let delegates: Vec<&str> = delegates.collect();
    let agents = users.workers.iter().chain(users.sub_agents);
    let ids: Vec<&str> = agents.map(|agent| agent.definition.id.as_str()).collect();
    if delegates
        .iter()
        .any(|id| *id != ORCHESTRATOR_ID && !ids.contains(id))
    {
        return;
    }
    for worker in users.workers {
        let id = &worker.definition.id;
        if !delegates.contains(&id.as_str()) {
            let message = format!("nobody delegates to `{id}`");
            let instead =
                format!("a tool with `connector: delegate` and `agent: {id}` in tools.yaml");
            findings.warning(worker.file, TextPosition::TOP, message, instead);
        }
    }
}
