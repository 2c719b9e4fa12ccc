//! The statuses that are shown while a sub-agent is silent (D-12b, C-18).

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MessageEnd};
use turnwire_event::port::{TurnContext, TurnOutcome};
use turnwire_event::{Actor, Body, ContentBlock, Position};
use turnwire_pack::Pack;
use turnwire_tool::{Tool, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool};
use super::recording_emitter::RecordingEmitter;

const SHOP: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [{tool: {name: search}}, {text: Found.}]}
";

/// A tool that runs for `lasts` ms and emits a status at each of `says`.
fn saying(lasts: u64, says: &'static [(u64, &'static str)]) -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name: "search",
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: move |call: ToolInvocation| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let mut now = 0;
                for (at, id) in says {
                    sleep(Duration::from_millis(at - now)).await;
                    now = *at;
                    let emitted = Body::StatusEmitted(StatusEmitted {
                        event_id: (*id).into(),
                        message: String::new(),
                        invocation_id: None,
                    });
                    let emission = Emission::new(Actor::subagent("shop"), emitted);
                    call.emitter.emit(emission).expect("taken");
                }
                sleep(Duration::from_millis(lasts - now)).await;
                Ok(json!(1))
            })
        },
    })
}

/// An emitter that records when each status came.
struct StatusTimes {
    inner: Arc<RecordingEmitter>,
    begun: Instant,
}

impl EventEmitter for StatusTimes {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        if let Body::StatusEmitted(status) = &emission.body {
            let at = self.begun.elapsed().as_millis();
            self.inner.note(&format!("at {at} {}", status.event_id));
        }
        self.inner.emit(emission)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        self.inner.complete(end)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        self.inner.committed(at)
    }
}

/// Runs a turn whose search is `tool`; returns when which status was emitted.
async fn statuses(tool: Arc<dyn Tool>) -> Vec<String> {
    let mut harness = PackHarness::new(SHOP).tool(tool);
    let mut pack = Pack::clone(&harness.pack);
    pack.agents[0].timeout_ms = 600_000;
    harness.pack = Arc::new(pack);
    let cohort = harness.pack.cohort("local");
    let watch = StatusTimes {
        inner: Arc::clone(&harness.recorder),
        begun: Instant::now(),
    };
    let bound = harness.factory().bind(&harness.input, &cohort);
    let turn = (bound.work)(TurnContext {
        delegate: Arc::new(turnwire_event::port::NoChildTasks),
        child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
        input: harness.input.clone(),
        emitter: Arc::new(watch),
        history: Arc::new(harness.memory.clone()),
    });
    let TurnOutcome { status, .. } = turn.await;
    assert_eq!(status, TurnStatus::Ok);
    let lines = harness.recorder.lines().into_iter();
    lines
        .filter_map(|line| line.strip_prefix("at ").map(str::to_owned))
        .collect()
}

// S2-057, D-12b
#[tokio::test(start_paused = true)]
async fn silent_sub_agent_shows_its_default_status() {
    assert_eq!(statuses(saying(1_400, &[])).await, [""; 0]);
    assert_eq!(statuses(saying(4_000, &[])).await, ["1500 searching_shop"]);
}

// C-18
#[tokio::test(start_paused = true)]
async fn default_status_repeats_in_a_long_silence() {
    assert_eq!(
        statuses(saying(45_000, &[])).await,
        [
            "1500 searching_shop",
            "21500 searching_shop",
            "41500 searching_shop"
        ]
    );
}

// D-12b
#[tokio::test(start_paused = true)]
async fn own_status_restarts_the_watchdog() {
    const SAYS: &[(u64, &str)] = &[(1_000, "searching_shop"), (9_000, "searching_shop")];
    assert_eq!(
        statuses(saying(12_000, SAYS)).await,
        [
            "1000 searching_shop",
            "2500 searching_shop",
            "9000 searching_shop",
            "10500 searching_shop"
        ]
    );
}

// D-12b
#[tokio::test(start_paused = true)]
async fn hidden_status_does_not_restart_the_watchdog() {
    const SAYS: &[(u64, &str)] = &[(1_000, "not_registered")];
    assert_eq!(
        statuses(saying(4_000, SAYS)).await,
        ["1000 not_registered", "1500 searching_shop"]
    );
}
