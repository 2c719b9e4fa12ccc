//! Who speaks in a worker's session, how many workers a turn has, and the end of those that a tool
//! has let go of.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::code::{ErrorCode, FailureMode, ToolErrorClass, ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, Delegate, HistoryBudget, NoWorker, Task, WorkerEnd};
use turnwire_event::{Body, SessionId, ToolUseId, Ulid};
use turnwire_pack::Pack;
use turnwire_tool::{Tool, ToolFailure, ToolInvocation};

use super::pack_stage::{Double, Troupe, results};

const HELLO: &str = "- {when: {agent: reader}, steps: [{text: Read.}]}\n\
                     - {when: {agent: shop}, steps: [{text: Shopped.}]}\n\
                     - {when: {agent: orchestrator}, steps: [{text: Hello.}]}\n";

/// A turn in the session of a worker; `reader` is one that works for others alone.
fn worker(agent: &str) -> Troupe {
    let mut troupe = Troupe::new(HELLO);
    let mut pack = Pack::clone(&troupe.pack);
    let mut reader = pack.agents[0].clone();
    reader.id = "reader".into();
    reader.tools = vec!["points".into()];
    reader.history.max_messages = 100;
    pack.workers.push(reader);
    troupe.pack = Arc::new(pack);
    troupe.input.agent = Some(agent.to_owned());
    troupe
}

fn tools(troupe: &Troupe, agent: &str) -> Vec<String> {
    let tools = &troupe.asked(agent)[0].tools;
    tools.iter().map(|tool| tool.name.clone()).collect()
}

// D-48
#[tokio::test]
async fn worker_has_its_own_definition_and_no_sub_agents() {
    for (agent, said, own) in [
        ("reader", "Read.", vec!["points"]),
        ("shop", "Shopped.", vec!["search", "show"]),
    ] {
        let troupe = worker(agent);
        assert_eq!(troupe.play().await.status, TurnStatus::Ok);
        assert_eq!(tools(&troupe, agent), own);
        assert!(
            troupe.story().contains(&format!("says {said:?}")),
            "{agent}"
        );
        let system = troupe.asked(agent)[0].system.clone().expect("a prompt");
        assert!(system.starts_with("You are shop."), "{system}");
        assert!(system.contains("- locale: en"), "{system}");
    }
}

// D-48
#[tokio::test]
async fn orchestrator_as_worker_may_call_sub_agents() {
    let troupe = worker("orchestrator");
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    assert!(tools(&troupe, "orchestrator").contains(&"ask_shop".to_owned()));
}

#[tokio::test]
async fn worker_reads_the_history_of_its_definition() {
    let troupe = worker("reader");
    let cohort = troupe.pack.cohort("local");
    let factory = troupe.factory();
    let bound = factory.bind(&troupe.input, &cohort);
    assert_eq!(bound.history.messages_max, 100);
    let most = HistoryBudget {
        messages_max: 100,
        bytes_max: 24_000 * 4,
    };
    assert_eq!(factory.history(), most, "as much as anyone is shown");
}

#[tokio::test]
async fn unknown_agent_fails_its_turn_alone() {
    let troupe = worker("gone");
    let outcome = troupe.play().await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    assert_eq!(outcome.reason.as_deref(), Some("unknown_agent"));
    assert_eq!(outcome.error, Some(ErrorCode::InternalError.into()));
    assert!(troupe.provider.requests.lock().is_empty());
}

/// Has workers without end; those it is asked for are left.
#[derive(Default)]
struct Office {
    reserved: Mutex<u128>,
    left: Mutex<Vec<SessionId>>,
}

impl Delegate for Office {
    fn reserve(&self) -> Result<SessionId, NoWorker> {
        let mut reserved = self.reserved.lock();
        *reserved += 1;
        Ok(SessionId(Ulid(*reserved)))
    }

    fn run(&self, task: Task) -> BoxFuture<'static, WorkerEnd> {
        self.left.lock().push(task.worker_session_id);
        Box::pin(std::future::pending())
    }

    fn left(&self, _: ToolUseId) -> BoxFuture<'static, Vec<SessionId>> {
        let left = std::mem::take(&mut *self.left.lock());
        Box::pin(async move { left })
    }
}

fn delegating(
    name: &'static str,
    work: impl Fn(ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>>
    + Send
    + Sync
    + 'static,
) -> Arc<dyn Tool> {
    Arc::new(Double {
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
        let given = call.context.delegate.reserve();
        Box::pin(async move { Ok(json!(given.map_err(|why| why.to_string()).is_ok())) })
    });
    let mut troupe = Troupe::new(script).tool(tool);
    let mut pack = Pack::clone(&troupe.pack);
    pack.limits.workers_max = 2;
    troupe.pack = Arc::new(pack);
    troupe.delegate = Arc::new(Office::default());
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    let given = results(&troupe.asked("orchestrator")[1]);
    let had = given.iter().filter(|(given, _)| *given == json!(true));
    assert_eq!((given.len(), had.count()), (3, 2));
}

/// A task that never ends.
fn hang(call: &ToolInvocation) -> BoxFuture<'static, WorkerEnd> {
    call.context.delegate.run(Task {
        worker_session_id: SessionId(Ulid(5)),
        tool_use_id: call.tool_use_id,
        agent: "reader".into(),
        task: "read".into(),
        limit: Duration::from_secs(1),
        trace: None,
    })
}

/// The failures of workers and tools, in order.
fn failures(troupe: &Troupe) -> Vec<String> {
    let bodies = troupe.recorder.bodies();
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
    let mut troupe = Troupe::new(script).tool(tool);
    troupe.delegate = Arc::new(Office::default());
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    let id = SessionId(Ulid(5));
    let expected = [
        format!("worker:{id} {:?}", FailureMode::Timeout),
        "llm_feedback Timeout".to_owned(),
    ];
    assert_eq!(failures(&troupe), expected);
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
    let mut troupe = Troupe::new(script).tool(tool);
    troupe.delegate = Arc::new(Office::default());
    let outcome = troupe.play().await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    let id = SessionId(Ulid(5));
    let expected = [
        format!("worker:{id} {:?}", FailureMode::Timeout),
        "search Timeout".to_owned(),
        "shop".to_owned(),
        "ask_shop Timeout".to_owned(),
    ];
    assert_eq!(failures(&troupe), expected);
}

/// A tool behind a server.
struct Served(&'static str);

impl Tool for Served {
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
    let mut troupe = worker("shop").tool(Arc::new(Served("search")));
    troupe = troupe.tool(Arc::new(Served("show")));
    troupe.play().await;
    let bodies = troupe.recorder.bodies();
    let first: Vec<_> = bodies.iter().take(3).map(|(_, body)| body).collect();
    assert!(matches!(first[0], Body::RouteDecided(_)));
    assert!(matches!(first[1], Body::McpListToolsStarted(one) if one.server == "files"));
    assert!(
        matches!(first[2], Body::McpListToolsCompleted(one) if (one.server.as_str(), one.tool_count) == ("files", 2))
    );
}
