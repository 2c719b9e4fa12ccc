//! The agent of a worker's session, the number of workers of a turn, and the end of workers whose tool
//! has failed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::body::delegate::{DelegateEnd, DelegateFailed, SummaryDetail};
use turnwire_event::code::{ErrorCode, FailureMode, ToolErrorClass, ToolType, TurnStatus};
use turnwire_event::port::{
    BoxFuture, HistoryBudget, WorkerEnd, WorkerLauncher, WorkerRefusal, WorkerTask,
};
use turnwire_event::{Body, SessionId, ToolUseId, Ulid};
use turnwire_pack::Pack;
use turnwire_tool::{Tool, ToolFailure, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool, results};

const HELLO: &str = "- {when: {agent: reader}, steps: [{text: Read.}]}\n\
                     - {when: {agent: shop}, steps: [{text: Shopped.}]}\n\
                     - {when: {agent: orchestrator}, steps: [{text: Hello.}]}\n";

/// A turn in the session of a worker; `reader` is an agent that is only a worker.
fn worker(agent: &str) -> PackHarness {
    let mut harness = PackHarness::new(HELLO);
    let mut pack = Pack::clone(&harness.pack);
    let mut reader = pack.agents[0].clone();
    reader.id = "reader".into();
    reader.tools = vec!["points".into()];
    reader.history.max_messages = 100;
    pack.workers.push(reader);
    harness.pack = Arc::new(pack);
    harness.input.agent = Some(agent.to_owned());
    harness
}

fn tools(harness: &PackHarness, agent: &str) -> Vec<String> {
    let tools = &harness.requests_of(agent)[0].tools;
    tools.iter().map(|tool| tool.name.clone()).collect()
}

// D-48, C-21
#[tokio::test]
async fn worker_has_its_own_definition_and_no_sub_agents() {
    for (agent, said, own) in [
        ("reader", "Read.", vec!["points"]),
        ("shop", "Shopped.", vec!["search", "show"]),
    ] {
        let harness = worker(agent);
        assert_eq!(harness.run().await.status, TurnStatus::Ok);
        assert_eq!(tools(&harness, agent), own);
        assert!(
            harness.story().contains(&format!("says {said:?}")),
            "{agent}"
        );
        let system = harness.requests_of(agent)[0]
            .system
            .clone()
            .expect("a prompt");
        assert!(system.starts_with("You are shop."), "{system}");
        assert!(system.contains("- locale: en"), "{system}");
    }
}

// D-48
#[tokio::test]
async fn orchestrator_as_worker_may_call_sub_agents() {
    let harness = worker("orchestrator");
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert!(tools(&harness, "orchestrator").contains(&"ask_shop".to_owned()));
}

#[tokio::test]
async fn worker_reads_the_history_of_its_definition() {
    let harness = worker("reader");
    let cohort = harness.pack.cohort("local");
    let factory = harness.factory();
    let bound = factory.bind(&harness.input, &cohort);
    assert_eq!(bound.history.messages_max, 100);
    let most = HistoryBudget {
        messages_max: 100,
        bytes_max: 24_000 * 4,
    };
    assert_eq!(factory.history(), most, "as much as anyone is shown");
}

#[tokio::test]
async fn unknown_agent_fails_its_turn_alone() {
    let harness = worker("gone");
    let outcome = harness.run().await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    assert_eq!(outcome.reason.as_deref(), Some("unknown_agent"));
    assert_eq!(outcome.error, Some(ErrorCode::InternalError.into()));
    assert!(harness.provider.requests.lock().is_empty());
}

/// A delegate with any number of workers.
#[derive(Default)]
struct EndlessDelegate {
    created: Mutex<u128>,
    left: Mutex<Vec<SessionId>>,
}

impl WorkerLauncher for EndlessDelegate {
    fn create(&self, _: &str) -> BoxFuture<'static, Result<SessionId, WorkerRefusal>> {
        let mut created = self.created.lock();
        *created += 1;
        Box::pin(std::future::ready(Ok(SessionId(Ulid(*created)))))
    }

    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        self.left.lock().push(task.worker_session_id);
        Box::pin(std::future::pending())
    }

    fn left(&self, _: ToolUseId, stopped: FailureMode) -> BoxFuture<'static, Vec<DelegateEnd>> {
        let workers = std::mem::take(&mut *self.left.lock());
        let ends = workers.into_iter().map(move |worker_session_id| {
            DelegateEnd::Failed(DelegateFailed {
                worker_session_id,
                failure_mode: stopped,
            })
        });
        Box::pin(std::future::ready(ends.collect()))
    }
}

fn delegating(
    name: &'static str,
    work: impl Fn(ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>>
    + Send
    + Sync
    + 'static,
) -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name,
        tool_type: ToolType::Delegate,
        status: None,
        remember: false,
        work,
    })
}

