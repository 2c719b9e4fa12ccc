//! Each tool does its one thing, and refuses what does not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::body::tool::{Called, Completed};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{BoxFuture, Emission, EmitError, Emitter, MessageEnd, Refusal};
use turnwire_event::{
    Actor, Body, Clock, ContentBlock, EpisodeId, Epoch, Mint, Owner, Position, Seq, SessionId,
    TenantId, Timestamp, ToolUseId, TurnId, Ulid,
};

use crate::scene::Scene;
use crate::shelf::Shelf;
use crate::tool::{Call, ToolFailure};
use crate::toolbox::{NameTaken, Toolbox};
use crate::trial::{Echo, Sleep};

struct At(i64);

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }
}

#[derive(Default)]
struct Count(AtomicU64);

impl Mint for Count {
    fn ulid(&self) -> Ulid {
        Ulid(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// Takes `room` events, is full once after every third, and refuses the rest.
#[derive(Default)]
struct Sink {
    room: usize,
    full: Mutex<bool>,
    taken: Mutex<Vec<Emission>>,
}

impl Emitter for Sink {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let mut taken = self.taken.lock();
        if taken.len() == self.room {
            return Err(Refusal::Cancelled.into());
        }
        let mut full = self.full.lock();
        if taken.len() % 3 == 2 && !*full {
            *full = true;
            return Err(EmitError::Full(Box::new(emission)));
        }
        *full = false;
        taken.push(emission);
        Ok(Position::persisted(Epoch::FIRST, Seq(taken.len() as u64)))
    }

    fn complete(&self, _: MessageEnd) -> Result<Vec<ContentBlock>, Refusal> {
        Err(Refusal::Ended)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn committed(&self, _: Position) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
}

fn scene() -> Scene {
    Scene {
        owner: Owner {
            tenant: TenantId(0),
            principal: "user-42".parse().expect("a principal"),
        },
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(2)),
        episode_id: EpisodeId(Ulid(3)),
        locale: "en".to_owned(),
        location: None,
        agent: None,
        trace: None,
        shelf: Shelf::new(),
        definition: "1".to_owned(),
    }
}

fn toolbox() -> Toolbox {
    Toolbox::trial(Arc::new(At(1_000)), Arc::new(Count::default()))
}

async fn run(name: &str, input: Value, sink: &Arc<Sink>) -> Result<Value, ToolFailure> {
    let call = Call {
        tool_use_id: ToolUseId(Ulid(7)),
        input,
        emitter: Arc::clone(sink) as Arc<dyn Emitter>,
        scene: Arc::new(scene()),
    };
    toolbox().get(name).expect("a tool").run(call).await
}

#[tokio::test(start_paused = true)]
async fn each_tool_gives_its_result() {
    let sink = Arc::new(Sink::default());
    let begun = tokio::time::Instant::now();
    assert_eq!(
        run("clock", json!({}), &sink).await,
        Ok(json!("1970-01-01T00:00:01.000Z"))
    );
    assert_eq!(
        run("echo", json!({"text": "hi"}), &sink).await,
        Ok(json!("hi"))
    );
    assert_eq!(begun.elapsed().as_millis(), 0);
    assert_eq!(
        run("sleep", json!({"ms": 60_000}), &sink).await,
        Ok(json!("slept 60000 ms"))
    );
    assert_eq!(begun.elapsed().as_millis(), 60_000);
    assert_eq!(
        run("fail", json!({}), &sink).await,
        Err(ToolFailure::internal("This tool always fails."))
    );
    assert_eq!(
        run("fail", json!({"message": "No luck."}), &sink).await,
        Err(ToolFailure::internal("No luck."))
    );
}

#[tokio::test]
async fn s2_089_a_tool_can_fail_beyond_repair_or_not() {
    let sink = Arc::new(Sink::default());
    for (input, fatal) in [
        (json!({}), false),
        (json!({"fatal": false}), false),
        (json!({"fatal": true}), true),
    ] {
        let failure = run("fail", input, &sink).await.expect_err("always");
        assert_eq!(failure.fatal, fatal);
    }
}

#[tokio::test]
async fn inputs_that_do_not_fit_are_refused_before_anything_happens() {
    let sink = Arc::new(Sink {
        room: 100,
        ..Sink::default()
    });
    let cases = [
        ("clock", json!({"zone": "UTC"}), "This tool takes no input."),
        ("echo", json!({}), "`text` is missing: a string."),
        ("echo", json!({"text": 5}), "`text` must be a string."),
        (
            "sleep",
            json!({"ms": 60_001}),
            "`ms` must be a whole number from 0 to 60000.",
        ),
        (
            "fail",
            json!({"message": []}),
            "`message` must be a string.",
        ),
        (
            "burst",
            json!({"count": 0}),
            "`count` must be a whole number from 1 to 10000.",
        ),
        (
            "burst",
            json!({"count": 10_001}),
            "`count` must be a whole number from 1 to 10000.",
        ),
    ];
    for (name, input, told) in cases {
        let failure = ToolFailure::invalid_input(told);
        assert_eq!(run(name, input, &sink).await, Err(failure), "{name}");
    }
    assert_eq!(*sink.taken.lock(), []);
}

#[tokio::test]
async fn burst_emits_a_pair_a_step_and_waits_when_the_outbox_is_full() {
    let sink = Arc::new(Sink {
        room: 1_000,
        ..Sink::default()
    });
    assert_eq!(
        run("burst", json!({"count": 200}), &sink).await,
        Ok(json!({"steps": 200, "events": 400}))
    );
    let pair = |n: u128| {
        let called = Body::ToolCalled(Called {
            tool_use_id: ToolUseId(Ulid(n)),
            tool_name: "burst.step".into(),
            tool_type: ToolType::Function,
            input_summary: format!("step {n} of 200"),
        });
        let completed = Body::ToolCompleted(Completed {
            tool_use_id: ToolUseId(Ulid(n)),
            tool_name: "burst.step".into(),
            tool_type: ToolType::Function,
            duration_ms: 0,
            result_summary: n.to_string(),
            result_sha256: sha256_hex(n.to_string().as_bytes()),
        });
        [called, completed].map(|body| Emission::new(Actor::tool("burst"), body))
    };
    let expected: Vec<Emission> = (1..=200).flat_map(pair).collect();
    assert_eq!(*sink.taken.lock(), expected);
}

#[tokio::test]
async fn burst_stops_when_it_is_refused() {
    let sink = Arc::new(Sink {
        room: 9,
        ..Sink::default()
    });
    assert_eq!(
        run("burst", json!({"count": 200}), &sink).await,
        Err(ToolFailure::new(
            ToolErrorClass::Cancelled,
            "Stopped at step 5 of 200."
        ))
    );
    assert_eq!(sink.taken.lock().len(), 9);
}

#[test]
fn a_toolbox_has_one_tool_a_name() {
    let names: Vec<String> = toolbox()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["clock", "echo", "sleep", "fail", "burst"]);
    assert_eq!(
        toolbox().with(Arc::new(Echo)).err(),
        Some(NameTaken("echo".into()))
    );
    let own = Toolbox::new().with(Arc::new(Sleep)).expect("a new name");
    assert!(own.get("sleep").is_some() && own.get("echo").is_none());
}
