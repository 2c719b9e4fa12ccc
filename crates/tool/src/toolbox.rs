//! The tools an agent works with: a set, by name, in the order they were put in.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwire_dial::Dialer;
use turnwire_event::{Clock, Mint};
use turnwire_pack::{BuiltinFunction, Pack, ToolDef, ToolKind};

use crate::ccs::Ccs;
use crate::checked::Checked;
use crate::connector::Connector;
use crate::delegate::Delegate;
use crate::http::Http;
use crate::mcp::Listed;
use crate::platform::{EmitStatus, Feedback, Named};
use crate::process::Process;
use crate::render::Render;
use crate::tool::Tool;
use crate::trial;
use crate::trial::{Burst, ClockTool, Echo, Fail, Sleep};
use crate::workshop::Workshop;

/// Two tools of one name; the model could not tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool named `{0}`")]
pub struct NameTaken(pub String);

/// A tool that a pack names cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTool {
    /// The pack has none of that name.
    #[error("there is no tool named `{0}`")]
    Unknown(String),
    /// It is named twice.
    #[error(transparent)]
    Twice(#[from] NameTaken),
    /// Its enricher is not registered.
    #[error("tool `{tool}`: no enricher `{enricher_id}` gives `{domain_type}`")]
    Enricher {
        /// Which tool.
        tool: String,
        /// What it asks.
        enricher_id: String,
        /// For which type.
        domain_type: String,
    },
    /// It cannot be made.
    #[error("tool `{tool}`: {why}")]
    Unmade {
        /// Which tool.
        tool: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// Its program is not there, or is none.
    #[error("tool `{tool}`: {why}")]
    Program {
        /// Which tool.
        tool: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// Its input schema is none.
    #[error("tool `{tool}`: its input_schema cannot be used: {why}")]
    Schema {
        /// Which tool.
        tool: String,
        /// What is wrong with it.
        why: String,
    },
}

impl BadTool {
    /// Which tool, or which word for all tools of a server.
    pub fn tool(&self) -> &str {
        match self {
            Self::Unknown(tool) | Self::Twice(NameTaken(tool)) => tool,
            Self::Enricher { tool, .. }
            | Self::Unmade { tool, .. }
            | Self::Program { tool, .. }
            | Self::Schema { tool, .. } => tool,
        }
    }
}

/// What tools are made with.
#[derive(Clone)]
pub struct Kit {
    /// The way to data services.
    pub connector: Arc<Connector>,
    /// What the time is.
    pub clock: Arc<dyn Clock>,
    /// What names things.
    pub mint: Arc<dyn Mint>,
    /// The way to all other services.
    pub dialer: Arc<Dialer>,
    /// Where programs run.
    pub workshop: Arc<Workshop>,
    /// The tool servers of the pack.
    pub servers: Arc<Listed>,
}

/// A named set of tools.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// What a word that stands for many tools stands for.
    words: BTreeMap<String, Vec<Arc<dyn Tool>>>,
}

/// What stands before the name of a tool server in the word for all its tools.
pub const ALL_OF: &str = "mcp:";

impl Toolbox {
    /// A box with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The in-process tools for trying: clock, echo, sleep, fail, burst.
    pub fn trial(clock: Arc<dyn Clock>, mint: Arc<dyn Mint>) -> Self {
        Self {
            tools: trial::tools(clock, mint),
            words: BTreeMap::new(),
        }
    }

    /// The box with one more tool.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Result<Self, NameTaken> {
        if self.get(tool.name()).is_some() {
            return Err(NameTaken(tool.name().to_owned()));
        }
        self.tools.push(tool);
        Ok(self)
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// What `name` stands for: the tool of that name, or the tools of a word for many. None if
    /// there is nothing of that name.
    pub fn named(&self, name: &str) -> Option<Vec<Arc<dyn Tool>>> {
        let one = self.get(name).map(|tool| vec![Arc::clone(tool)]);
        one.or_else(|| self.words.get(name).cloned())
    }

    /// The box with all tools that `word` stands for. One whose name is taken is left out: the
    /// pack has a tool of its own in its place.
    fn with_word(mut self, word: &str, tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut kept = Vec::new();
        for tool in tools {
            if self.get(tool.name()).is_some() {
                tracing::warn!(
                    word,
                    tool = tool.name(),
                    "a tool's name is taken; it is left out"
                );
                continue;
            }
            self.tools.push(Arc::clone(&tool));
            kept.push(tool);
        }
        self.words.insert(word.to_owned(), kept);
        self
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}

/// The tools of `pack` that are named, in that order. Tools that ask a data service do it through
/// `connector` and have no other way (S2-053).
pub fn toolbox(pack: &Pack, names: &[String], kit: &Kit) -> Result<Toolbox, BadTool> {
    names.iter().try_fold(Toolbox::new(), |toolbox, name| {
        if let Some(server) = name.strip_prefix(ALL_OF) {
            let tools = kit.servers.all(server).map_err(|why| BadTool::Unmade {
                tool: name.clone(),
                why,
            })?;
            return Ok(toolbox.with_word(name, tools));
        }
        let def = pack.tool(name);
        let def = def.ok_or_else(|| BadTool::Unknown(name.clone()))?;
        Ok(toolbox.with(make(def, kit)?)?)
    })
}

/// One tool of a pack.
pub(crate) fn make(def: &ToolDef, kit: &Kit) -> Result<Arc<dyn Tool>, BadTool> {
    let Kit {
        connector,
        clock,
        mint,
        dialer,
        workshop,
        servers,
    } = kit;
    match &def.kind {
        ToolKind::Ccs {
            enricher_id,
            domain_type,
        } => {
            let typed = connector.typed(domain_type, enricher_id);
            let typed = typed.ok_or_else(|| BadTool::Enricher {
                tool: def.name.clone(),
                enricher_id: enricher_id.clone(),
                domain_type: domain_type.clone(),
            })?;
            let ccs = Ccs::new(def, typed, connector).map_err(|why| BadTool::Schema {
                tool: def.name.clone(),
                why: why.0,
            })?;
            Ok(Arc::new(ccs))
        }
        ToolKind::Render { data_type, shape } => {
            let typed = connector.of_domain(data_type);
            Ok(Arc::new(Render::new(def, (data_type, *shape), typed, mint)))
        }
        ToolKind::Direct(function) => {
            let inner: Arc<dyn Tool> = match function {
                BuiltinFunction::Clock => Arc::new(ClockTool::new(Arc::clone(clock))),
                BuiltinFunction::Echo => Arc::new(Echo),
                BuiltinFunction::Sleep => Arc::new(Sleep),
                BuiltinFunction::Fail => Arc::new(Fail),
                BuiltinFunction::Burst => Arc::new(Burst::new(Arc::clone(mint))),
                BuiltinFunction::EmitStatus => Arc::new(EmitStatus),
                BuiltinFunction::LlmFeedback => Arc::new(Feedback),
            };
            Ok(Arc::new(Named::new(def, inner)))
        }
        ToolKind::Http(http) => {
            let tool = Http::new(def, http, dialer).map_err(|why| BadTool::Unmade {
                tool: def.name.clone(),
                why,
            })?;
            checked(def, Arc::new(tool))
        }
        ToolKind::Process(process) => {
            let tool = Process::new(def, process, workshop).map_err(|why| BadTool::Program {
                tool: def.name.clone(),
                why: why.to_string(),
            })?;
            checked(def, Arc::new(tool))
        }
        ToolKind::Mcp { server, tool } => {
            // It checks its input itself: the schema is the server's.
            let made = servers.tool(def, server, tool);
            made.map_err(|why| BadTool::Unmade {
                tool: def.name.clone(),
                why,
            })
        }
        ToolKind::Delegate { agent } => checked(def, Arc::new(Delegate::new(def, agent))),
    }
}

/// `tool` behind the check of its input.
fn checked(def: &ToolDef, tool: Arc<dyn Tool>) -> Result<Arc<dyn Tool>, BadTool> {
    let checked = Checked::new(tool).map_err(|why| BadTool::Schema {
        tool: def.name.clone(),
        why: why.0,
    })?;
    Ok(Arc::new(checked))
}

#[cfg(test)]
mod tests;
