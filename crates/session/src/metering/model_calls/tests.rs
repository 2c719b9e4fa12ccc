//! What is counted when calls end, read from a recorder that keeps everything.

use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use parking_lot::Mutex;
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::code::{CallPurpose, LlmErrorClass};
use turnwire_event::{MessageId, StopReason, Ulid};

use super::*;

type Seen = Arc<Mutex<Vec<(String, f64)>>>;

#[derive(Default)]
struct Keeping(Seen);

struct One(Seen, String);

impl One {
    fn put(&self, value: f64) {
        self.0.lock().push((self.1.clone(), value));
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.put(value as f64);
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.put(value);
    }
    fn decrement(&self, value: f64) {
        self.put(-value);
    }
    fn set(&self, _: f64) {}
}

impl HistogramFn for One {
    fn record(&self, _: f64) {
        self.put(1.0); // how long it took is another matter
    }
}

impl Keeping {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::new(One(self.0.clone(), name))
    }
}

impl Recorder for Keeping {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

fn counted(act: impl FnOnce(&mut CallsInFlight)) -> Vec<(String, f64)> {
    let recorder = Keeping::default();
    let seen = recorder.0.clone();
    metrics::with_local_recorder(&recorder, || act(&mut CallsInFlight::default()));
    seen.lock().clone()
}

const CALL: CallId = CallId(Ulid(1));

fn failed() -> Body {
    Body::LlmCallFailed(CallFailed {
        call_id: CALL,
        message_id: None,
        content_sha256: None,
        error_class: LlmErrorClass::Transport,
    })
}

#[test]
fn a_call_that_completed_counts_its_tokens_and_its_cost() {
    let completed = Body::LlmCallCompleted(CallCompleted {
        call_id: CALL,
        message_id: MessageId(Ulid(2)),
        content_sha256: String::new(),
        stop_reason: StopReason::EndTurn,
        usage: Usage {
            input_tokens: 10,
            output_tokens: 4,
            total_tokens: 14,
            reasoning_tokens: 3,
            cached_tokens: 8,
            cost_usd: 0.25,
        },
    });
    let seen = counted(|calls| {
        calls.begin(CALL, "local:small");
        calls.end(&completed);
    });
    let expected = [
        ("llm.calls_total local:small completed", 1.0),
        ("llm.call_duration_ms local:small", 1.0),
        ("llm.tokens_total local:small input", 10.0),
        ("llm.tokens_total local:small cached", 8.0),
        ("llm.tokens_total local:small output", 4.0),
        ("llm.tokens_total local:small reasoning", 3.0),
        ("llm.cost_usd_total local:small", 0.25),
    ];
    assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn a_call_that_failed_counts_as_such_also_when_another_process_began_it() {
    let seen = counted(|calls| {
        calls.begin(CALL, "local:small");
        calls.end(&failed());
    });
    let expected = [
        ("llm.calls_total local:small failed".to_owned(), 1.0),
        ("llm.call_duration_ms local:small".to_owned(), 1.0),
    ];
    assert_eq!(seen, expected);
    let seen = counted(|calls| {
        calls.recall(&Body::LlmCallStarted(CallStarted {
            call_id: CALL,
            model: "local:small".into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first: false,
        }));
        calls.end(&failed());
    });
    assert_eq!(seen, expected[..1], "nobody knows how long it took");
}
