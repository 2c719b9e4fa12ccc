//! The agent: a model, a toolbox and its options, made once and shared by every turn.

use std::sync::Arc;

use turnwire_event::Mint;
use turnwire_event::body::turn::Versions;
use turnwire_event::port::{BoxFuture, HistoryBudget, Outcome, Producer, TurnContext};
use turnwire_model::{Provider, ToolSpec};
use turnwire_tool::Toolbox;

use crate::call::Means;
use crate::options::Options;
use crate::turn;
use crate::writer;

/// The version of the agent that is built in: its loop, its prompt and its registry.
const BUILTIN: &str = "builtin-1";

/// An agent that answers turns.
#[derive(Clone)]
pub struct Agent {
    means: Arc<Means>,
    tools: Arc<[ToolSpec]>,
}

impl Agent {
    /// An agent that asks `provider`, works with `toolbox`, and names things by `mint`.
    pub fn new(
        options: Options,
        provider: Arc<dyn Provider>,
        toolbox: Toolbox,
        mint: Arc<dyn Mint>,
    ) -> Self {
        let spec = |tool: &Arc<dyn turnwire_tool::Tool>| ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            input_schema: tool.input_schema(),
        };
        Self {
            tools: toolbox.iter().map(spec).collect(),
            means: Arc::new(Means {
                options,
                provider,
                toolbox,
                mint,
            }),
        }
    }
}

impl Producer for Agent {
    fn versions(&self) -> Versions {
        Versions {
            agent_definition: BUILTIN.to_owned(),
            registry: BUILTIN.to_owned(),
            prompt: BUILTIN.to_owned(),
            cohort: "default".to_owned(),
        }
    }

    fn history(&self) -> HistoryBudget {
        self.means.options.history
    }

    fn run(&self, turn: TurnContext) -> BoxFuture<'static, Outcome> {
        let means = Arc::clone(&self.means);
        let tools = Arc::clone(&self.tools);
        Box::pin(async move {
            let emitter = Arc::clone(&turn.emitter);
            writer::scope(emitter, turn::run(&means, tools, turn)).await
        })
    }
}
