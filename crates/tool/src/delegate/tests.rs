//! What the tool tells of a worker, whoever has it.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::code::{FailureMode, ToolErrorClass};
use turnwire_event::port::{self, BoxFuture, Emitter, NoWorker, Task, WorkerEnd};
use turnwire_event::{SessionId, ToolUseId, Ulid};
use turnwire_pack::{ToolDef, ToolKind};

use super::Delegate;
use crate::scene::Scene;
use crate::stage::{Sink, scene};
use crate::tool::{Call, Tool as _, ToolFailure};

/// Has one worker, which ends as it is told.
struct Office {
    end: Result<WorkerEnd, NoWorker>,
    tasks: Mutex<Vec<Task>>,
}

impl port::Delegate for Office {
    fn reserve(&self) -> Result<SessionId, NoWorker> {
        self.end.clone().map(|_| SessionId(Ulid(9)))
    }

    fn run(&self, task: Task) -> BoxFuture<'static, WorkerEnd> {
        self.tasks.lock().push(task);
        let end = self.end.clone().expect("nobody runs who was not reserved");
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

struct Ran {
    given: Result<Value, ToolFailure>,
    told: Vec<Value>,
    tasks: Vec<Task>,
}

async fn run(agent: Option<&str>, end: Result<WorkerEnd, NoWorker>, input: Value) -> Ran {
    let office = Arc::new(Office {
        end,
        tasks: Mutex::default(),
    });
    let sink = Sink::with_room(2);
    let call = Call {
        tool_use_id: ToolUseId(Ulid(7)),
        input,
        emitter: Arc::clone(&sink) as Arc<dyn Emitter>,
        scene: Arc::new(Scene {
            delegate: Arc::clone(&office) as Arc<dyn port::Delegate>,
            agent: agent.map(str::to_owned),
            ..scene()
        }),
    };
    let given = Delegate::new(&def(), "reader").run(call).await;
    let told = sink.taken().into_iter().map(|emission| {
        assert_eq!(
            emission.actor.to_string(),
            format!("worker:{}", SessionId(Ulid(9)))
        );
        let mut payload = Vec::new();
        emission.body.write(&mut payload);
        let payload: Value = serde_json::from_slice(&payload).expect("JSON");
        json!([emission.body.kind().name(), payload])
    });
    Ran {
        given,
        told: told.collect(),
        tasks: office.tasks.lock().clone(),
    }
}

fn done(text: &str) -> Result<WorkerEnd, NoWorker> {
    Ok(WorkerEnd::Completed {
        success: true,
        text: text.into(),
    })
}

#[tokio::test]
async fn s3_086_the_worker_is_told_of_before_and_after() {
    let id = SessionId(Ulid(9)).to_string();
    let tool = ToolUseId(Ulid(7)).to_string();
    let long = "é".repeat(300);
    let ran = run(None, done(&long), json!({"task": "Read it."})).await;
    let shown = format!("{}…", "é".repeat(255));
    assert_eq!(
        ran.told,
        [
            json!(["delegate.started", {"worker_session_id": id, "tool_use_id": tool, "task_summary": "Read it."}]),
            json!(["delegate.completed", {"worker_session_id": id, "success": true, "summary": shown}]),
        ]
    );
    assert_eq!(ran.given, Ok(json!({"success": true, "answer": long})));
    let task = &ran.tasks[0];
    assert_eq!(
        (task.agent.as_str(), task.task.as_str()),
        ("reader", "Read it.")
    );
    assert_eq!(task.limit.as_secs(), 5);
    let tool = Delegate::new(&def(), "reader");
    assert!(
        tool.timeout().expect("a limit") > task.limit,
        "its own words come first"
    );
    assert!(tool.approval());
}

#[tokio::test]
async fn d_46_what_a_sub_agent_says_is_shown_by_its_size() {
    let ran = run(Some("shop"), done("secret"), json!({"task": "Read it."})).await;
    assert_eq!(ran.told[0][1]["task_summary"], "8 bytes");
    assert_eq!(ran.told[1][1]["summary"], "6 bytes");
    assert_eq!(ran.given.expect("an answer")["answer"], "secret");
}

#[tokio::test]
async fn a_worker_that_fails_is_told_and_typed() {
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
        let ran = run(
            None,
            Ok(WorkerEnd::Failed(mode)),
            json!({"task": "Read it."}),
        )
        .await;
        assert_eq!(ran.told[1][0], "delegate.failed");
        assert_eq!(ran.told[1][1]["failure_mode"], word);
        let failure = ran.given.expect_err("a failure");
        assert_eq!((failure.class, failure.fatal), (class, false));
    }
}

#[tokio::test]
async fn where_there_is_no_worker_nobody_is_told_of_one() {
    for why in [NoWorker::TooMany, NoWorker::TooDeep, NoWorker::Unavailable] {
        let ran = run(None, Err(why), json!({"task": "Read it."})).await;
        assert!(ran.told.is_empty() && ran.given.is_err());
    }
}

#[tokio::test]
async fn a_task_that_is_none_makes_no_worker() {
    let long = "x".repeat(16_001);
    for input in [
        json!({}),
        json!({"task": ""}),
        json!({"task": " \n"}),
        json!({"task": 7}),
        json!({"task": long}),
        json!({"task": "a", "agent": "root"}),
    ] {
        let ran = run(None, done("x"), input).await;
        let failure = ran.given.expect_err("a failure");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert!(ran.told.is_empty() && ran.tasks.is_empty());
    }
    let most = "é".repeat(16_000);
    let ran = run(None, done("x"), json!({"task": most})).await;
    assert!(ran.given.is_ok());
}
