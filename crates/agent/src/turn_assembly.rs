//! One turn that is ready to run: its versions, how much history it reads, and the work that
//! answers it.

use std::sync::Arc;

use turnwire_event::body::turn::{BoundVersions, TurnCompleted};
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::{EventEmitter, HistoryBudget, TurnContext, TurnOutcome, TurnWork};

use crate::dispatch::turn_binding::TurnBinding;
use crate::emitter::ambient;
use crate::emitter::output_recorder::OutputRecorder;
use crate::tool_call::worker_quota::WorkerQuota;
use crate::turn_loop::run_turn;

/// A turn that is ready to run. Together with an event gate it becomes the bound turn of a
/// producer.
pub struct TurnAssembly {
    /// The versions that the turn is bound to.
    pub versions: BoundVersions,
    /// How much of the session's history the turn reads.
    pub history: HistoryBudget,
    pub work: TurnWork,
}

/// The reason of a turn whose session has an agent that the pack does not have.
const UNKNOWN_AGENT: &str = TurnCompleted::UNKNOWN_AGENT;

impl TurnAssembly {
    /// A turn without an agent: it fails.
    pub(crate) fn without_agent(versions: BoundVersions, history: HistoryBudget) -> Self {
        let outcome = TurnOutcome {
            cancelled: None,
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

    pub(crate) fn new(versions: BoundVersions, binding: Arc<TurnBinding>) -> Self {
        Self {
            versions,
            history: binding.resources.options.history,
            work: Box::new(move |mut turn: TurnContext| {
                Box::pin(async move {
                    let output = Arc::new(OutputRecorder::new(turn.emitter));
                    turn.emitter = Arc::clone(&output) as Arc<dyn EventEmitter>;
                    let quota = WorkerQuota::new(turn.delegate, binding.workers_max);
                    turn.delegate = Arc::new(quota);
                    let emitter = Arc::clone(&turn.emitter);
                    ambient::scope(emitter, run_turn(&binding, turn, &output)).await
                })
            }),
        }
    }
}
