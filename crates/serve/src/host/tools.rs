//! The tools of a pack and the MCP servers behind them.

use std::sync::Arc;

use turnwire_pack::{DataService, Pack, PackFinding};
use turnwire_tool::toolbox::MCP_PREFIX;
use turnwire_tool::{
    Connector, McpServers, NoVerifier, Secrets, ToolDependencies, Toolbox, build_toolbox,
};

use super::{HostResources, PackLoadError, ServerVariables, services};

/// The [`Toolbox`] with every tool of the pack. MCP servers list their tools here and never during
/// a turn (S2-001). No result has one of `keys`.
pub(super) async fn tools(
    pack: &Pack,
    variables: &ServerVariables,
    resources: &HostResources,
    servers: &McpServers,
    keys: &Secrets,
) -> Result<Toolbox, PackLoadError> {
    servers.hide(keys);
    let mcp_toolset = servers.open(&pack.mcp_servers).await.map_err(|errors| {
        let findings = errors.iter().map(|error| {
            let name = format!("{MCP_PREFIX}{}", error.server);
            tool_finding(pack, &name, error.to_string())
        });
        PackLoadError::Wrong(findings.collect())
    })?;
    let mcp_transport = |server: &str, service: &DataService| mcp_toolset.service(server, service);
    let dialer = resources.dialer.clone();
    let credentials =
        |_: &str, service: &DataService| services::credentials(service, variables, &dialer);
    let verifier = Arc::new(NoVerifier);
    let connector = Connector::new(pack, dialer.clone(), &credentials, &mcp_transport, verifier);
    let connector = connector.map_err(|bad| {
        let service = bad.service();
        let position = service.and_then(|name| pack.service_positions.get(name));
        PackLoadError::at("connectors.yaml", position.copied().unwrap_or((1, 1)), bad)
    })?;
    let dependencies = ToolDependencies {
        connector: Arc::new(
            connector
                .with_call_limits(resources.service_call_limits)
                .hiding(keys.clone()),
        ),
        keys: keys.clone(),
        clock: resources.clock.clone(),
        id_generator: resources.id_generator.clone(),
        dialer: resources.dialer.clone(),
        mcp_toolset,
        runner: resources.runner.clone(),
    };
    build_toolbox(pack, &names(pack), &dependencies).map_err(|error| {
        let finding = tool_finding(pack, error.tool(), error.to_string());
        PackLoadError::Wrong(vec![finding])
    })
}

/// The [`PackFinding`] about a tool, or about an MCP server (`mcp:` and its name), at its position in
/// the pack.
fn tool_finding(pack: &Pack, tool: &str, problem: String) -> PackFinding {
    let position = pack.tool_positions.get(tool).copied();
    let (line, column) = position.unwrap_or((1, 1));
    PackFinding::error("tools.yaml", line, column, problem)
}

/// The names of all tools of the pack, and every `mcp:` entry by which an agent gets all tools of a
/// server.
fn names(pack: &Pack) -> Vec<String> {
    let names = pack.tools.iter().map(|tool| tool.name.clone());
    let mut names: Vec<String> = names.collect();
    let agents = std::iter::once(&pack.orchestrator)
        .chain(&pack.agents)
        .chain(&pack.workers);
    let selected = agents.flat_map(|agent| &agent.tools);
    for name in selected.filter(|name| name.starts_with(MCP_PREFIX)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}
