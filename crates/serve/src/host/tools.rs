//! The tools of a pack and the MCP servers behind them.

use std::sync::Arc;

use turnwire_pack::{DataService, Pack, PackFinding};
use turnwire_tool::toolbox::MCP_PREFIX;
use turnwire_tool::{Connector, McpServers, NoVerifier, ToolDependencies, Toolbox, toolbox};

use super::{HostResources, PackLoadError};

/// The [`Toolbox`] with every tool of the pack. MCP servers list their tools here and never during
/// a turn (S2-001).
pub(super) async fn tools(
    pack: &Pack,
    means: &HostResources,
    servers: &McpServers,
) -> Result<Toolbox, PackLoadError> {
    let servers = servers.open(&pack.mcp_servers).await.map_err(|bad| {
        let findings = bad.iter().map(|bad| {
            let server = format!("{MCP_PREFIX}{}", bad.server);
            wrong(pack, &server, bad.to_string())
        });
        PackLoadError::Wrong(findings.collect())
    })?;
    let behind = |server: &str, service: &DataService| servers.service(server, service);
    let dialer = means.dialer.clone();
    let connector = Connector::new(pack, dialer, &behind, Arc::new(NoVerifier)).map_err(|bad| {
        let service = bad.service();
        let position = service.and_then(|name| pack.service_positions.get(name));
        PackLoadError::at("connectors.yaml", position.copied().unwrap_or((1, 1)), bad)
    })?;
    let kit = ToolDependencies {
        connector: Arc::new(connector),
        clock: means.clock.clone(),
        mint: means.mint.clone(),
        dialer: means.dialer.clone(),
        servers,
        runner: means.workshop.clone(),
    };
    toolbox(pack, &names(pack), &kit)
        .map_err(|bad| PackLoadError::Wrong(vec![wrong(pack, bad.tool(), bad.to_string())]))
}

/// A mistake of a tool, or of an MCP server (`mcp:` and its name), at its position in the pack.
fn wrong(pack: &Pack, tool: &str, what: String) -> PackFinding {
    let place = pack.tool_positions.get(tool).copied();
    let (line, column) = place.unwrap_or((1, 1));
    PackFinding::error("tools.yaml", line, column, what)
}

/// The names of all tools of the pack, and every `mcp:` entry by which an agent gets all tools of a
/// server.
fn names(pack: &Pack) -> Vec<String> {
    let names = pack.tools.iter().map(|tool| tool.name.clone());
    let mut names: Vec<String> = names.collect();
    let agents = std::iter::once(&pack.orchestrator)
        .chain(&pack.agents)
        .chain(&pack.workers);
    let words = agents.flat_map(|agent| &agent.tools);
    for word in words.filter(|word| word.starts_with(MCP_PREFIX)) {
        if !names.contains(word) {
            names.push(word.clone());
        }
    }
    names
}
