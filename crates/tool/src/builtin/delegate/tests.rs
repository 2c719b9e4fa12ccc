//! The events and results of a worker.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::body::delegate::SummaryDetail;
use turnwire_event::code::{FailureMode, ToolErrorClass};
use turnwire_event::port::{self, BoxFuture, EventEmitter, WorkerEnd, WorkerRefusal, WorkerTask};
use turnwire_event::{SessionId, ToolUseId, Ulid};
use turnwire_pack::{ToolDef, ToolKind};

use super::DelegateTool;
use crate::tests::support::{EventSink, context};
use crate::tool::ToolContext;
use crate::tool::{Tool as _, ToolFailure, ToolInvocation};

/// Has one worker, which ends with `end`.
struct FakeDelegate {
    end: Result<WorkerEnd, WorkerRefusal>,
    tasks: Mutex<Vec<WorkerTask>>,
    discarded: Mutex<Vec<SessionId>>,
}

impl port::WorkerLauncher for FakeDelegate {
    fn create(&self, agent: &str) -> BoxFuture<'static, Result<SessionId, WorkerRefusal>> {
        assert_eq!(agent, "reader");
        let created = self.end.clone().map(|_| SessionId(Ulid(9)));
        Box::pin(std::future::ready(created))
    }

    fn discard(&self, worker: SessionId) {
        self.discarded.lock().push(worker);
    }

    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        self.tasks.lock().push(task);
        let end = self.end.clone().expect("only a created worker runs");
        Box::pin(std::future::ready(end))
    }
}

fn def() -> ToolDef {
    ToolDef {
        name: "research".into(),
        description: "Looks things up.".into(),
        kind: ToolKind::Delegate {
            agent: "reader".into(),
        },
        input_schema: Value::Null,
        status: None,
        timeout_ms: Some(5_000),
        remember: false,
        approval: true,
        progress_status: None,
    }
}

struct RunOutcome {
    result: Result<Value, ToolFailure>,
    events: Vec<Value>,
    tasks: Vec<WorkerTask>,
    discarded: Vec<SessionId>,
}

async fn run(
    agent: Option<&str>,
    end: Result<WorkerEnd, WorkerRefusal>,
    input: Value,
) -> RunOutcome {
    let delegate = Arc::new(FakeDelegate {
        end,
        tasks: Mutex::default(),
        discarded: Mutex::default(),
    });
    let sink = EventSink::with_room(2);
    let call = ToolInvocation {
        tool_use_id: ToolUseId(Ulid(7)),
        input,
        emitter: Arc::clone(&sink) as Arc<dyn EventEmitter>,
        context: Arc::new(ToolContext {
            delegate: Arc::clone(&delegate) as Arc<dyn port::WorkerLauncher>,
            agent: agent.map(str::to_owned),
            ..context()
        }),
    };
    let result = DelegateTool::build(&def(), "reader").run(call).await;
    let events = sink.emissions().into_iter().map(|emission| {
        assert_eq!(
            emission.actor.to_string(),
            format!("worker:{}", SessionId(Ulid(9)))
        );
        let mut payload = Vec::new();
        emission.body.write(&mut payload);
        let payload: Value = serde_json::from_slice(&payload).expect("JSON");
        json!([emission.body.kind().name(), payload])
    });
    RunOutcome {
        result,
        events: events.collect(),
        tasks: delegate.tasks.lock().clone(),
        discarded: delegate.discarded.lock().clone(),
    }
}

fn done(text: &str) -> Result<WorkerEnd, WorkerRefusal> {
    Ok(WorkerEnd::Completed {
        success: true,
        text: text.into(),
    })
}

// S3-086
#[tokio::test]
async fn worker_is_announced_before_and_reported_after() {
    let id = SessionId(Ulid(9)).to_string();
    let tool = ToolUseId(Ulid(7)).to_string();
    let long = "é".repeat(300);
    let outcome = run(None, done(&long), json!({"task": "Read it."})).await;
    let shown = format!("{}…", "é".repeat(255));
    assert_eq!(
        outcome.events,
        [
            json!(["delegate.started", {"worker_session_id": id, "tool_use_id": tool, "task_summary": "Read it."}]),
            json!(["delegate.completed", {"worker_session_id": id, "success": true, "summary": shown}]),
        ]
    );
    assert_eq!(outcome.result, Ok(json!({"success": true, "answer": long})));
    let task = &outcome.tasks[0];
    assert_eq!(
        (task.task.as_str(), task.detail),
        ("Read it.", SummaryDetail::Text)
    );
    assert!(outcome.discarded.is_empty());
    assert_eq!(task.limit.as_secs(), 5);
    let tool = DelegateTool::build(&def(), "reader");
    assert!(
        tool.timeout().expect("a limit") > task.limit,
        "its own words come first"
    );
    assert!(tool.approval());
}

// D-46
#[tokio::test]
async fn summary_of_a_sub_agent_is_its_size() {
    let outcome = run(Some("shop"), done("secret"), json!({"task": "Read it."})).await;
    assert_eq!(outcome.events[0][1]["task_summary"], "8 bytes");
    assert_eq!(outcome.events[1][1]["summary"], "6 bytes");
    assert_eq!(outcome.result.expect("an answer")["answer"], "secret");
}

#[tokio::test]
async fn failed_worker_is_reported_with_its_class() {
    let cases = [
        (
            FailureMode::CancelledByUser,
            ToolErrorClass::Cancelled,
            "cancelled_by_user",
        ),
        (FailureMode::Timeout, ToolErrorClass::Timeout, "timeout"),
        (FailureMode::Error, ToolErrorClass::Internal, "error"),
    ];
    for (mode, class, word) in cases {
        let outcome = run(
            None,
            Ok(WorkerEnd::Failed(mode)),
            json!({"task": "Read it."}),
        )
        .await;
        assert_eq!(outcome.events[1][0], "delegate.failed");
        assert_eq!(outcome.events[1][1]["failure_mode"], word);
        let failure = outcome.result.expect_err("a failure");
        assert_eq!((failure.class, failure.fatal), (class, false));
    }
}

#[tokio::test]
async fn missing_worker_is_a_failure_without_events() {
    for reason in [
        WorkerRefusal::TooMany,
        WorkerRefusal::TooDeep,
        WorkerRefusal::Unavailable,
    ] {
        let outcome = run(None, Err(reason), json!({"task": "Read it."})).await;
        assert!(outcome.events.is_empty() && outcome.result.is_err());
    }
}

#[tokio::test]
async fn invalid_task_starts_no_worker() {
    let long = "x".repeat(16_001);
    for input in [
        json!({}),
        json!({"task": ""}),
        json!({"task": " \n"}),
        json!({"task": 7}),
        json!({"task": long}),
        json!({"task": "a", "agent": "root"}),
    ] {
        let outcome = run(None, done("x"), input).await;
        let failure = outcome.result.expect_err("a failure");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert!(outcome.events.is_empty() && outcome.tasks.is_empty());
    }
    let most = "é".repeat(16_000);
    let outcome = run(None, done("x"), json!({"task": most})).await;
    assert!(outcome.result.is_ok());
}
