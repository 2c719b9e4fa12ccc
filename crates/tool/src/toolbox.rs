//! The set of tools that an agent can call, and how a set is built from the tool definitions of a
//! pack.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwire_dial::Dialer;
use turnwire_event::{Clock, IdGenerator};
use turnwire_pack::{BuiltinFunction, Pack, RenderShape, ToolDef, ToolKind};

use crate::builtin::{DelegateTool, RenderTool, builtin};
use crate::data_service::{Connector, EnricherTool};
use crate::http::HttpTool;
use crate::mcp::McpToolset;
use crate::program::ProcessTool;
use crate::program::runner::ProgramRunner;
use crate::secrets::Secrets;
use crate::tool::Tool;

/// A [`Toolbox`] already has a tool of this name, by which a model calls it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool named `{0}`")]
pub struct DuplicateToolName(pub String);

/// The reason why [`build_toolbox`] could not build the tools of an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolBuildError {
    /// The pack does not define the tool.
    #[error("there is no tool named `{0}`")]
    Unknown(String),
    /// Two of the tools have the same name.
    #[error(transparent)]
    Duplicate(#[from] DuplicateToolName),
    /// The definition is not valid, or its enricher, schema or MCP server is missing or unusable.
    #[error("tool `{tool}`: {reason}")]
    Definition {
        /// The name of the tool, or [`MCP_PREFIX`] and the name of an MCP server.
        tool: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl ToolBuildError {
    /// The name of the tool that was not built, or [`MCP_PREFIX`] and the name of an MCP server.
    pub fn tool(&self) -> &str {
        match self {
            Self::Unknown(tool)
            | Self::Duplicate(DuplicateToolName(tool))
            | Self::Definition { tool, .. } => tool,
        }
    }
}

/// The shared services that the tools of a pack use.
#[derive(Clone)]
pub struct ToolDependencies {
    /// Reaches the data services of [`ToolKind::Ccs`] tools.
    pub connector: Arc<Connector>,
    /// The time that [`BuiltinFunction::Clock`] returns.
    pub clock: Arc<dyn Clock>,
    /// Creates the ids that [`ToolKind::Render`] tools and [`BuiltinFunction::Burst`] put into events.
    pub id_generator: Arc<dyn IdGenerator>,
    /// Reaches the services of [`ToolKind::Http`] tools.
    pub dialer: Arc<Dialer>,
    /// Starts the programs of [`ToolKind::Process`] tools.
    pub runner: Arc<ProgramRunner>,
    /// The running MCP servers of the pack, for [`ToolKind::Mcp`] tools.
    pub mcp_toolset: Arc<McpToolset>,
    /// The keys of this process, which no result may contain.
    pub keys: Secrets,
}

/// The [`Tool`]s that an agent can call, with unique names, in the order in which they were added.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// The tools of each MCP server that was added as a whole, by `mcp:` and the server's name. They
    /// are in `tools` too.
    mcp_groups: BTreeMap<String, Vec<Arc<dyn Tool>>>,
}

/// The prefix of an entry in an agent's tool list that selects all tools of an MCP server:
/// `mcp:files`.
pub const MCP_PREFIX: &str = "mcp:";

impl Toolbox {
    /// A toolbox without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools of an agent without a pack: the [`BuiltinFunction`]s clock, echo, sleep, fail and
    /// burst.
    pub fn with_trial_tools(clock: Arc<dyn Clock>, id_generator: Arc<dyn IdGenerator>) -> Self {
        let functions = [
            BuiltinFunction::Clock,
            BuiltinFunction::Echo,
            BuiltinFunction::Sleep,
            BuiltinFunction::Fail,
            BuiltinFunction::Burst,
        ];
        let tool = |function| Arc::new(builtin(function, &clock, &id_generator)) as Arc<dyn Tool>;
        Self {
            tools: functions.map(tool).to_vec(),
            mcp_groups: BTreeMap::new(),
        }
    }

    /// Adds a tool; fails if its name is already used.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Result<Self, DuplicateToolName> {
        if self.get(tool.name()).is_some() {
            return Err(DuplicateToolName(tool.name().to_owned()));
        }
        self.tools.push(tool);
        Ok(self)
    }

    /// The tool named `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// The tools that `name` selects in an agent's tool list: the one of that name, or, for
    /// [`MCP_PREFIX`] and the name of an MCP server, all of that server. `None` if there is neither.
    pub fn tools_named(&self, name: &str) -> Option<Vec<Arc<dyn Tool>>> {
        let tool = self.get(name).map(|tool| vec![Arc::clone(tool)]);
        tool.or_else(|| self.mcp_groups.get(name).cloned())
    }

    /// Adds all tools of an MCP server under `group`. A tool whose name is already used is left out
    /// with a warning: the pack may define a tool of its own in its place.
    fn with_mcp_group(mut self, group: &str, tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut added = Vec::new();
        for tool in tools {
            let name = tool.name();
            if self.get(name).is_some() {
                tracing::warn!(
                    group,
                    tool = name,
                    "MCP tool left out: another tool has its name"
                );
                continue;
            }
            self.tools.push(Arc::clone(&tool));
            added.push(tool);
        }
        self.mcp_groups.insert(group.to_owned(), added);
        self
    }

    /// All tools in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}

/// Builds the tools of `pack` that `names` selects, in that order; a name is that of a tool, or
/// [`MCP_PREFIX`] and the name of an MCP server. Tools reach a data service only through the
/// [`Connector`] of `dependencies` (S2-053).
pub fn build_toolbox(
    pack: &Pack,
    names: &[String],
    dependencies: &ToolDependencies,
) -> Result<Toolbox, ToolBuildError> {
    let lists = shown_lists(pack, names);
    names.iter().try_fold(Toolbox::new(), |toolbox, name| {
        let error = |reason| ToolBuildError::Definition {
            tool: name.clone(),
            reason,
        };
        if let Some(server) = name.strip_prefix(MCP_PREFIX) {
            let tools = dependencies.mcp_toolset.all_tools(server).map_err(error)?;
            return Ok(toolbox.with_mcp_group(name, tools));
        }
        let def = pack.tool(name);
        let def = def.ok_or_else(|| ToolBuildError::Unknown(name.clone()))?;
        let tool = build_tool(def, &lists, dependencies).map_err(error)?;
        Ok(toolbox.with(tool)?)
    })
}

/// The types of data that an agent with the tools `names` can show as a list.
fn shown_lists<'a>(pack: &'a Pack, names: &[String]) -> Vec<&'a str> {
    let defs = names.iter().filter_map(|name| pack.tool(name));
    let types = defs.filter_map(|def| match &def.kind {
        ToolKind::Render {
            data_type,
            shape: RenderShape::List,
            ..
        } => Some(data_type.as_str()),
        _ => None,
    });
    types.collect()
}

