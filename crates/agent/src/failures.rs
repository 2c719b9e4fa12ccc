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

use crate::means::Desk;

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
    held: Option<Failure>,
    degraded: bool,
}

impl Failures {
    /// Keeps one that the turn will end with, unless something else comes.
    pub(crate) fn hold(&mut self, failure: Failure) {
        self.held = Some(failure);
    }

    /// Something is missing from the answer.
    pub(crate) fn degrade(&mut self) {
        self.degraded = true;
    }

    /// Tells what was held: the turn does not end with it any more.
    pub(crate) async fn release(&mut self, desk: &Desk<'_>) -> Result<(), Refusal> {
        if let Some(failure) = self.held.take() {
            self.degraded = true;
            failure.report(desk).await?;
        }
        Ok(())
    }

    /// What the turn will end with, if it ends now.
    pub(crate) fn held(&self) -> Option<&TurnError> {
        self.held.as_ref().map(|failure| &failure.error)
    }

    /// How a turn ends that has said all it had to say.
    pub(crate) async fn outcome(self, desk: &Desk<'_>) -> Result<Outcome, Refusal> {
        if let Some(failure) = self.held {
            failure.count(desk, Weight::Final).await?;
            return Ok(Outcome {
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
            status,
            error: None,
        })
    }
}
