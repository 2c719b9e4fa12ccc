//! What is counted of a turn that dispatched, read from a recorder that keeps everything.

use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use parking_lot::Mutex;
use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::plan::SlotEnd;
use turnwire_event::body::subagent::{Completed, Failed};
use turnwire_event::code::{AgentErrorClass, DispatchOutcome};
use turnwire_event::{InvocationId, ToolUseId, Ulid};

use super::*;

/// The labels that may be there.
const NAMED: [&str; 6] = [
    "vertical",
    "sub_agent_id",
    "dm_type",
    "experiment_arm",
    "agent_definition_version",
    "axis",
];

type Kept = Arc<Mutex<Vec<(String, f64)>>>;

#[derive(Default)]
struct Keeping(Kept);

struct One(Kept, String);

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.0.lock().push((self.1.clone(), value as f64));
    }
    fn absolute(&self, _: u64) {}
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        self.0.lock().push((self.1.clone(), value));
    }
}

impl Keeping {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> = key
            .labels()
            // All five are there; those that say something are told.
            .inspect(|label| assert!(NAMED.contains(&label.key()), "{label:?}"))
            .filter(|label| !label.value().is_empty())
            .filter(|label| label.key() != "agent_definition_version" || label.value() != "7")
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        assert!(key.labels().count() >= 5, "{key} has not all dimensions");
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::new(One(self.0.clone(), name.trim_end().to_owned()))
    }
}

impl Recorder for Keeping {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

fn counted(body: &Body) -> Vec<(String, f64)> {
    assert!(is_counted(body), "{body:?}");
    let keeping = Keeping::default();
    metrics::with_local_recorder(&keeping, || count(body, "7"));
    let kept = keeping.0.lock();
    kept.clone()
}

fn line(name: &str, value: f64) -> (String, f64) {
    (name.to_owned(), value)
}

fn traced(intent_count: u32) -> Body {
    Body::DispatchTraced(Traced {
        intent_count,
        cap: 2,
        cap_behavior: if intent_count > 2 {
            CapBehavior::Over
        } else {
            CapBehavior::Within
        },
        ..Traced::default()
    })
}

#[test]
fn s2_067_s2_068_a_trace_is_counted_and_a_turn_that_asked_for_nobody_is_not() {
    assert!(counted(&traced(0)).is_empty());
    let intents = |n| line("dispatch.intent_count", n);
    assert_eq!(counted(&traced(1)), [intents(1.0)]);
    assert_eq!(
        counted(&traced(4)),
        [intents(4.0), line("dispatch.cap_exceeded_total", 1.0)]
    );
}

#[test]
fn s2_072_the_ratio_is_told_of_each_step_that_asked_several() {
    use SlotStatus::{Error, Success, Timeout};
    let ratio = |status, slots: &[SlotStatus]| {
        let slots = slots.iter().map(|&status| SlotEnd {
            subagent: "shop".into(),
            result_key: "1".into(),
            status,
        });
        let told = counted(&Body::PlanStepCompleted(StepCompleted {
            plan_step_id: "step".into(),
            status,
            slots: slots.collect(),
        }));
        let name = "dispatch.fanout.success_ratio";
        assert!(told.iter().all(|(told, _)| told == name), "{told:?}");
        told.iter().map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let (well, partial) = (StepStatus::Success, StepStatus::PartialFailure);
    assert!(ratio(well, &[Success]).is_empty());
    assert_eq!(ratio(well, &[Success, Success]), [1.0]);
    assert_eq!(ratio(partial, &[Success, Error, Timeout, Success]), [0.5]);
    assert!(
        ratio(StepStatus::Terminated, &[Success, Error]).is_empty(),
        "what a cancel threw away is no failure"
    );
}

#[test]
fn s2_069_s2_071_a_sub_agent_is_counted_however_it_ends() {
    let (invocation_id, tool_use_id) = (InvocationId(Ulid(1)), ToolUseId(Ulid(1)));
    let sub_agent_id = "shop".to_owned();
    let ends = [
        Body::SubagentCompleted(Completed {
            invocation_id,
            sub_agent_id: sub_agent_id.clone(),
            tool_use_id,
            outcome: DispatchOutcome::Success,
            latency_ms: 12,
            status_events: 3,
        }),
        Body::SubagentFailed(Failed {
            invocation_id,
            sub_agent_id,
            tool_use_id,
            latency_ms: 12,
            error_class: AgentErrorClass::Timeout,
            status_events: 3,
        }),
    ];
    for end in ends {
        assert_eq!(
            counted(&end),
            [
                line("dispatch.subagent.latency_ms sub_agent_id=shop", 12.0),
                line(
                    "dispatch.status_events_per_invocation sub_agent_id=shop",
                    3.0
                ),
            ]
        );
    }
}

#[test]
fn s2_073_failures_are_counted_by_axis() {
    for axis in 1..=3 {
        let body = Body::AgentErrorEmit(ErrorEmit {
            sub_agent_id: None,
            axis,
            is_final: false,
        });
        let name = format!("dispatch.axis_failure_total axis={axis}");
        assert_eq!(counted(&body), [(name, 1.0)]);
    }
}