/// Builds one tool from its definition; `lists` are the types of data that its agent can show as a
/// list. The error text names the cause and the correction.
fn build_tool(
    def: &ToolDef,
    lists: &[&str],
    dependencies: &ToolDependencies,
) -> Result<Arc<dyn Tool>, String> {
    let registry = &dependencies.connector.registry;
    let id_generator = &dependencies.id_generator;
    let keys = dependencies.keys.clone();
    let tool = match &def.kind {
        ToolKind::Ccs {
            enricher_id,
            domain_type,
        } => {
            let enricher = registry.get(domain_type, enricher_id);
            let missing = || format!("no enricher `{enricher_id}` returns `{domain_type}`");
            let enricher = enricher.ok_or_else(missing)?;
            let is_shown = lists.contains(&domain_type.as_str());
            let placeholder_ids = is_shown.then_some(id_generator);
            let connector = &dependencies.connector;
            EnricherTool::build(def, enricher, connector, placeholder_ids).checked()
        }
        ToolKind::Render {
            data_type,
            shape,
            model_items,
        } => {
            let enrichers = registry.of_domain(data_type);
            let shown = (data_type.as_str(), *shape, *model_items);
            let tool = RenderTool::build(def, shown, enrichers, id_generator);
            return Ok(Arc::new(tool.hiding(keys)));
        }
        ToolKind::Direct(function) => {
            let tool = builtin(*function, &dependencies.clock, id_generator);
            return Ok(Arc::new(tool.renamed(def).hiding(keys)));
        }
        ToolKind::Mcp { server, tool } => return dependencies.mcp_toolset.tool(def, server, tool),
        ToolKind::Http(http) => HttpTool::build(def, http, &dependencies.dialer, &keys)?.checked(),
        ToolKind::Process(process) => {
            ProcessTool::build(def, process, &dependencies.runner, &keys)?.checked()
        }
        ToolKind::Delegate { agent } => {
            let tool = DelegateTool::build(def, agent);
            tool.hiding(keys).checked()
        }
    };
    let tool = tool.map_err(|error| format!("its input_schema cannot be used: {error}"))?;
    Ok(Arc::new(tool))
}

#[cfg(test)]
mod tests;
