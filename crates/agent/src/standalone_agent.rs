//! An agent without a pack: a model, a toolbox and options, created once and shared by every turn.
//! It has no sub-agents.

use std::sync::Arc;

use turnwire_event::IdGenerator;
use turnwire_event::body::turn::BoundVersions;
use turnwire_event::port::{HistoryBudget, TurnInput};
use turnwire_model::ModelProvider;
use turnwire_tool::Toolbox;

use crate::dispatch::turn_binding::TurnBinding;
use crate::options::AgentOptions;
use crate::resources::agent_resources::{AgentResources, tool_spec};
use crate::resources::agent_role::AgentRole;
use crate::resources::model_choice::{ModelCandidate, ModelChoice};
use crate::turn_assembly::TurnAssembly;

/// The version of the built-in agent: its loop, its prompt and its registry.
const BUILTIN_VERSION: &str = "builtin-1";

/// An agent that answers turns without a pack; [`Self::assemble`] binds one turn.
#[derive(Clone)]
pub struct StandaloneAgent {
    binding: Arc<TurnBinding>,
}

impl StandaloneAgent {
    /// An agent that calls `provider`, runs the tools of `toolbox`, and creates ids with
    /// `id_generator`.
    pub fn new(
        options: AgentOptions,
        provider: Arc<dyn ModelProvider>,
        toolbox: Toolbox,
        id_generator: Arc<dyn IdGenerator>,
    ) -> Self {
        let resources = AgentResources {
            role: AgentRole::Orchestrator,
            models: ModelChoice::only(ModelCandidate {
                model: options.model.clone(),
                provider,
                retries: options.retries,
            }),
            options,
            tool_specs: toolbox.iter().map(tool_spec).collect(),
            toolbox,
            sub_agent_tools: Vec::new(),
            id_generator,
        };
        Self {
            binding: Arc::new(TurnBinding::standalone(resources, BUILTIN_VERSION)),
        }
    }

    /// The most history that a turn reads.
    pub fn history(&self) -> HistoryBudget {
        self.binding.resources.options.history
    }

    /// The [`TurnAssembly`] of one turn.
    pub fn assemble(&self, _: &TurnInput) -> TurnAssembly {
        let versions = BoundVersions {
            agent_definition: BUILTIN_VERSION.to_owned(),
            registry: BUILTIN_VERSION.to_owned(),
            prompt: BUILTIN_VERSION.to_owned(),
            cohort: "default".to_owned(),
        };
        TurnAssembly::new(versions, Arc::clone(&self.binding))
    }
}
