//! The set of tools of an agent, by name, in the order in which they were added, and the tools of a
//! pack made from their definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwire_dial::Dialer;
use turnwire_event::{Clock, IdGenerator};
use turnwire_pack::{BuiltinFunction, Pack, ToolDef, ToolKind};

use crate::builtin::{DelegateTool, RenderTool, builtin};
use crate::data_service::{Connector, EnricherTool};
use crate::http::HttpTool;
use crate::mcp::McpToolset;
use crate::program::ProcessTool;
use crate::program::runner::ProgramRunner;
use crate::tool::Tool;

/// Two tools have the same name; the model could not call the second one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool named `{0}`")]
pub struct DuplicateToolName(pub String);

/// Why a tool of a pack cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolBuildError {
    /// The pack does not define the tool.
    #[error("there is no tool named `{0}`")]
    Unknown(String),
    /// The name is used twice.
    #[error(transparent)]
    Duplicate(#[from] DuplicateToolName),
    /// The definition, its enricher, its schema or its MCP server cannot be used.
    #[error("tool `{tool}`: {reason}")]
    Definition {
        /// The name of the tool.
        tool: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl ToolBuildError {
    /// The name of the tool, or the name for all tools of an MCP server.
    pub fn tool(&self) -> &str {
        match self {
            Self::Unknown(tool)
            | Self::Duplicate(DuplicateToolName(tool))
            | Self::Definition { tool, .. } => tool,
        }
    }
}

/// What [`toolbox()`] makes tools with.
#[derive(Clone)]
pub struct ToolDependencies {
    /// Reaches the data services of [`ToolKind::Ccs`] tools.
    pub connector: Arc<Connector>,
    /// The clock of [`BuiltinFunction::Clock`].
    pub clock: Arc<dyn Clock>,
    /// Creates the ids of lists, messages and steps.
    pub mint: Arc<dyn IdGenerator>,
    /// Reaches the services of [`ToolKind::Http`] tools.
    pub dialer: Arc<Dialer>,
    /// Starts the programs of [`ToolKind::Process`] tools.
    pub runner: Arc<ProgramRunner>,
    /// The running MCP servers of the pack, for [`ToolKind::Mcp`] tools.
    pub servers: Arc<McpToolset>,
}

/// The [`Tool`]s of an agent.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// The tools of each name for many, such as `mcp:files`.
    groups: BTreeMap<String, Vec<Arc<dyn Tool>>>,
}

/// The prefix of the name for all tools of an MCP server; see [`Toolbox::named`].
pub const MCP_PREFIX: &str = "mcp:";

impl Toolbox {
    /// A toolbox without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The [`BuiltinFunction`]s for trials: clock, echo, sleep, fail, burst.
    pub fn trial(clock: Arc<dyn Clock>, mint: Arc<dyn IdGenerator>) -> Self {
        let functions = [
            BuiltinFunction::Clock,
            BuiltinFunction::Echo,
            BuiltinFunction::Sleep,
            BuiltinFunction::Fail,
            BuiltinFunction::Burst,
        ];
        let tool = |function| Arc::new(builtin(function, &clock, &mint)) as Arc<dyn Tool>;
        let (tools, groups) = (functions.map(tool).to_vec(), BTreeMap::new());
        Self { tools, groups }
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

    /// The tool named `name`, or the tools of the group `name`.
    pub fn named(&self, name: &str) -> Option<Vec<Arc<dyn Tool>>> {
        let tool = self.get(name).map(|tool| vec![Arc::clone(tool)]);
        tool.or_else(|| self.groups.get(name).cloned())
    }

    /// Adds the tools of a group. A tool whose name exists is left out: the pack defines a tool of
    /// its own for it.
    fn with_group(mut self, group: &str, tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut added = Vec::new();
        for tool in tools {
            let name = tool.name();
            if self.get(name).is_some() {
                tracing::warn!(
                    group,
                    tool = name,
                    "tool left out: its name is already used"
                );
                continue;
            }
            self.tools.push(Arc::clone(&tool));
            added.push(tool);
        }
        self.groups.insert(group.to_owned(), added);
        self
    }

    /// All tools in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}

/// Makes the tools of `pack` named `names`, in that order. Tools reach a data service only through
/// the [`Connector`] of `dependencies` (S2-053).
pub fn toolbox(
    pack: &Pack,
    names: &[String],
    dependencies: &ToolDependencies,
) -> Result<Toolbox, ToolBuildError> {
    names.iter().try_fold(Toolbox::new(), |toolbox, name| {
        let error = |reason| ToolBuildError::Definition {
            tool: name.clone(),
            reason,
        };
        if let Some(server) = name.strip_prefix(MCP_PREFIX) {
            let tools = dependencies.servers.all(server).map_err(error)?;
            return Ok(toolbox.with_group(name, tools));
        }
        let def = pack.tool(name);
        let def = def.ok_or_else(|| ToolBuildError::Unknown(name.clone()))?;
        Ok(toolbox.with(build(def, dependencies).map_err(error)?)?)
    })
}

/// Makes one tool of a pack. The error says what is wrong and what to do.
fn build(def: &ToolDef, dependencies: &ToolDependencies) -> Result<Arc<dyn Tool>, String> {
    let registry = &dependencies.connector.registry;
    let mint = &dependencies.mint;
    let tool = match &def.kind {
        ToolKind::Ccs {
            enricher_id,
            domain_type,
        } => {
            let enricher = registry.get(domain_type, enricher_id);
            let missing = || format!("no enricher `{enricher_id}` returns `{domain_type}`");
            let enricher = enricher.ok_or_else(missing)?;
            EnricherTool::build(def, enricher, &dependencies.connector).checked()
        }
        ToolKind::Render { data_type, shape } => {
            let enrichers = registry.of_domain(data_type);
            let tool = RenderTool::build(def, (data_type, *shape), enrichers, mint);
            return Ok(Arc::new(tool));
        }
        ToolKind::Direct(function) => {
            let tool = builtin(*function, &dependencies.clock, mint);
            return Ok(Arc::new(tool.renamed(def)));
        }
        ToolKind::Mcp { server, tool } => return dependencies.servers.tool(def, server, tool),
        ToolKind::Http(http) => HttpTool::build(def, http, &dependencies.dialer)?.checked(),
        ToolKind::Process(process) => {
            ProcessTool::build(def, process, &dependencies.runner)?.checked()
        }
        ToolKind::Delegate { agent } => DelegateTool::build(def, agent).checked(),
    };
    let tool = tool.map_err(|error| format!("its input_schema cannot be used: {error}"))?;
    Ok(Arc::new(tool))
}

#[cfg(test)]
mod tests;
