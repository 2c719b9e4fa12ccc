//! The failures of a turn so far, and how the turn will end with them.
//!
//! A turn that called one sub-agent and lost it ends with that failure (D-10): the failure is
//! pending until the user has been told in text. As soon as the turn calls another sub-agent, the
//! failure is reported as an error that does not end the turn, and the turn ends degraded.

use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::TurnStatus;
use turnwire_event::port::TurnOutcome;
use turnwire_event::{Actor, Body};

use super::invocation_result::{InvocationOutcome, InvocationStatus};
use super::turn_binding::DispatchIntent;
use crate::resources::agent_context::{AgentContext, EmitResult};

/// One failure, with the labels that metrics count it by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisFailure {
    pub(crate) error: TurnError,
    /// 1: a sub-agent. 2: a data service. 3: some of several sub-agents.
    pub(crate) axis: u8,
    /// The sub-agent that failed; `None` for axis 3.
    pub(crate) sub_agent_id: Option<String>,
}

impl AxisFailure {
    fn actor(&self) -> Actor {
        let id = self.sub_agent_id.as_deref();
        id.map_or(Actor::ORCHESTRATOR, Actor::subagent)
    }

    /// Reports the failure to clients and operators; the turn goes on.
    pub(crate) async fn report(&self, context: &AgentContext<'_>) -> EmitResult {
        let reported = Body::ErrorReported(self.error.clone());
        context.emit(self.actor(), reported).await?;
        self.count(context, Finality::TurnContinues).await
    }

    async fn count(&self, context: &AgentContext<'_>, finality: Finality) -> EmitResult {
        let counted = Body::AgentErrorEmit(ErrorEmit {
            sub_agent_id: self.sub_agent_id.clone(),
            axis: self.axis,
            is_final: finality == Finality::TurnEnds,
        });
        context.emit(self.actor(), counted).await
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finality {
    TurnContinues,
    TurnEnds,
}

/// The [`AxisFailure`]s of a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnFailures {
    /// The failure that the turn will end with, then those that came with it.
    pending: Vec<AxisFailure>,
    is_degraded: bool,
}

impl TurnFailures {
    /// Marks the answer as incomplete.
    pub(crate) fn degrade(&mut self) {
        self.is_degraded = true;
    }

    /// Adds the failures in the [`InvocationOutcome`] of the sub-agent `id`: pending if the turn is
    /// about this sub-agent alone, reported at once otherwise. Returns the errors that the end of a
    /// fan-out must list.
    pub(crate) async fn add(
        &mut self,
        context: &AgentContext<'_>,
        id: &str,
        outcome: InvocationOutcome,
        intent: DispatchIntent,
    ) -> EmitResult<Vec<TurnError>> {
        let on_axis = |axis: u8, error: TurnError| AxisFailure {
            error,
            axis,
            sub_agent_id: Some(id.to_owned()),
        };
        let mut errors = outcome.reported_errors;
        self.is_degraded |= !errors.is_empty();
        let deferred = outcome.deferred_errors.into_iter();
        let deferred = deferred.map(|error| on_axis(2, error));
        if outcome.status == InvocationStatus::Incomplete {
            // The first caused the others; clients that stop at an error see only one.
            self.pending.extend(deferred);
            return Ok(errors);
        }
        for failure in deferred {
            self.is_degraded = true;
            failure.report(context).await?;
        }
        if outcome.status == InvocationStatus::Complete {
            return Ok(Vec::new());
        }
        let failure = on_axis(1, TurnError::sub_agent(id));
        errors.push(failure.error.clone());
        match intent {
            DispatchIntent::Single => self.pending.push(failure),
            DispatchIntent::Mixed => {
                self.is_degraded = true;
                failure.report(context).await?;
            }
        }
        Ok(errors)
    }

    /// Reports the pending failures: the turn no longer ends with them.
    pub(crate) async fn report_pending(&mut self, context: &AgentContext<'_>) -> EmitResult {
        for failure in std::mem::take(&mut self.pending) {
            self.is_degraded = true;
            failure.report(context).await?;
        }
        Ok(())
    }

    /// The error that the turn will end with, if it ends now.
    pub(crate) fn pending_error(&self) -> Option<&TurnError> {
        self.pending.first().map(|failure| &failure.error)
    }

    /// The [`TurnOutcome`] of a turn that has answered.
    pub(crate) async fn into_outcome(self, context: &AgentContext<'_>) -> EmitResult<TurnOutcome> {
        let mut pending = self.pending.into_iter();
        let first = pending.next();
        // Clients are sent the first; metrics count all.
        for other in pending {
            other.count(context, Finality::TurnContinues).await?;
        }
        if let Some(failure) = &first {
            failure.count(context, Finality::TurnEnds).await?;
        }
        Ok(TurnOutcome {
            cancelled: None,
            status: match (&first, self.is_degraded) {
                (Some(_), _) => TurnStatus::Failed,
                (None, true) => TurnStatus::Degraded,
                (None, false) => TurnStatus::Ok,
            },
            error: first.map(|failure| failure.error),
            reason: None,
        })
    }
}
