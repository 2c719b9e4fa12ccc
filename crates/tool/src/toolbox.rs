//! The tools an agent works with: a set, by name, in the order they were put in.

use std::sync::Arc;

use turnwire_event::{Clock, Mint};

use crate::tool::Tool;
use crate::trial;

/// Two tools of one name; the model could not tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool named `{0}`")]
pub struct NameTaken(pub String);

/// A named set of tools.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
}

impl Toolbox {
    /// A box with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The in-process tools for trying: clock, echo, sleep, fail, burst.
    pub fn trial(clock: Arc<dyn Clock>, mint: Arc<dyn Mint>) -> Self {
        Self {
            tools: trial::tools(clock, mint),
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

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}
