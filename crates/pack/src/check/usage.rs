//! Checks who uses which tools: what only some may have, and what nobody has.

use super::server::{self, Servers};
use super::team::{Hand, Member};
use super::tool::Tools;
use crate::definition::SPEAKER;
use crate::finding::Findings;
use crate::source::agent::OrchestratorSource;
use crate::tool::{ALL_OF, Service, ToolDef, ToolKind};
use crate::yaml::{Located, TextPosition};

const ORCHESTRATOR: &str = "orchestrator.yaml";

/// Everybody who uses tools.
pub(crate) struct Users<'a> {
    pub(crate) speaker: &'a OrchestratorSource,
    pub(crate) members: &'a [Member<'a>],
    pub(crate) hands: &'a [Hand<'a>],
}

impl Users<'_> {
    /// The names that everybody lists.
    fn names(&self) -> Vec<&str> {
        let of_members = self.members.iter().flat_map(|one| &one.source.tools);
        let of_hands = self.hands.iter().flat_map(|one| &one.source.tools);
        let all = self.speaker.tools.iter().chain(of_members).chain(of_hands);
        all.map(|name| name.value.as_str()).collect()
    }
}

/// What each may have: statuses are for sub-agents, a person's word for the orchestrator.
pub(crate) fn check(users: &Users<'_>, tools: &Tools, found: &mut Findings) {
    silent(ORCHESTRATOR, &users.speaker.tools, tools, found);
    for hand in users.hands {
        silent(hand.file, &hand.source.tools, tools, found);
        unattended(hand.file, &hand.source.tools, tools, found);
    }
    for member in users.members {
        unattended(member.file, &member.source.tools, tools, found);
    }
}

/// The tools of a list.
fn used<'a>(
    names: &'a [Located<String>],
    tools: &'a Tools,
) -> impl Iterator<Item = (&'a Located<String>, &'a ToolDef)> {
    names.iter().filter_map(|name| {
        let tool = tools.tools.iter().find(|tool| tool.name == name.value);
        Some((name, tool?))
    })
}

/// Tools that emit a status, of somebody who has none to emit.
fn silent(file: &str, names: &[Located<String>], tools: &Tools, found: &mut Findings) {
    for (name, tool) in used(names, tools) {
        let fields = [
            ("status", &tool.status),
            ("progress_status", &tool.progress_status),
        ];
        for (field, status) in fields {
            if let Some(status) = status {
                let what = format!(
                    "the tool `{}` emits `{status}`, and only sub-agents emit statuses",
                    name.value
                );
                found.error(file, name.position, what).write(format!(
                    "a tool without `{field}`, or give it to a sub-agent"
                ));
            }
        }
    }
}

/// Tools that wait for a person, of somebody whom no person speaks with.
fn unattended(file: &str, names: &[Located<String>], tools: &Tools, found: &mut Findings) {
    for (name, tool) in used(names, tools).filter(|(_, tool)| tool.approval) {
        let what = format!(
            "the tool `{}` waits for approval, and only the orchestrator can wait for a person",
            tool.name
        );
        found
            .error(file, name.position, what)
            .write("it in `tools` of orchestrator.yaml, or no `approval` in tools.yaml");
    }
}

/// Tools, tool servers and workers that nobody uses.
pub(crate) fn unused<'a>(
    users: &Users<'_>,
    tools: &Tools,
    servers: &Servers,
    services: impl Iterator<Item = &'a Service>,
    found: &mut Findings,
) {
    let listed = users.names();
    for (tool, position) in tools.tools.iter().zip(&tools.positions) {
        if !tool.name.is_empty() && !listed.contains(&tool.name.as_str()) {
            let what = format!("nobody uses the tool `{}`", tool.name);
            found
                .warning("tools.yaml", *position, what)
                .write("its name in `tools` of an agent, or no entry");
        }
    }
    let whole = listed.iter().filter_map(|name| name.strip_prefix(ALL_OF));
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
    let used: Vec<&str> = whole.chain(single).chain(behind).collect();
    // Who is misspelt is meant by somebody.
    if !used.iter().any(|name| servers.known.lacks(name)) {
        server::unused(servers, &used, found);
    }
    idle(users, tools, found);
}

/// Workers that nobody gives work to.
fn idle(users: &Users<'_>, tools: &Tools, found: &mut Findings) {
    let given: Vec<&str> = tools.tools.iter().filter_map(worker).collect();
    let of_hands = users.hands.iter().map(|hand| &hand.definition.id);
    let of_members = users.members.iter().map(|member| &member.definition.id);
    let ids: Vec<&String> = of_hands.chain(of_members).collect();
    let is_known = |id: &&str| *id == SPEAKER || ids.iter().any(|known| known == id);
    if !given.iter().all(is_known) {
        return;
    }
    for hand in users.hands {
        let id = &hand.definition.id;
        if !given.contains(&id.as_str()) {
            let what = format!("nobody delegates to `{id}`");
            found
                .warning(hand.file, TextPosition::TOP, what)
                .write(format!(
                    "a tool with `connector: delegate` and `agent: {id}` in tools.yaml"
                ));
        }
    }
}

/// Who a tool gives work to.
fn worker(tool: &ToolDef) -> Option<&str> {
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
