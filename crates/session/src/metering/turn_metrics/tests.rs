//! Metrics of turns with sub-agents, read from a recorder that stores every value.

use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use parking_lot::Mutex;
use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::plan::SlotEnd;
use turnwire_event::body::subagent::{SubagentCompleted, SubagentFailed};
use turnwire_event::code::{AgentErrorClass, DispatchOutcome};
use turnwire_event::{InvocationId, ToolUseId, Ulid};

use super::*;

/// The labels that a metric may have.
const LABELS: [&str; 6] = [
    "vertical",
    "sub_agent_id",
    "dm_type",
    "experiment_arm",
    "agent_definition_version",
    "axis",
];

type RecordedValues = Arc<Mutex<Vec<(String, f64)>>>;

#[derive(Default)]
struct ValueRecorder(RecordedValues);

struct NamedMetric(RecordedValues, String);

impl CounterFn for NamedMetric {
    fn increment(&self, value: u64) {
        self.0.lock().push((self.1.clone(), value as f64));
    }
    fn absolute(&self, _: u64) {}
}

impl HistogramFn for NamedMetric {
    fn record(&self, value: f64) {
        self.0.lock().push((self.1.clone(), value));
    }
}

impl ValueRecorder {
    fn metric(&self, key: &Key) -> Arc<NamedMetric> {
        let labels: Vec<_> = key
            .labels()
            // All five labels must be present; the name lists those with a value.
            .inspect(|label| assert!(LABELS.contains(&label.key()), "{label:?}"))
            .filter(|label| !label.value().is_empty())
            .filter(|label| label.key() != "agent_definition_version" || label.value() != "7")
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        assert!(key.labels().count() >= 5, "{key} lacks a label");
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::new(NamedMetric(self.0.clone(), name.trim_end().to_owned()))
    }
}

impl Recorder for ValueRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

fn recorded(body: &Body) -> Vec<(String, f64)> {
    recorded_as(body, &TurnDimensions::of_definition("7"))
}

fn recorded_as(body: &Body, dimensions: &TurnDimensions) -> Vec<(String, f64)> {
    assert!(is_metered(body), "{body:?}");
    let recorder = ValueRecorder::default();
    metrics::with_local_recorder(&recorder, || {
        record(body, &mut CallsInFlight::default(), dimensions);
    });
    let values = recorder.0.lock();
    values.clone()
}

fn line(name: &str, value: f64) -> (String, f64) {
    (name.to_owned(), value)
}

fn traced(intent_count: u32) -> Body {
    Body::DispatchTraced(DispatchTraced {
        intent_count,
        cap: 2,
        cap_behavior: if intent_count > 2 {
            CapBehavior::Over
        } else {
            CapBehavior::Within
        },
        ..DispatchTraced::default()
    })
}

// S2-067, S2-068
#[test]
fn dispatch_is_recorded_only_for_turns_with_sub_agents() {
    assert!(recorded(&traced(0)).is_empty());
    let intents = |n| line("turnwire_dispatch_intents", n);
    assert_eq!(recorded(&traced(1)), [intents(1.0)]);
    assert_eq!(
        recorded(&traced(4)),
        [
            intents(4.0),
            line("turnwire_dispatch_cap_exceeded_total", 1.0)
        ]
    );
}

// S2-072
#[test]
fn success_ratio_is_recorded_for_each_fan_out() {
    use SlotStatus::{Error, Success, Timeout};
    let ratio = |status, slots: &[SlotStatus]| {
        let slots = slots.iter().map(|&status| SlotEnd {
            subagent: "shop".into(),
            result_key: "1".into(),
            status,
        });
        let values = recorded(&Body::PlanStepCompleted(StepCompleted {
            plan_step_id: "step".into(),
            status,
            slots: slots.collect(),
        }));
        let name = "turnwire_dispatch_fanout_success_ratio";
        assert!(
            values.iter().all(|(metric, _)| metric == name),
            "{values:?}"
        );
        values.iter().map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let (success, partial) = (StepStatus::Success, StepStatus::PartialFailure);
    assert!(ratio(success, &[Success]).is_empty());
    assert_eq!(ratio(success, &[Success, Success]), [1.0]);
    assert_eq!(ratio(partial, &[Success, Error, Timeout, Success]), [0.5]);
    assert!(
        ratio(StepStatus::Terminated, &[Success, Error]).is_empty(),
        "a cancelled slot is not a failure"
    );
}

// S2-069, S2-071
#[test]
fn sub_agent_is_recorded_however_it_ends() {
    let (invocation_id, tool_use_id) = (InvocationId(Ulid(1)), ToolUseId(Ulid(1)));
    let sub_agent_id = "shop".to_owned();
    let ends = [
        Body::SubagentCompleted(SubagentCompleted {
            invocation_id,
            sub_agent_id: sub_agent_id.clone(),
            tool_use_id,
            outcome: DispatchOutcome::Success,
            latency_ms: 12,
            status_events: 3,
        }),
        Body::SubagentFailed(SubagentFailed {
            invocation_id,
            sub_agent_id,
            tool_use_id,
            latency_ms: 12,
            error_class: AgentErrorClass::Timeout,
            status_events: 3,
        }),
    ];
    let dimensions = TurnDimensions {
        verticals: Arc::new([("shop".to_owned(), "retail".to_owned())].into()),
        ..TurnDimensions::of_definition("7")
    };
    for end in ends {
        let lines = |labels: &str| {
            let name = |metric: &str| format!("turnwire_dispatch_{metric} {labels}");
            [
                (name("subagent_latency_seconds"), 0.012),
                (name("status_events_per_invocation"), 3.0),
            ]
        };
        assert_eq!(recorded(&end), lines("sub_agent_id=shop"));
        let labels = "vertical=retail sub_agent_id=shop";
        assert_eq!(recorded_as(&end, &dimensions), lines(labels));
    }
    let failure = Body::AgentErrorEmit(ErrorEmit {
        sub_agent_id: Some("shop".into()),
        axis: 1,
        is_final: false,
    });
    let name = "turnwire_dispatch_axis_failure_total vertical=retail sub_agent_id=shop axis=1";
    assert_eq!(recorded_as(&failure, &dimensions), [line(name, 1.0)]);
}

// S2-073
#[test]
fn failures_are_counted_by_axis() {
    for axis in 1..=3 {
        let body = Body::AgentErrorEmit(ErrorEmit {
            sub_agent_id: None,
            axis,
            is_final: false,
        });
        let name = format!("turnwire_dispatch_axis_failure_total axis={axis}");
        assert_eq!(recorded(&body), [(name, 1.0)]);
    }
}

// S1-133
#[test]
fn kind_of_message_and_experiment_are_labels() {
    let dimensions = TurnDimensions {
        agent_definition: "7".into(),
        dm_type: "digest".into(),
        experiment_arm: "control".into(),
        ..TurnDimensions::default()
    };
    let name = "turnwire_dispatch_intents dm_type=digest experiment_arm=control";
    assert_eq!(recorded_as(&traced(1), &dimensions), [line(name, 1.0)]);
}
