//! The overhead of a dispatch: its time without models and tools.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::metric;
use turnwire_event::port::BoxFuture;
use turnwire_tool::ToolInvocation;

use super::pack_harness::{PackHarness, TestTool};
use super::recording_emitter::RecordingEmitter;

/// A sub-agent that calls two tools in one message. Those of the pack have no effects.
const TWO_TOOLS: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop, call: 1}, steps: [{pause_ms: 300}, {tool: {name: search}}, {tool: {name: show}}]}
- {when: {agent: shop}, steps: [{text: Found.}]}
";
/// How long a commit takes.
const COMMIT: Duration = Duration::from_millis(40);

/// A metrics recorder with one histogram.
#[derive(Clone, Default)]
struct HistogramRecorder(Arc<Mutex<Vec<f64>>>);

impl HistogramFn for HistogramRecorder {
    fn record(&self, value: f64) {
        self.0.lock().push(value);
    }
}

impl metrics::Recorder for HistogramRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() == metric::DISPATCH_OVERHEAD_SECONDS {
            Histogram::from_arc(Arc::new(self.clone()))
        } else {
            Histogram::noop()
        }
    }
}

/// The overheads that a turn measures; only sleeps take time.
fn measured(harness: &PackHarness, status: TurnStatus) -> Vec<f64> {
    let recorder = HistogramRecorder::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    let play = || runtime.block_on(harness.run());
    let outcome = metrics::with_local_recorder(&recorder, play);
    assert_eq!(outcome.status, status);
    let overheads = recorder.0.lock();
    overheads.clone()
}

// S2-070
#[test]
fn time_of_models_and_tools_is_not_overhead() {
    const TURN: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}, {tool: {name: ask_rewards, input: {query: b}}}, {tool: {name: ask_support, input: {query: b}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [{pause_ms: 300}, {tool: {name: search}}, {text: Found.}]}
- {when: {agent: rewards}, steps: [{pause_ms: 70}, {text: Found.}]}
- {when: {agent: support}, steps: [{stall: true}]}
";
    let search = TestTool {
        name: "search",
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: |_: ToolInvocation| -> BoxFuture<'static, _> {
            Box::pin(async {
                sleep(Duration::from_millis(500)).await;
                Ok(json!(1))
            })
        },
    };
    let harness = PackHarness::new(TURN).tool(Arc::new(search));
    // The clock stands still but for the model and the tool; the one that was cut is not measured.
    assert_eq!(measured(&harness, TurnStatus::Degraded), [0.0, 0.0]);
}

// S2-070
#[test]
fn wait_for_the_commit_of_tool_calls_is_overhead() {
    let with_effects = TestTool {
        name: "search",
        tool_type: ToolType::Function,
        status: None,
        remember: false,
        work: |_: ToolInvocation| -> BoxFuture<'static, _> { Box::pin(async { Ok(json!(1)) }) },
    };
    let mut harness = PackHarness::new(TWO_TOOLS).tool(Arc::new(with_effects));
    harness.recorder = Arc::new(RecordingEmitter::committing_for(COMMIT));
    // The tools of one message wait for one commit. The start of the sub-agent is not waited for.
    assert_eq!(measured(&harness, TurnStatus::Ok), [0.04]);
}

// S2-070
#[test]
fn tools_without_effects_wait_for_no_commit() {
    let mut harness = PackHarness::new(TWO_TOOLS);
    harness.recorder = Arc::new(RecordingEmitter::committing_for(COMMIT));
    assert_eq!(measured(&harness, TurnStatus::Ok), [0.0]);
    let lines = harness.recorder.lines();
    let waits = lines.iter().filter(|line| line.starts_with("committed "));
    assert_eq!(waits.count(), 0, "{lines:#?}");
}
