//! The programs of a pack's tools and MCP servers, which must exist on the server's machine.

use turnwire_pack::{McpTransport, Pack, PackFinding, ToolKind, one_line};
use turnwire_tool::find_program;
use turnwire_tool::toolbox::MCP_PREFIX;

/// An error for every tool and MCP server whose program is neither in `PATH` nor an executable file,
/// at its position in `tools.yaml`.
pub(super) fn missing(pack: &Pack) -> Vec<PackFinding> {
    let tools = pack.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Process(process) => {
            let noun = format!("the tool `{}`", tool.name);
            Some((tool.name.clone(), noun, process.command.first()?))
        }
        _ => None,
    });
    let servers = pack.mcp_servers.iter();
    let servers = servers.filter_map(|(name, server)| match &server.transport {
        McpTransport::Stdio { command, .. } => {
            let noun = format!("the MCP server `{name}`");
            Some((format!("{MCP_PREFIX}{name}"), noun, command.first()?))
        }
        McpTransport::Http { .. } => None,
    });
    let missing = tools
        .chain(servers)
        .filter(|(_, _, program)| is_checked(program) && find_program(program).is_none());
    let findings = missing.map(|(name, noun, program)| {
        let position = pack.tool_positions.get(&name).copied();
        let (line, column) = position.unwrap_or((1, 1));
        let message = format!(
            "{noun} runs `{}`, and there is no such program",
            one_line(program)
        );
        let mut finding = PackFinding::error("tools.yaml", line, column, message);
        let instead = "a program in PATH, or the path of a file that can be run, or install it";
        finding.instead = Some(instead.to_owned());
        finding
    });
    findings.collect()
}

/// True if nothing else is wrong with the first word of a command.
fn is_checked(program: &str) -> bool {
    let is_relative = program.contains('/') && !program.starts_with('/');
    !program.trim().is_empty() && !program.contains('{') && !is_relative
}
