//! Metrics of model calls, read from a recorder that stores every value.

use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use parking_lot::Mutex;
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::code::{CallPurpose, LlmErrorClass};
use turnwire_event::metric::TurnDimensions;
use turnwire_event::{MessageId, StopReason, Ulid};

use super::*;
use crate::metering::turn_metrics::record;

type RecordedCalls = Arc<Mutex<Vec<(String, f64)>>>;

#[derive(Default)]
struct CallRecorder(RecordedCalls);

struct CallMetric(RecordedCalls, String);

impl CallMetric {
    fn push(&self, value: f64) {
        self.0.lock().push((self.1.clone(), value));
    }
}

impl CounterFn for CallMetric {
    fn increment(&self, value: u64) {
        self.push(value as f64);
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for CallMetric {
    fn increment(&self, value: f64) {
        self.push(value);
    }
    fn decrement(&self, value: f64) {
        self.push(-value);
    }
    fn set(&self, _: f64) {}
}

impl HistogramFn for CallMetric {
    fn record(&self, _: f64) {
        self.push(1.0); // the duration differs in each run
    }
}

impl CallRecorder {
    fn metric(&self, key: &Key) -> Arc<CallMetric> {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::new(CallMetric(self.0.clone(), name))
    }
}

impl Recorder for CallRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

fn recorded(act: impl FnOnce(&mut CallsInFlight)) -> Vec<(String, f64)> {
    let recorder = CallRecorder::default();
    let values = recorder.0.clone();
    metrics::with_local_recorder(&recorder, || act(&mut CallsInFlight::default()));
    values.lock().clone()
}

const CALL: CallId = CallId(Ulid(1));

fn failed() -> Body {
    Body::LlmCallFailed(CallFailed {
        call_id: CALL,
        message_id: None,
        content_sha256: None,
        error_class: LlmErrorClass::Transport,
        usage: TokenUsage::default(),
    })
}

#[test]
fn completed_call_records_tokens_and_cost() {
    let completed = Body::LlmCallCompleted(CallCompleted {
        call_id: CALL,
        message_id: MessageId(Ulid(2)),
        content_sha256: String::new(),
        stop_reason: StopReason::EndTurn,
        usage: TokenUsage {
            input_tokens: 10,
            output_tokens: 4,
            total_tokens: 14,
            reasoning_tokens: 3,
            cached_tokens: 8,
            cost_usd: 0.25,
            estimated: false,
        },
    });
    let values = recorded(|calls| {
        calls.start(CALL, "local:small");
        record(&completed, calls, &TurnDimensions::default());
    });
    let expected = [
        ("turnwire_llm_calls_total local:small completed", 1.0),
        ("turnwire_llm_call_duration_seconds local:small", 1.0),
        ("turnwire_llm_tokens_total local:small input", 10.0),
        ("turnwire_llm_tokens_total local:small cached", 8.0),
        ("turnwire_llm_tokens_total local:small output", 4.0),
        ("turnwire_llm_tokens_total local:small reasoning", 3.0),
        ("turnwire_llm_cost_usd_total local:small", 0.25),
    ];
    assert_eq!(
        values,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
}

#[test]
fn failed_call_is_recorded_also_after_a_restart() {
    let values = recorded(|calls| {
        calls.start(CALL, "local:small");
        record(&failed(), calls, &TurnDimensions::default());
    });
    let expected = [
        (
            "turnwire_llm_calls_total local:small failed".to_owned(),
            1.0,
        ),
        (
            "turnwire_llm_call_duration_seconds local:small".to_owned(),
            1.0,
        ),
    ];
    assert_eq!(values, expected);
    let values = recorded(|calls| {
        calls.restore(&Body::LlmCallStarted(CallStarted {
            call_id: CALL,
            model: "local:small".into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first: false,
        }));
        record(&failed(), calls, &TurnDimensions::default());
    });
    assert_eq!(
        values,
        expected[..1],
        "the duration is unknown after a restart"
    );
}