#[tokio::test]
async fn workers_of_a_turn_are_limited_by_the_pack() {
    let script = "- {when: {call: 1}, steps: [{tool: {name: llm_feedback}}, {tool: {name: llm_feedback}}, {tool: {name: llm_feedback}}]}\n\
                  - {steps: [{text: Done.}]}\n";
    let tool = delegating("llm_feedback", |call| {
        let created = call.context.delegate.create("reader");
        Box::pin(async move { Ok(json!(created.await.is_ok())) })
    });
    let mut harness = PackHarness::new(script).tool(tool);
    let mut pack = Pack::clone(&harness.pack);
    pack.limits.workers_max = 2;
    harness.pack = Arc::new(pack);
    harness.delegate = Arc::new(EndlessDelegate::default());
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let tool_results = results(&harness.requests_of("orchestrator")[1]);
    let had = tool_results
        .iter()
        .filter(|(tool_results, _)| *tool_results == json!(true));
    assert_eq!((tool_results.len(), had.count()), (3, 2));
}

/// A task that never ends.
fn hang(call: &ToolInvocation) -> BoxFuture<'static, WorkerEnd> {
    call.context.delegate.run(WorkerTask {
        worker_session_id: SessionId(Ulid(5)),
        tool_use_id: call.tool_use_id,
        task: "read".into(),
        limit: Duration::from_secs(1),
        detail: SummaryDetail::Text,
        trace: None,
        propagation: Default::default(),
    })
}

/// The failures of workers and tools, in order.
fn failures(harness: &PackHarness) -> Vec<String> {
    let bodies = harness.recorder.bodies();
    let failed = bodies.iter().filter_map(|(actor, body)| match body {
        Body::DelegateFailed(end) => Some(format!("{actor} {:?}", end.failure_mode)),
        Body::ToolFailed(end) => Some(format!("{} {:?}", end.tool_name, end.error_class)),
        Body::SubagentFailed(end) => Some(end.sub_agent_id.clone()),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn abandoned_worker_fails_before_its_tool() {
    let script = "- {when: {call: 1}, steps: [{tool: {name: llm_feedback}}]}\n\
                  - {steps: [{text: Done.}]}\n";
    let tool = delegating("llm_feedback", |call| {
        let run = hang(&call);
        Box::pin(async move {
            drop(run);
            Err(ToolFailure::new(ToolErrorClass::Timeout, "too long"))
        })
    });
    let mut harness = PackHarness::new(script).tool(tool);
    harness.delegate = Arc::new(EndlessDelegate::default());
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let id = SessionId(Ulid(5));
    let expected = [
        format!("worker:{id} {:?}", FailureMode::Timeout),
        "llm_feedback Timeout".to_owned(),
    ];
    assert_eq!(failures(&harness), expected);
}

#[tokio::test(start_paused = true)]
async fn worker_of_a_late_sub_agent_fails_before_it() {
    let script = "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: q}}}]}\n\
                  - {when: {agent: orchestrator}, steps: [{text: Done.}]}\n\
                  - {when: {agent: shop}, steps: [{tool: {name: search}}]}\n";
    let tool = delegating("search", |call| {
        let run = hang(&call);
        Box::pin(async move {
            run.await;
            Ok(json!(null))
        })
    });
    let mut harness = PackHarness::new(script).tool(tool);
    harness.delegate = Arc::new(EndlessDelegate::default());
    let outcome = harness.run().await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    let id = SessionId(Ulid(5));
    let expected = [
        format!("worker:{id} {:?}", FailureMode::Timeout),
        "search Timeout".to_owned(),
        "shop".to_owned(),
        "ask_shop Timeout".to_owned(),
    ];
    assert_eq!(failures(&harness), expected);
}

/// A tool of an MCP server.
struct ServerTool(&'static str);

impl Tool for ServerTool {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "behind a server"
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn server(&self) -> Option<&str> {
        Some("files")
    }

    fn run(&self, _: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async { Ok(Value::Null) })
    }
}

// S1-029
#[tokio::test]
async fn turn_emits_its_mcp_servers() {
    let mut harness = worker("shop").tool(Arc::new(ServerTool("search")));
    harness = harness.tool(Arc::new(ServerTool("show")));
    harness.run().await;
    let bodies = harness.recorder.bodies();
    let first: Vec<_> = bodies.iter().take(3).map(|(_, body)| body).collect();
    assert!(matches!(first[0], Body::RouteDecided(_)));
    assert!(matches!(first[1], Body::McpListToolsStarted(one) if one.server == "files"));
    assert!(
        matches!(first[2], Body::McpListToolsCompleted(one) if (one.server.as_str(), one.tool_count) == ("files", 2))
    );
}
