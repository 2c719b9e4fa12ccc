//! What a turn is bound to: who speaks, whom it may ask, and the rules of their work. Made before
//! the first model call; whatever changes in the meantime, the turn keeps this (S2-001).

use std::sync::Arc;
use std::time::Duration;

use crate::dispatch::sub_agent::Member;
use crate::prompt::failure_text::Templates;
use crate::resources::agent_resources::Means;

/// What a data service's failure is to the only sub-agent of a turn (S1-102).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis2 {
    /// Something that is told, and passes.
    Passing,
    /// The end of the turn.
    Terminal,
}

/// How much a turn is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// One sub-agent.
    Single,
    /// More than one, at once or one after the other.
    Mixed,
}

/// Everything a turn is bound to.
pub(crate) struct Cast {
    /// Who speaks.
    pub(crate) means: Arc<Means>,
    /// The version of its definition.
    pub(crate) definition: String,
    /// Whom it may ask.
    pub(crate) members: Vec<Arc<Member>>,
    /// How many at once.
    pub(crate) cap: usize,
    /// How many workers the turn may have.
    pub(crate) workers_max: u32,
    /// How long a sub-agent may be silent.
    pub(crate) watchdog: Duration,
    /// Characters that a sub-agent is told of what went before.
    pub(crate) prior_context_chars: usize,
    pub(crate) axis2: Axis2,
    /// What is said when the model that speaks fails; an agent without a pack says nothing then.
    pub(crate) templates: Option<Templates>,
}

impl Cast {
    /// One agent that speaks and asks nobody.
    pub(crate) fn alone(means: Means, definition: &str) -> Self {
        Self {
            means: Arc::new(means),
            definition: definition.to_owned(),
            members: Vec::new(),
            cap: 0,
            workers_max: 0,
            watchdog: Duration::ZERO,
            prior_context_chars: 0,
            axis2: Axis2::Passing,
            templates: None,
        }
    }
}
