//! Metrics of turns: how they and their model calls, sub-agents and fan-outs end (S2-067 to S2-073).
//! Each event is counted once: those of an ending before they are emitted, others when they have
//! their positions.

use std::time::Duration;

use turnwire_event::Body;
use turnwire_event::body::dispatch::DispatchTraced;
use turnwire_event::body::plan::StepCompleted;
use turnwire_event::code::{CapBehavior, LlmErrorClass, SlotStatus, StepStatus, code_name};
use turnwire_event::metric::{self, TurnDimensions};

use super::model_calls::CallsInFlight;

/// Records the metrics of an event that [`is_metered`]; `dimensions` are those of the turn, `calls`
/// its model calls.
pub(crate) fn record(body: &Body, calls: &mut CallsInFlight, dimensions: &TurnDimensions) {
    match body {
        Body::LlmCallCompleted(call) => calls.end(call.call_id, "completed", &call.usage),
        Body::LlmCallFailed(call) => {
            let status = match call.error_class {
                LlmErrorClass::Cancelled => "cancelled",
                _ => "failed",
            };
            calls.end(call.call_id, status, &call.usage);
        }
        Body::TurnCancelled(end) => {
            metrics::counter!(metric::TURN_CANCELLED_TOTAL, "phase" => code_name(&end.phase))
                .increment(1);
            // Counted whether or not a client reads the frame (S1-105, S1-131).
            let mut labels = dimensions.labels().to_vec();
            labels.push(("code", code_name(&end.code)));
            metrics::counter!(metric::STREAM_CANCELLATION_TOTAL, &labels).increment(1);
        }
        Body::TurnCompleted(end) => {
            metrics::counter!(metric::TURN_COMPLETED_TOTAL, "status" => code_name(&end.status))
                .increment(1);
        }
        Body::SubagentCompleted(end) => {
            let agent = (dimensions, end.sub_agent_id.as_str());
            record_subagent(agent, end.latency_ms, end.status_events);
        }
        Body::SubagentFailed(end) => {
            let agent = (dimensions, end.sub_agent_id.as_str());
            record_subagent(agent, end.latency_ms, end.status_events);
        }
        Body::AgentErrorEmit(error) => {
            let agent = error.sub_agent_id.as_deref().unwrap_or_default();
            let mut labels = dimensions.sub_agent_labels(agent).to_vec();
            labels.push(("axis", error.axis.to_string()));
            metrics::counter!(metric::DISPATCH_AXIS_FAILURE_TOTAL, &labels).increment(1);
        }
        Body::PlanStepCompleted(step) => record_step(step, dimensions),
        Body::DispatchTraced(traced) => record_dispatch(traced, dimensions),
        _ => {}
    }
}

/// Whether [`record`] counts an event.
pub(crate) fn is_metered(body: &Body) -> bool {
    matches!(
        body,
        Body::TurnCancelled(_)
            | Body::TurnCompleted(_)
            | Body::LlmCallCompleted(_)
            | Body::LlmCallFailed(_)
            | Body::SubagentCompleted(_)
            | Body::SubagentFailed(_)
            | Body::AgentErrorEmit(_)
            | Body::PlanStepCompleted(_)
            | Body::DispatchTraced(_)
    )
}

/// Records the end of a sub-agent, given by the dimensions of its turn and its id.
fn record_subagent((dimensions, id): (&TurnDimensions, &str), latency_ms: u64, status_events: u32) {
    let labels = dimensions.sub_agent_labels(id);
    metrics::histogram!(metric::DISPATCH_SUBAGENT_LATENCY_SECONDS, &labels)
        .record(Duration::from_millis(latency_ms));
    metrics::histogram!(metric::DISPATCH_STATUS_EVENTS_PER_INVOCATION, &labels)
        .record(f64::from(status_events));
}

/// Records a dispatch; a turn without sub-agents has no dispatch metrics.
fn record_dispatch(traced: &DispatchTraced, dimensions: &TurnDimensions) {
    if traced.intent_count == 0 {
        return;
    }
    let labels = dimensions.labels();
    metrics::histogram!(metric::DISPATCH_INTENTS, &labels).record(f64::from(traced.intent_count));
    if traced.cap_behavior == CapBehavior::Over {
        metrics::counter!(metric::DISPATCH_CAP_EXCEEDED_TOTAL, &labels).increment(1);
    }
}

/// Records the share of sub-agents of a fan-out that succeeded. A step with a single slot is not a
/// fan-out, and a terminated step neither succeeded nor failed.
fn record_step(step: &StepCompleted, dimensions: &TurnDimensions) {
    let slot_count = step.slots.len();
    if slot_count < 2 || step.status == StepStatus::Terminated {
        return;
    }
    let succeeded = step.slots.iter();
    let succeeded = succeeded.filter(|slot| slot.status == SlotStatus::Success);
    metrics::histogram!(metric::DISPATCH_FANOUT_SUCCESS_RATIO, &dimensions.labels())
        .record(succeeded.count() as f64 / slot_count as f64);
}

#[cfg(test)]
mod tests;
