//! The agent without a pack: a model, a toolbox and its options, made once and shared by every
//! turn. It asks nobody.

use std::sync::Arc;

use turnwire_event::Mint;
use turnwire_event::body::turn::Versions;
use turnwire_event::port::{HistoryBudget, TurnInput};
use turnwire_model::Provider;
use turnwire_tool::Toolbox;

use crate::assembly::Assembly;
use crate::dispatch::turn_binding::Cast;
use crate::options::Options;
use crate::resources::agent_resources::{Means, Who, spec};
use crate::resources::model_choice::{Candidate, Choice};

/// The version of the agent that is built in: its loop, its prompt and its registry.
const BUILTIN: &str = "builtin-1";

/// An agent that answers turns.
#[derive(Clone)]
pub struct Agent {
    cast: Arc<Cast>,
}

impl Agent {
    /// An agent that asks `provider`, works with `toolbox`, and names things by `mint`.
    pub fn new(
        options: Options,
        provider: Arc<dyn Provider>,
        toolbox: Toolbox,
        mint: Arc<dyn Mint>,
    ) -> Self {
        let means = Means {
            who: Who::Speaker,
            choice: Choice::only(Candidate {
                model: options.model.clone(),
                provider,
                retries: options.retries,
            }),
            options,
            tools: toolbox.iter().map(spec).collect(),
            toolbox,
            asks: Vec::new(),
            mint,
        };
        Self {
            cast: Arc::new(Cast::alone(means, BUILTIN)),
        }
    }

    /// The most history any of its turns reads.
    pub fn history(&self) -> HistoryBudget {
        self.cast.means.options.history
    }

    /// Puts one turn together.
    pub fn assemble(&self, _: &TurnInput) -> Assembly {
        let versions = Versions {
            agent_definition: BUILTIN.to_owned(),
            registry: BUILTIN.to_owned(),
            prompt: BUILTIN.to_owned(),
            cohort: "default".to_owned(),
        };
        Assembly::new(versions, Arc::clone(&self.cast))
    }
}
