//! The ambient emitter in every task of a turn, and no event after a turn was dropped or a sub-agent has
//! ended.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::{
    BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MessageEnd, TurnContext,
};
use turnwire_event::{Actor, Body, ContentBlock, InvocationId, Position, TraceContext, Ulid};
use turnwire_tool::{Tool, ToolFailure, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool};
use super::recording_emitter::RecordingEmitter;
use crate::emitter::ambient;
use crate::emitter::sub_agent_emitter::SubAgentEmitter;

const SHOP: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [{tool: {name: search}}, {text: Found.}]}
";

fn doing<F, W>(work: F) -> Arc<dyn Tool>
where
    F: Fn(ToolInvocation) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
{
    Arc::new(TestTool {
        name: "search",
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: move |call| -> BoxFuture<'static, _> { Box::pin(work(call)) },
    })
}

fn status(id: &str) -> Emission {
    let emitted = StatusEmitted {
        event_id: id.into(),
        message: String::new(),
        invocation_id: None,
    };
    Emission::new(Actor::subagent("shop"), Body::StatusEmitted(emitted))
}

/// An emitter that counts events and passes them on.
struct CountingEmitter {
    inner: Arc<RecordingEmitter>,
    emitted: Mutex<usize>,
}

impl EventEmitter for CountingEmitter {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        *self.emitted.lock() += 1;
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

/// Emits from a task of a task of a sub-agent's tool, through the ambient emitter.
fn deep() -> Arc<dyn Tool> {
    doing(|_| async {
        let mut tasks = JoinSet::new();
        ambient::spawn(&mut tasks, async {
            let mut inner = JoinSet::new();
            ambient::spawn(&mut inner, async {
                let writer = ambient::current().expect("in a turn");
                writer.emit(status("deep")).expect("the turn goes on");
            });
            inner.join_all().await;
        });
        tasks.join_all().await;
        Ok(json!(1))
    })
}

// S1-041
#[tokio::test]
async fn emitter_is_found_three_tasks_deep() {
    let harness = PackHarness::new(SHOP).tool(deep());
    assert!(ambient::current().is_none());
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let emissions = harness.recorder.emissions();
    let deep = emissions
        .iter()
        .find(|e| matches!(&e.body, Body::StatusEmitted(_)));
    assert!(
        deep.expect("it was told").trace.is_some(),
        "in the span of its sub-agent"
    );
    let completed = emissions.iter().find_map(|emission| match &emission.body {
        Body::SubagentCompleted(end) => Some(end.status_events),
        _ => None,
    });
    assert_eq!(completed, Some(1), "and counted as the sub-agent's");
}

// S1-044
#[tokio::test(start_paused = true)]
async fn any_emitter_gets_all_events_in_the_same_order() {
    let plain = PackHarness::new(SHOP).tool(deep());
    plain.run().await;
    let other = PackHarness::new(SHOP).tool(deep());
    let sink = Arc::new(CountingEmitter {
        inner: Arc::clone(&other.recorder),
        emitted: Mutex::new(0),
    });
    let cohort = other.pack.cohort("local");
    let bound = other.factory().bind(&other.input, &cohort);
    let outcome = (bound.work)(TurnContext {
        delegate: Arc::new(turnwire_event::port::NoChildTasks),
        child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
        input: other.input.clone(),
        emitter: Arc::clone(&sink) as Arc<dyn EventEmitter>,
        history: Arc::new(other.memory.clone()),
    });
    assert_eq!(outcome.await.status, TurnStatus::Ok);
    assert_eq!(*sink.emitted.lock(), other.recorder.emissions().len());
    assert_eq!(other.recorder.lines(), plain.recorder.lines());
}

#[test]
fn closed_sub_agent_emitter_refuses_events() {
    let recorder = Arc::new(RecordingEmitter::default());
    let span = Arc::new(TraceContext {
        trace_id: "t".into(),
        span_id: "s".into(),
        parent_span_id: None,
    });
    let emitter = SubAgentEmitter::new(
        Arc::clone(&recorder) as Arc<dyn EventEmitter>,
        ("shop", InvocationId(Ulid(1))),
        span,
        Vec::new(),
        0,
    );
    emitter.emit(status("one")).expect("open");
    assert_eq!(emitter.close().status_count, 1);
    assert_eq!(emitter.emit(status("two")), Err(EmitRefusal::Ended.into()));
    assert_eq!(recorder.lines().len(), 1);
}

#[tokio::test]
async fn parallel_invocations_are_named_in_their_statuses() {
    const TWICE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}, {tool: {name: ask_shop, input: {query: b}}}]}
