//! One turn, put together: what it is bound to, how much past it reads, and what answers it.

use std::sync::Arc;

use turnwire_event::body::turn::Versions;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::{Emitter, HistoryBudget, Outcome, TurnContext, Work};

use crate::dispatch::turn_binding::Cast;
use crate::emitter::ambient;
use crate::emitter::output_recorder::Witness;
use crate::tool_call::turn_workers::Crew;
use crate::turn_loop;

/// A turn that is ready to be answered. With a gate it is what a producer binds.
pub struct Assembly {
    /// What it is bound to.
    pub versions: Versions,
    /// How much of the session's past it is shown.
    pub history: HistoryBudget,
    /// What answers it.
    pub work: Work,
}

/// Why a turn fails whose session has an agent that the pack does not have.
const UNKNOWN_AGENT: &str = "unknown_agent";

impl Assembly {
    /// A turn that nobody can answer: it fails.
    pub(crate) fn nobody(versions: Versions, history: HistoryBudget) -> Self {
        let outcome = Outcome {
            status: TurnStatus::Failed,
            error: Some(ErrorCode::InternalError.into()),
            reason: Some(UNKNOWN_AGENT.to_owned()),
        };
        Self {
            versions,
            history,
            work: Box::new(|_| Box::pin(std::future::ready(outcome))),
        }
    }

    pub(crate) fn new(versions: Versions, cast: Arc<Cast>) -> Self {
        Self {
            versions,
            history: cast.means.options.history,
            work: Box::new(move |mut turn: TurnContext| {
                Box::pin(async move {
                    let witness = Arc::new(Witness::new(turn.emitter));
                    turn.emitter = Arc::clone(&witness) as Arc<dyn Emitter>;
                    turn.delegate = Arc::new(Crew::new(turn.delegate, cast.workers_max));
                    let emitter = Arc::clone(&turn.emitter);
                    ambient::scope(emitter, turn_loop::run(&cast, turn, &witness)).await
                })
            }),
        }
    }
}
