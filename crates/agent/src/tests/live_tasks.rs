//! The gauge of live tasks (S1-112).

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, SharedString, Unit};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnwire_event::code::ToolType;
use turnwire_event::metric;
use turnwire_event::port::BoxFuture;
use turnwire_tool::{Tool, ToolFailure, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool};

const SHOP: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [{tool: {name: search}}, {text: Found.}]}
";

/// A metrics recorder with one gauge.
#[derive(Clone, Default)]
struct GaugeRecorder(Arc<Mutex<f64>>);

impl GaugeFn for GaugeRecorder {
    fn increment(&self, value: f64) {
        *self.0.lock() += value;
    }

    fn decrement(&self, value: f64) {
        *self.0.lock() -= value;
    }

    fn set(&self, value: f64) {
        *self.0.lock() = value;
    }
}

impl metrics::Recorder for GaugeRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if key.name() == metric::ENGINE_TASKS_LIVE {
            Gauge::from_arc(Arc::new(self.clone()))
        } else {
            Gauge::noop()
        }
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn search(given: fn() -> Result<Value, ToolFailure>) -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name: "search",
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: move |_: ToolInvocation| -> BoxFuture<'static, _> {
            Box::pin(async move {
                sleep(Duration::from_secs(1)).await;
                given()
            })
        },
    })
}

// S1-112
#[test]
fn every_task_is_counted_until_its_end() {
    let cases = [
        ("success", search(|| Ok(json!(1)))),
        (
            "failure",
            search(|| Err(ToolFailure::internal("no").fatal())),
        ),
        ("panic", search(|| panic!("mad"))),
        ("drop", search(|| Ok(json!(1)))),
    ];
    for (case, tool) in cases {
        let tasks = GaugeRecorder::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.expect("a runtime");
        let harness = PackHarness::new(SHOP).tool(tool);
        let levels = metrics::with_local_recorder(&tasks, || {
            runtime.block_on(async {
                let mut turn = harness.run();
                let half = timeout(Duration::from_millis(500), &mut turn).await;
                assert!(half.is_err(), "{case}");
                let at_work = *tasks.0.lock();
                if case == "drop" {
                    drop(turn);
                } else {
                    turn.await;
                }
                // GaugeRecorder that were stopped go when it is their turn.
                sleep(Duration::from_millis(1)).await;
                (at_work, *tasks.0.lock())
            })
        });
        // One for the sub-agent, one for its tool.
        assert_eq!(levels, (2.0, 0.0), "{case}");
    }
}
