//! The behaviour of each tool, and invalid inputs.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::body::tool::{ToolCalled, ToolCompleted};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, ToolUseId, Ulid};

use crate::builtin::trial::{echo, sleep};
use crate::tests::support::{CountingIdGenerator, EventSink, FixedClock, call};
use crate::tool::ToolFailure;
use crate::toolbox::{DuplicateToolName, Toolbox};

fn toolbox() -> Toolbox {
    Toolbox::with_trial_tools(
        Arc::new(FixedClock(1_000)),
        Arc::new(CountingIdGenerator::default()),
    )
}

async fn run(name: &str, input: Value, sink: &Arc<EventSink>) -> Result<Value, ToolFailure> {
    let call = call(input, sink);
    toolbox().get(name).expect("a tool").run(call).await
}

#[tokio::test(start_paused = true)]
async fn each_tool_returns_its_result() {
    let sink = EventSink::with_room(0);
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

// S2-089
#[tokio::test]
async fn failure_is_fatal_only_on_request() {
    let sink = EventSink::with_room(0);
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
async fn invalid_inputs_are_rejected_without_effects() {
    let sink = EventSink::with_room(100);
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
    for (name, input, message) in cases {
        let failure = ToolFailure::invalid_input(message);
        assert_eq!(run(name, input, &sink).await, Err(failure), "{name}");
    }
    assert_eq!(sink.emissions(), []);
}

#[tokio::test]
async fn burst_emits_two_events_per_step_and_waits_if_full() {
    let sink = EventSink::with_room(1_000);
    assert_eq!(
        run("burst", json!({"count": 200}), &sink).await,
        Ok(json!({"steps": 200, "events": 400}))
    );
    let pair = |n: u128| {
        let called = Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id: ToolUseId(Ulid(n)),
            tool_name: "burst.step".into(),
            tool_type: ToolType::Function,
            input_summary: format!("step {n} of 200"),
        });
        let completed = Body::ToolCompleted(ToolCompleted {
            upstream_id: None,
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
    assert_eq!(sink.emissions(), expected);
}

#[tokio::test]
async fn burst_stops_at_a_refusal() {
    let sink = EventSink::with_room(9);
    assert_eq!(
        run("burst", json!({"count": 200}), &sink).await,
        Err(ToolFailure::new(
            ToolErrorClass::Cancelled,
            "Stopped at step 5 of 200."
        ))
    );
    assert_eq!(sink.emissions().len(), 9);
}

#[test]
fn toolbox_rejects_a_duplicate_name() {
    let names: Vec<String> = toolbox()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["clock", "echo", "sleep", "fail", "burst"]);
    assert_eq!(
        toolbox().with(Arc::new(echo())).err(),
        Some(DuplicateToolName("echo".into()))
    );
    let own = Toolbox::new().with(Arc::new(sleep())).expect("a new name");
    assert!(own.get("sleep").is_some() && own.get("echo").is_none());
}
