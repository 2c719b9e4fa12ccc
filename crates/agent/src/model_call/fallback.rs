//! A model call with retries and fallbacks: a call that failed before its first output is attempted
//! again, and then the next model of the turn is called.
//!
//! ```text
//! llm.call_started 1 ─ llm.call_failed ─ delay ─ llm.call_started 2 ─ llm.call_failed
//! route.decided (another model) ─ llm.call_started 3 ─ message.start …
//! ```
//! Between two attempts nothing is open, so a turn that is cancelled there has nothing to close.
//! Output is never repeated: a call that breaks after its first output has failed (D-45).

use tokio::time::{Instant, sleep};
use turnwire_event::Actor;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::port::EmitRefusal;
use turnwire_model::{ModelError, ModelRequest};

use super::retry_delay::{jitter, retry_delay};
use super::single_call::{CallError, ModelReply, call_model};
use crate::resources::agent_context::{AgentContext, EmitResult};
use crate::resources::agent_role::AgentRole;
use crate::resources::model_choice::{ModelCandidate, allows_fallback, class_name};
use crate::resources::turn_budget::BudgetLimit;

/// Why [`call_with_fallbacks`] returned no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallHalt {
    /// The session accepts no more events of the turn, and ends it.
    Refused,
    /// The model failed, and so did all of its fallbacks.
    Model(LlmErrorClass),
    /// A bound of the turn is reached.
    Limit(BudgetLimit),
}

impl From<EmitRefusal> for CallHalt {
    fn from(_: EmitRefusal) -> Self {
        Self::Refused
    }
}

impl From<BudgetLimit> for CallHalt {
    fn from(limit: BudgetLimit) -> Self {
        Self::Limit(limit)
    }
}

/// Calls the agent's model, then its fallbacks, until one returns a [`ModelReply`]. Sets the model
/// and the attempt of the [`ModelRequest`].
pub(crate) async fn call_with_fallbacks(
    context: &AgentContext<'_>,
    mut request: ModelRequest,
) -> Result<ModelReply, CallHalt> {
    let models = &context.resources.models;
    let mut candidate = models.current(context.candidate_cursor);
    let mut attempts = 0;
    request.attempt = 0;
    loop {
        context.budget.check()?;
        attempts += 1;
        request.attempt += 1;
        request.model.clone_from(&candidate.model);
        let error = match call_model(context, &candidate.provider, request.clone()).await {
            Ok(reply) => return Ok(reply),
            Err(CallError::Refused) => return Err(CallHalt::Refused),
            Err(CallError::AfterOutput(error)) => return Err(CallHalt::Model(error.class)),
            Err(CallError::BeforeOutput(id, error)) => {
                if wait_for_retry(context, candidate, error, attempts, jitter(id)).await {
                    continue;
                }
                error
            }
        };
        let next = allows_fallback(error.class).then(|| models.advance(context.candidate_cursor));
        let Some(next) = next.flatten() else {
            return Err(CallHalt::Model(error.class));
        };
        announce_fallback(context, next, error.class).await?;
        candidate = next;
        attempts = 0;
    }
}

/// Waits for the next attempt; false if there is none. A delay that would outlast the turn is not
/// started: the remaining time is better spent on telling the user.
async fn wait_for_retry(
    context: &AgentContext<'_>,
    candidate: &ModelCandidate,
    error: ModelError,
    attempts: u32,
    jitter: f64,
) -> bool {
    let Some(delay) = retry_delay(candidate.retries, error.retry, attempts, jitter) else {
        return false;
    };
    let now = Instant::now();
    if delay >= context.deadline.saturating_duration_since(now) {
        return false;
    }
    let (model, class) = (candidate.model.as_str(), class_name(error.class));
    let delay_ms = delay.as_millis() as u64;
    tracing::warn!(model, class, attempts, delay_ms, "retrying a model call");
    sleep(delay).await;
    context.wait_meter.add(now.elapsed());
    true
}

/// Emits that a fallback [`ModelCandidate`] serves the turn from here on. A sub-agent emits
/// nothing: its model is seen in its calls, and the model of the session is that of the
/// orchestrator.
async fn announce_fallback(
    context: &AgentContext<'_>,
    fallback: &ModelCandidate,
    class: LlmErrorClass,
) -> EmitResult {
    let (model, error) = (fallback.model.as_str(), class_name(class));
    tracing::warn!(model, class = error, "falling back to another model");
    match context.resources.role {
        AgentRole::Orchestrator | AgentRole::Worker(_) => {
            let event = context.resources.models.fallback_event(fallback, class);
            context.emit(Actor::SYSTEM, event).await
        }
        AgentRole::SubAgent(_) => Ok(()),
    }
}
