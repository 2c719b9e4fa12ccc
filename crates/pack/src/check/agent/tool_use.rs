//! Checks which agents use which tools, and reports tools that no agent uses.

use crate::check::agent::team::{SubAgentFile, WorkerFile};
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
    pub(crate) sub_agents: &'a [SubAgentFile<'a>],
    pub(crate) workers: &'a [WorkerFile<'a>],
}

impl ToolUsers<'_> {
    /// The names of tools that the agents list.
    fn names(&self) -> Vec<&str> {
        let of_members = self.sub_agents.iter().flat_map(|one| &one.source.tools);
        let of_hands = self.workers.iter().flat_map(|one| &one.source.tools);
        let all = self
            .orchestrator
            .tools
            .iter()
            .chain(of_members)
            .chain(of_hands);
        all.map(|name| name.value.as_str()).collect()
    }
}

/// Checks that only sub-agents emit statuses and only the orchestrator waits for approvals.
pub(crate) fn check(users: &ToolUsers<'_>, tools: &CheckedTools, findings: &mut Findings) {
    check_statuses(ORCHESTRATOR, &users.orchestrator.tools, tools, findings);
    for hand in users.workers {
        check_statuses(hand.file, &hand.source.tools, tools, findings);
        check_approvals(hand.file, &hand.source.tools, tools, findings);
    }
    for member in users.sub_agents {
        check_approvals(member.file, &member.source.tools, tools, findings);
    }
}

/// The known tools of a list of names.
fn used<'a>(
    names: &'a [Located<String>],
    tools: &'a CheckedTools,
) -> impl Iterator<Item = (&'a Located<String>, &'a ToolDef)> {
    names.iter().filter_map(|name| {
        let tool = tools.tools.iter().find(|tool| tool.name == name.value);
        Some((name, tool?))
    })
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
                findings
                    .error(file, name.position, message)
                    .suggest(format!(
                        "a tool without `{field}`, or give it to a sub-agent"
                    ));
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
        findings
            .error(file, name.position, message)
            .suggest("it in `tools` of orchestrator.yaml, or no `approval` in tools.yaml");
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
    let listed = users.names();
    for (tool, position) in tools.tools.iter().zip(&tools.positions) {
        if !tool.name.is_empty() && !listed.contains(&tool.name.as_str()) {
            let message = format!("nobody uses the tool `{}`", tool.name);
            findings
                .warning("tools.yaml", *position, message)
                .suggest("its name in `tools` of an agent, or no entry");
        }
    }
    let whole_servers = listed
        .iter()
        .filter_map(|name| name.strip_prefix(SERVER_PREFIX));
    let single = tools.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Mcp { server, .. } => Some(server.as_str()),
        ToolKind::Ccs { .. }
        | ToolKind::Render { .. }
        | ToolKind::Direct(_)
        | ToolKind::Http(_)
        | ToolKind::Process(_)
        | ToolKind::Delegate { .. } => None,
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
    let delegated_ids: Vec<&str> = tools.tools.iter().filter_map(delegate_of).collect();
    let of_hands = users.workers.iter().map(|hand| &hand.definition.id);
    let of_members = users.sub_agents.iter().map(|member| &member.definition.id);
    let ids: Vec<&String> = of_hands.chain(of_members).collect();
    let is_known =
        |id: &&str| *id == ORCHESTRATOR_ID || ids.iter().any(|known_names| known_names == id);
    if !delegated_ids.iter().all(is_known) {
        return;
    }
    for hand in users.workers {
        let id = &hand.definition.id;
        if !delegated_ids.contains(&id.as_str()) {
            let message = format!("nobody delegates to `{id}`");
            findings
                .warning(hand.file, TextPosition::TOP, message)
                .suggest(format!(
                    "a tool with `connector: delegate` and `agent: {id}` in tools.yaml"
                ));
        }
    }
}

/// The agent that a tool delegates to.
fn delegate_of(tool: &ToolDef) -> Option<&str> {
    match &tool.kind {
        ToolKind::Delegate { agent } => Some(agent),
        ToolKind::Ccs { .. }
        | ToolKind::Render { .. }
        | ToolKind::Direct(_)
        | ToolKind::Http(_)
        | ToolKind::Process(_)
        | ToolKind::Mcp { .. } => None,
    }
}
