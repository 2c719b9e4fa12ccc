//! Checks that no sub-agent or worker has less time than a tool that it uses: the agent's timeout would
//! always end the tool first, and the tool's own would never apply.

use crate::check::agent::team::AgentFile;
use crate::check::tool::CheckedTools;
use crate::check::tool::connector::CheckedConnectors;
use crate::check::tool::server::CheckedServers;
use crate::finding::Findings;
use crate::pack::tool::{SERVER_PREFIX, ToolDef, ToolKind};

/// The files whose timeouts apply to a call of a tool.
pub(crate) struct TimeoutSources<'a> {
    pub(crate) tools: &'a CheckedTools,
    pub(crate) servers: &'a CheckedServers,
    pub(crate) connectors: &'a CheckedConnectors,
}

/// Who decided the timeout of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DecidedBy {
    /// The `timeout_ms` of the tool.
    Tool,
    /// The service, the MCP server or the default of the connector.
    Others,
}

/// Reports tools that may take longer than the agent that uses them: as an error if the tool itself
/// says so, else as a warning if the agent's time is `is_written` in the pack.
pub(crate) fn check(
    agent: &AgentFile<'_>,
    is_written: bool,
    sources: &TimeoutSources<'_>,
    findings: &mut Findings,
) {
    let agent_ms = agent.definition.timeout_ms;
    for name in agent.fields.tools {
        let Some((tool_ms, decided_by)) = sources.timeout(&name.value) else {
            continue;
        };
        if tool_ms <= agent_ms {
            continue;
        }
        let id = &agent.definition.id;
        let message = format!(
            "`{}` may take {tool_ms} ms, and `{id}` has {agent_ms} ms for all that it does",
            name.value
        );
        let instead = format!(
            "`timeout_ms: {tool_ms}` or more here, or a `timeout_ms` of the tool of at most {agent_ms}"
        );
        match decided_by {
            DecidedBy::Tool => findings.error(agent.file, name.position, message, instead),
            DecidedBy::Others if is_written => {
                findings.warning(agent.file, name.position, message, instead);
            }
            DecidedBy::Others => {}
        }
    }
}

impl TimeoutSources<'_> {
    /// How long a call of the tool, or of any tool of an MCP server, may take.
    fn timeout(&self, name: &str) -> Option<(u64, DecidedBy)> {
        if let Some(server) = name.strip_prefix(SERVER_PREFIX) {
            return Some((self.server(server)?, DecidedBy::Others));
        }
        let tools = self.tools.tools.iter().zip(&self.tools.timeout_is_written);
        let (tool, is_written) = tools.into_iter().find(|(tool, _)| tool.name == name)?;
        let decided_by = match is_written {
            true => DecidedBy::Tool,
            false => DecidedBy::Others,
        };
        Some((
            tool.timeout_ms.or_else(|| self.inherited(tool))?,
            decided_by,
        ))
    }

    fn inherited(&self, tool: &ToolDef) -> Option<u64> {
        match &tool.kind {
            ToolKind::Ccs {
                enricher_id,
                domain_type,
            } => {
                let mut enrichers = self.connectors.enrichers.iter();
                let enricher = enrichers.find(|enricher| {
                    (&enricher.enricher_id, &enricher.domain_type) == (enricher_id, domain_type)
                })?;
                let service = self.connectors.services.get(&enricher.service)?;
                Some(service.timeout_ms)
            }
            ToolKind::Mcp { server, .. } => self.server(server),
            ToolKind::Render { .. }
            | ToolKind::Direct(_)
            | ToolKind::Http(_)
            | ToolKind::Process(_)
            | ToolKind::Delegate { .. } => None,
        }
    }

    fn server(&self, name: &str) -> Option<u64> {
        Some(self.servers.servers.get(name)?.call_timeout_ms)
    }
}
