//! Asking the model until it answers: a call that failed before it said anything is tried again,
//! and after that another model is asked, if the turn has one.
//!
//! ```text
//! llm.call_started 1 ─ llm.call_failed ─ wait ─ llm.call_started 2 ─ llm.call_failed
//! route.decided (another model) ─ llm.call_started 3 ─ message.start …
//! ```
//! Between two tries nothing is open, so a turn that is stopped there is stopped at the seam. What
//! anyone has heard is never said again: a call that breaks after its first word has failed (D-45).

use tokio::time::{Instant, sleep};
use turnwire_event::Actor;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::port::Refusal;
use turnwire_model::{ModelError, Request};

use crate::model_call::call::{CallError, Heard, call};
use crate::model_call::retry_delay;
use crate::resources::agent_resources::{Desk, Who};
use crate::resources::model_choice::{Candidate, may_stand_in, word};
use crate::resources::turn_budget::Limit;

/// Why an agent goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The session takes no more of it, and ends it itself.
    Refused,
    /// Its model failed, and so did all that stand in for it.
    Model(LlmErrorClass),
    /// The turn may not use more.
    Limit(Limit),
}

impl From<Refusal> for Halt {
    fn from(_: Refusal) -> Self {
        Self::Refused
    }
}

impl From<Limit> for Halt {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// Asks the agent's model, and those that stand in for it; gives what was said. The request's
/// model and attempt are filled in here.
pub(crate) async fn ask(desk: &Desk<'_>, mut request: Request) -> Result<Heard, Halt> {
    let choice = &desk.means.choice;
    let mut candidate = choice.at(desk.standing);
    let mut tried = 0;
    request.attempt = 0;
    loop {
        desk.purse.check()?;
        tried += 1;
        request.attempt += 1;
        request.model.clone_from(&candidate.model);
        let error = match call(desk, &candidate.provider, request.clone()).await {
            Ok(heard) => return Ok(heard),
            Err(CallError::Refused) => return Err(Halt::Refused),
            Err(CallError::Spoken(error)) => return Err(Halt::Model(error.class)),
            Err(CallError::Silent(id, error)) => {
                let dice = retry_delay::dice(id);
                if pause(desk, candidate, error, tried, dice).await {
                    continue;
                }
                error
            }
        };
        let next = may_stand_in(error.class).then(|| choice.next(desk.standing));
        let Some(next) = next.flatten() else {
            return Err(Halt::Model(error.class));
        };
        take_over(desk, next, error.class).await?;
        candidate = next;
        tried = 0;
    }
}

/// Waits for the next try; says whether there is one. A wait that would not end before the turn
/// does is not begun: what is left of the time is better spent on saying so.
async fn pause(
    desk: &Desk<'_>,
    candidate: &Candidate,
    error: ModelError,
    tried: u32,
    dice: f64,
) -> bool {
    let Some(wait) = retry_delay::wait(candidate.retries, error.again, tried, dice) else {
        return false;
    };
    let now = Instant::now();
    if wait >= desk.until.saturating_duration_since(now) {
        return false;
    }
    let (model, class) = (candidate.model.as_str(), word(error.class));
    let wait_ms = wait.as_millis() as u64;
    tracing::warn!(model, class, tried, wait_ms, "a model call is tried again");
    sleep(wait).await;
    desk.meter.add(now.elapsed());
    true
}

/// Says that another model serves the turn from here on. Which one a sub-agent asks is seen in its
/// calls: the session's model is that of the agent that speaks.
async fn take_over(
    desk: &Desk<'_>,
    stand_in: &Candidate,
    class: LlmErrorClass,
) -> Result<(), Refusal> {
    let (model, class_word) = (stand_in.model.as_str(), word(class));
    tracing::warn!(model, class = class_word, "another model takes over");
    match desk.means.who {
        Who::Speaker | Who::Worker(_) => {
            let told = desk.means.choice.replaced(stand_in, class);
            desk.tell(Actor::SYSTEM, told).await.map(|_| ())
        }
        Who::Sub(_) => Ok(()),
    }
}
