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
            count_agent(&end.sub_agent_id, end.latency_ms, end.status_events);
        }
        Body::SubagentFailed(end) => {
            count_agent(&end.sub_agent_id, end.latency_ms, end.status_events);
        }
        Body::AgentErrorEmit(error) => {
            let axis = error.axis.to_string();
            metrics::counter!(metric::DISPATCH_AXIS_FAILURE_TOTAL, "axis" => axis).increment(1);
        }
        Body::PlanStepCompleted(step) => count_step(step),
        Body::DispatchTraced(traced) => count_dispatch(traced),
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

fn count_agent(id: &str, latency_ms: u64, status_events: u32) {
    metrics::histogram!(metric::DISPATCH_SUBAGENT_LATENCY_MS, "sub_agent_id" => id.to_owned())
        .record(latency_ms as f64);
    metrics::histogram!(
        metric::DISPATCH_STATUS_EVENTS_PER_INVOCATION,
        "sub_agent_id" => id.to_owned()
    )
    .record(f64::from(status_events));
}

/// A turn that asked for no sub-agent says nothing about dispatch.
fn count_dispatch(traced: &Traced) {
    if traced.intent_count == 0 {
        return;
    }
    metrics::histogram!(metric::DISPATCH_INTENT_COUNT).record(f64::from(traced.intent_count));
    if traced.cap_behavior == CapBehavior::Over {
        metrics::counter!(metric::DISPATCH_CAP_EXCEEDED_TOTAL).increment(1);
    }
}

/// How many of several that were asked at once succeeded. One alone is no fan-out, and what was
/// cut off neither succeeded nor failed.
fn count_step(step: &StepCompleted) {
    let all = step.slots.len();
    if all < 2 || step.status == StepStatus::Terminated {
        return;
    }
    let well = step.slots.iter();
    let well = well.filter(|slot| slot.status == SlotStatus::Success);
    metrics::histogram!(metric::DISPATCH_FANOUT_SUCCESS_RATIO)
        .record(well.count() as f64 / all as f64);
}

#[cfg(test)]
mod tests;
