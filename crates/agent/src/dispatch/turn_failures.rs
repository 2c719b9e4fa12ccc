//! What has failed in a turn so far, and what its end will be.
//!
//! A turn that asked one sub-agent and lost it ends with that (D-10): the failure is held until
//! the person has been told in words. As soon as the turn asks anyone else it is no longer what
//! the turn was about: it is told as an error that does not end the turn, and the turn ends
//! degraded.

use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::TurnStatus;
use turnwire_event::port::{Outcome, Refusal};
use turnwire_event::{Actor, Body};

use crate::dispatch::invocation_result::{Failed, Slot};
use crate::dispatch::turn_binding::Intent;
use crate::resources::agent_resources::Desk;

/// One failure, as operators count it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) error: TurnError,
    /// 1: a sub-agent. 2: a data service. 3: some of several.
    pub(crate) axis: u8,
    /// The sub-agent at fault; none where several are.
    pub(crate) sub_agent_id: Option<String>,
}

impl Failure {
    fn actor(&self) -> Actor {
        let id = self.sub_agent_id.as_deref();
        id.map_or(Actor::ORCHESTRATOR, Actor::subagent)
    }

    /// Tells it to clients and operators; the turn goes on.
    pub(crate) async fn report(&self, desk: &Desk<'_>) -> Result<(), Refusal> {
        let reported = Body::ErrorReported(self.error.clone());
        desk.tell(self.actor(), reported).await?;
        self.count(desk, Weight::Passing).await
    }

    async fn count(&self, desk: &Desk<'_>, weight: Weight) -> Result<(), Refusal> {
        let emit = ErrorEmit {
            sub_agent_id: self.sub_agent_id.clone(),
            axis: self.axis,
            is_final: weight == Weight::Final,
        };
        desk.tell(self.actor(), Body::AgentErrorEmit(emit)).await?;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Passing,
    Final,
}

/// What has failed in a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    /// What the turn will end with, first, and what came with it.
    held: Vec<Failure>,
    degraded: bool,
}

impl Failures {
    /// Something is missing from the answer.
    pub(crate) fn degrade(&mut self) {
        self.degraded = true;
    }

    /// What the failures of the sub-agent `id` mean for the turn: held if it is all the turn is
    /// about, told at once otherwise. Gives those that a fan-out must name.
    pub(crate) async fn take(
        &mut self,
        desk: &Desk<'_>,
        id: &str,
        failed: Failed,
        intent: Intent,
    ) -> Result<Vec<TurnError>, Refusal> {
        let on_axis = |axis: u8, error: TurnError| Failure {
            error,
            axis,
            sub_agent_id: Some(id.to_owned()),
        };
        let mut errors = failed.told;
        self.degraded |= !errors.is_empty();
        let kept = failed.kept.into_iter().map(|error| on_axis(2, error));
        if failed.slot == Slot::Short {
            // The first is what the rest followed from; clients that end at an error see one.
            self.held.extend(kept);
            return Ok(errors);
        }
        for failure in kept {
            self.degraded = true;
            failure.report(desk).await?;
        }
        if failed.slot == Slot::Filled {
            return Ok(Vec::new());
        }
        let failure = on_axis(1, TurnError::sub_agent(id));
        errors.push(failure.error.clone());
        match intent {
            Intent::Single => self.held.push(failure),
            Intent::Mixed => {
                self.degraded = true;
                failure.report(desk).await?;
            }
        }
        Ok(errors)
    }

    /// Tells what was held: the turn does not end with it any more.
    pub(crate) async fn release(&mut self, desk: &Desk<'_>) -> Result<(), Refusal> {
        for failure in std::mem::take(&mut self.held) {
            self.degraded = true;
            failure.report(desk).await?;
        }
        Ok(())
    }

    /// What the turn will end with, if it ends now.
    pub(crate) fn held(&self) -> Option<&TurnError> {
        self.held.first().map(|failure| &failure.error)
    }

    /// How a turn ends that has said all it had to say.
    pub(crate) async fn outcome(self, desk: &Desk<'_>) -> Result<Outcome, Refusal> {
        let mut held = self.held.into_iter();
        if let Some(failure) = held.next() {
            // Clients are told one; whoever counts, counts all.
            for other in held {
                other.count(desk, Weight::Passing).await?;
            }
            failure.count(desk, Weight::Final).await?;
            return Ok(Outcome {
                reason: None,
                status: TurnStatus::Failed,
                error: Some(failure.error),
            });
        }
        let status = if self.degraded {
            TurnStatus::Degraded
        } else {
            TurnStatus::Ok
        };
        Ok(Outcome {
            reason: None,
            status,
            error: None,
        })
    }
}