- {when: {agent: orchestrator}, steps: [{text: Both.}]}
- {when: {agent: shop, call: 1}, steps: [{tool: {name: search}}]}
- {when: {agent: shop}, steps: [{text: Found.}]}
";
    let tool = doing(|call: ToolInvocation| async move {
        let forged = Body::StatusEmitted(StatusEmitted {
            event_id: "one".into(),
            message: String::new(),
            invocation_id: Some(InvocationId(Ulid(99))),
        });
        let emission = Emission::new(Actor::subagent("shop"), forged);
        call.emitter.emit(emission).expect("the turn goes on");
        Ok(json!(1))
    });
    let harness = PackHarness::new(TWICE).tool(tool);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let bodies = harness.recorder.bodies();
    let started = bodies.iter().filter_map(|(_, body)| match body {
        Body::SubagentStarted(start) => Some(Some(start.invocation_id)),
        _ => None,
    });
    let named = bodies.iter().filter_map(|(_, body)| match body {
        Body::StatusEmitted(status) => Some(status.invocation_id),
        _ => None,
    });
    let mut named: Vec<_> = named.collect();
    named.sort_unstable();
    assert_eq!(named, started.collect::<Vec<_>>());
}

// S1-110
#[tokio::test(start_paused = true)]
async fn dropped_turn_stops_its_sub_agents_silently() {
    let notes: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = Arc::clone(&notes);
    let harness = PackHarness::new(SHOP).tool(doing(move |_| {
        let seen = Arc::clone(&seen);
        async move {
            seen.lock().push("began");
            sleep(Duration::from_secs(2)).await;
            seen.lock().push("went on");
            Ok(json!(1))
        }
    }));
    let dropped = timeout(Duration::from_millis(500), harness.run()).await;
    assert!(dropped.is_err());
    let lines = harness.recorder.lines();
    assert!(
        lines
            .last()
            .is_some_and(|line| line.starts_with("tool:search tool.called")),
        "{lines:#?}"
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(harness.recorder.lines(), lines);
    assert_eq!(*notes.lock(), ["began"]);
    assert_eq!(
        harness.requests_of("shop").len(),
        1,
        "no further model call"
    );
}

#[tokio::test(start_paused = true)]
async fn refused_pack_turn_returns_at_once_at_every_event() {
    let complete = PackHarness::new(SHOP);
    assert_eq!(complete.run().await.status, TurnStatus::Ok);
    let all_lines = complete.recorder.lines();
    for room in 0..all_lines.len() - 1 {
        let mut harness = PackHarness::new(SHOP);
        harness.recorder = Arc::new(RecordingEmitter::with_room(room));
        let ended = timeout(Duration::from_secs(5), harness.run()).await;
        assert_eq!(ended.expect("at once").status, TurnStatus::Failed, "{room}");
        let lines = harness.recorder.lines();
        assert!(lines.len() <= room + 1, "{room}: {lines:#?}");
        assert_eq!(lines[..], all_lines[..lines.len()], "{room}");
    }
}

#[tokio::test]
async fn full_outbox_loses_no_event_of_a_dispatch() {
    let plain = PackHarness::new(SHOP);
    plain.run().await;
    let mut full = PackHarness::new(SHOP);
    full.recorder = Arc::new(RecordingEmitter::full_every(3));
    assert_eq!(full.run().await.status, TurnStatus::Ok);
    assert_eq!(full.story(), plain.story());
}
