//! A model call with retries and fallbacks: a call that fails before its first output is retried
//! with the same model, and then with the agent's next fallback model.
//!
//! ```text
//! llm.call_started 1 ─ llm.call_failed ─ delay ─ llm.call_started 2 ─ llm.call_failed
//! route.decided (another model) ─ llm.call_started 3 ─ message.start …
//! ```
//! Between two attempts no call is open, so a cancel there has no call to end. A call that fails
//! after its first output is not retried, so no output is repeated (D-45).

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

/// The error of [`call_with_fallbacks`]: why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallHalt {
    /// The session accepts no more events of the turn, and ends it.
    Refused,
    /// The last call failed, and no retry or fallback is allowed for it or left.
    Model(LlmErrorClass),
    /// The [`TurnBudget`](crate::resources::turn_budget::TurnBudget) allows no further call.
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

/// Calls the agent's model, then its fallbacks, until one returns a [`ModelReply`]. Sets
/// `request.model`, and numbers the calls of all models in `request.attempt`.
pub(crate) async fn call_with_fallbacks(
    context: &AgentContext<'_>,
    mut request: ModelRequest,
) -> Result<ModelReply, CallHalt> {
    let models = &context.resources.models;
    let mut candidate = models.current(context.candidate_cursor);
    let mut candidate_attempts = 0;
    request.attempt = 0;
    loop {
        context.budget.check()?;
        candidate_attempts += 1;
        request.attempt += 1;
        request.model.clone_from(&candidate.model);
        let error = match call_model(context, &candidate.provider, request.clone()).await {
            Ok(reply) => return Ok(reply),
            Err(CallError::Refused) => return Err(CallHalt::Refused),
            Err(CallError::AfterOutput(error)) => return Err(CallHalt::Model(error.class)),
            Err(CallError::BeforeOutput(id, error)) => {
                let attempts = candidate_attempts;
                if wait_for_retry(context, candidate, &error, attempts, jitter(id)).await {
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
        candidate_attempts = 0;
    }
}

/// Waits before the next call of `candidate`, which was called `attempts` times. Returns false at
/// once if it may not be called again, or if the delay ends after the agent's deadline: the
/// remaining time is for a fallback, or for the answer about the failure.
async fn wait_for_retry(
    context: &AgentContext<'_>,
    candidate: &ModelCandidate,
    error: &ModelError,
    attempts: u32,
    jitter: f64,
) -> bool {
    let Some(delay) = retry_delay(candidate.retries, error.retry, attempts, jitter) else {
        return false;
    };
    let wait_start = Instant::now();
    if delay >= context.deadline.saturating_duration_since(wait_start) {
        return false;
    }
    let (model, class) = (candidate.model.as_str(), class_name(error.class));
    let delay_ms = delay.as_millis() as u64;
    tracing::warn!(model, class, attempts, delay_ms, "retrying a model call");
    sleep(delay).await;
    context.wait_meter.add(wait_start.elapsed());
    true
}

/// Logs the change to a fallback, and emits `route.decided` with it. A sub-agent emits nothing: its
/// calls show its model, and `route.decided` sets the model of the session, which is the
/// orchestrator's.
async fn announce_fallback(
    context: &AgentContext<'_>,
    fallback: &ModelCandidate,
    class: LlmErrorClass,
) -> EmitResult {
    let (model, class_text) = (fallback.model.as_str(), class_name(class));
    tracing::warn!(model, class = class_text, "falling back to another model");
    match context.resources.role {
        AgentRole::Orchestrator | AgentRole::Worker(_) => {
            let event = context.resources.models.fallback_event(fallback, class);
            context.emit(Actor::SYSTEM, event).await
        }
        AgentRole::SubAgent(_) => Ok(()),
    }
}
