//! What is counted of turns: how they end, and how what they dispatched did (S2-067 to S2-073).
//! Counted once, when the event that says it has its place.

use serde::Serialize;
use turnwire_event::body::dispatch::Traced;
use turnwire_event::body::plan::StepCompleted;
use turnwire_event::code::{CapBehavior, SlotStatus, StepStatus};
use turnwire_event::{Body, metric};

/// A code as it is written.
fn word(code: impl Serialize) -> String {
    let value = serde_json::to_value(code).ok();
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Counts an event, if it is one that is counted. `definition` is the version of the agent's.
pub(crate) fn count(body: &Body, definition: &str) {
    match body {
        Body::TurnCancelled(end) => {
            metrics::counter!(metric::TURN_CANCELLED_TOTAL, "phase" => word(end.phase))
                .increment(1);
            // Whether anyone is there to read the frame or not (S1-105, S1-131).
            let mut labels = metric::dimensions(definition).to_vec();
            labels.push(("code", word(end.code)));
            metrics::counter!(metric::STREAM_CANCELLATION_TOTAL, &labels).increment(1);
        }
        Body::TurnCompleted(end) => {
            metrics::counter!(metric::TURN_COMPLETED_TOTAL, "status" => word(end.status))
                .increment(1);
        }
        Body::SubagentCompleted(end) => {
            let labels = metric::dimensions_of(definition, "", &end.sub_agent_id);
            count_agent(&labels, end.latency_ms, end.status_events);
        }
        Body::SubagentFailed(end) => {
            let labels = metric::dimensions_of(definition, "", &end.sub_agent_id);
            count_agent(&labels, end.latency_ms, end.status_events);
        }
        Body::AgentErrorEmit(error) => {
            let agent = error.sub_agent_id.as_deref().unwrap_or_default();
            let mut labels = metric::dimensions_of(definition, "", agent).to_vec();
            labels.push(("axis", error.axis.to_string()));
            metrics::counter!(metric::DISPATCH_AXIS_FAILURE_TOTAL, &labels).increment(1);
        }
        Body::PlanStepCompleted(step) => count_step(step, definition),
        Body::DispatchTraced(traced) => count_dispatch(traced, definition),
        _ => {}
    }
}

/// Whether an event is counted here.
pub(crate) fn is_counted(body: &Body) -> bool {
    matches!(
        body,
        Body::TurnCancelled(_)
            | Body::TurnCompleted(_)
            | Body::SubagentCompleted(_)
            | Body::SubagentFailed(_)
            | Body::AgentErrorEmit(_)
            | Body::PlanStepCompleted(_)
            | Body::DispatchTraced(_)
    )
}

/// The dimensions of a metric, as `metric::dimensions_of` gives them.
type Dimensions = [(&'static str, String); 5];

fn count_agent(labels: &Dimensions, latency_ms: u64, status_events: u32) {
    metrics::histogram!(metric::DISPATCH_SUBAGENT_LATENCY_MS, labels).record(latency_ms as f64);
    metrics::histogram!(metric::DISPATCH_STATUS_EVENTS_PER_INVOCATION, labels)
        .record(f64::from(status_events));
}

/// A turn that asked for no sub-agent says nothing about dispatch.
fn count_dispatch(traced: &Traced, definition: &str) {
    if traced.intent_count == 0 {
        return;
    }
    let labels = metric::dimensions(definition);
    metrics::histogram!(metric::DISPATCH_INTENT_COUNT, &labels)
        .record(f64::from(traced.intent_count));
    if traced.cap_behavior == CapBehavior::Over {
        metrics::counter!(metric::DISPATCH_CAP_EXCEEDED_TOTAL, &labels).increment(1);
    }
}

/// How many of several that were asked at once succeeded. One alone is no fan-out, and what was
/// cut off neither succeeded nor failed.
fn count_step(step: &StepCompleted, definition: &str) {
    let all = step.slots.len();
    if all < 2 || step.status == StepStatus::Terminated {
        return;
    }
    let well = step.slots.iter();
    let well = well.filter(|slot| slot.status == SlotStatus::Success);
    metrics::histogram!(
        metric::DISPATCH_FANOUT_SUCCESS_RATIO,
        &metric::dimensions(definition)
    )
    .record(well.count() as f64 / all as f64);
}

#[cfg(test)]
mod tests;
