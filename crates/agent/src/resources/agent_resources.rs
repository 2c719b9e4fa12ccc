//! What an agent works with in every role: models, tools, options and ids.

use std::sync::Arc;

use turnwire_event::body::mcp::{McpServerRef, McpToolsListed};
use turnwire_event::code::ToolType;
use turnwire_event::{Body, IdGenerator};
use turnwire_model::ToolSpec;
use turnwire_tool::{Tool, Toolbox};

use super::agent_role::AgentRole;
use super::model_choice::ModelChoice;
use crate::options::AgentOptions;

/// The public name of a tool that a sub-agent called and does not have.
const UNKNOWN_TOOL: &str = "unknown";

/// What an agent works with, in the [`AgentRole`] that it has.
pub(crate) struct AgentResources {
    pub(crate) role: AgentRole,
    pub(crate) options: AgentOptions,
    pub(crate) models: ModelChoice,
    pub(crate) toolbox: Toolbox,
    /// The tools as the model sees them: those of the toolbox and those that call a sub-agent.
    pub(crate) tool_specs: Arc<[ToolSpec]>,
    /// The names of the tools that call a sub-agent.
    pub(crate) sub_agent_tools: Vec<String>,
    pub(crate) id_generator: Arc<dyn IdGenerator>,
}

impl AgentResources {
    /// The type of the tool that the model called `name`.
    pub(crate) fn tool_type(&self, name: &str) -> ToolType {
        if self.sub_agent_tools.iter().any(|tool| tool == name) {
            return ToolType::SubAgent;
        }
        let tool = self.toolbox.get(name);
        tool.map_or(ToolType::Function, |tool| tool.tool_type())
    }

    /// The events about the MCP servers whose tools the agent has. The servers were listed when the
    /// pack was loaded; nothing is requested here.
    pub(crate) fn mcp_server_events(&self) -> Vec<Body> {
        let mut tool_counts: Vec<(&str, u32)> = Vec::new();
        for server in self.toolbox.iter().filter_map(|tool| tool.server()) {
            match tool_counts.iter_mut().find(|(name, _)| *name == server) {
                Some((_, count)) => *count += 1,
                None => tool_counts.push((server, 1)),
            }
        }
        let events = tool_counts.into_iter().flat_map(|(name, tool_count)| {
            let server = name.to_owned();
            let listed = McpToolsListed {
                server: server.clone(),
                tool_count,
            };
            [
                Body::McpListToolsStarted(McpServerRef { server }),
                Body::McpListToolsCompleted(listed),
            ]
        });
        events.collect()
    }

    /// The name of a tool as clients may see it. A name that a sub-agent's model made up is text of
    /// that model, which only that sub-agent may see (D-46).
    pub(crate) fn public_tool_name<'a>(&self, name: &'a str) -> &'a str {
        match self.role {
            AgentRole::SubAgent(_) if self.toolbox.get(name).is_none() => UNKNOWN_TOOL,
            AgentRole::SubAgent(_) | AgentRole::Worker(_) | AgentRole::Orchestrator => name,
        }
    }
}

/// The [`ToolSpec`] of `tool` for a model.
pub(crate) fn tool_spec(tool: &Arc<dyn Tool>) -> ToolSpec {
    ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        input_schema: tool.input_schema(),
    }
}
