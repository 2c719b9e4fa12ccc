//! The events of the built-in tools, and their names and texts in a pack.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::{Actor, Body, Clock, IdGenerator};
use turnwire_pack::{BuiltinFunction, RenderShape, ToolDef, ToolKind};

use crate::builtin::emit_status::emit_status;
use crate::builtin::feedback::feedback;
use crate::builtin::{delegate, render};
use crate::tests::support::{CountingIdGenerator, EventSink, FixedClock, call, context};
use crate::tool::{Tool, ToolFailure};

async fn run(tool: &dyn Tool, input: Value) -> (Result<Value, ToolFailure>, Vec<(Actor, Body)>) {
    let sink = EventSink::with_room(10);
    let result = tool.run(call(input, &sink)).await;
    let events = sink.emissions().into_iter();
    (
        result,
        events.map(|event| (event.actor, event.body)).collect(),
    )
}

#[tokio::test]
async fn status_has_the_agent_as_actor_and_any_id() {
    for id in ["searching_offers", "made_up", ""] {
        let (result, events) = run(&emit_status(), json!({"event_id": id})).await;
        assert_eq!(result, Ok(json!("noted")));
        let emitted = StatusEmitted {
            event_id: id.to_owned(),
            message: String::new(),
            invocation_id: None,
        };
        assert_eq!(
            events,
            [(Actor::subagent("shop"), Body::StatusEmitted(emitted))]
        );
    }
    let sink = EventSink::with_room(1);
    let mut own = context();
    own.agent = None;
    let mut call = call(json!({"event_id": "thinking"}), &sink);
    call.context = Arc::new(own);
    assert!(emit_status().run(call).await.is_ok());
    assert_eq!(sink.emissions()[0].actor, Actor::ORCHESTRATOR);
}

// S2-005, R-08
#[tokio::test]
async fn feedback_is_recorded_about_the_turn() {
    let input = json!({"rating": "up", "comment": "found it at once"});
    let (result, events) = run(&feedback(), input).await;
    assert_eq!(result, Ok(json!("kept")));
    let recorded = FeedbackRecorded {
        message_id: None,
        turn_id: Some(context().turn_id),
        rating: "up".to_owned(),
        comment: Some("found it at once".to_owned()),
    };
    let body = Body::FeedbackRecorded(recorded);
    assert_eq!(events, [(Actor::tool("llm_feedback"), body)]);
}

#[tokio::test]
async fn invalid_inputs_emit_nothing() {
    let cases: [(&dyn Tool, Value); 7] = [
        (&emit_status(), json!({})),
        (&emit_status(), json!({"event_id": 5})),
        (&emit_status(), json!({"event_id": "x".repeat(129)})),
        (&feedback(), json!({})),
        (&feedback(), json!({"rating": ""})),
        (&feedback(), json!({"rating": "up", "turn_id": "another"})),
        (
            &feedback(),
            json!({"rating": "up", "comment": "x".repeat(2_001)}),
        ),
    ];
    for (tool, input) in cases {
        let (result, events) = run(tool, input).await;
        let failure = result.expect_err("does not fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert_eq!(events, []);
    }
}

#[tokio::test]
async fn cancelled_turn_refuses_status_and_feedback() {
    let cases: [(&dyn Tool, Value); 2] = [
        (&emit_status(), json!({"event_id": "x"})),
        (&feedback(), json!({"rating": "up"})),
    ];
    for (tool, input) in cases {
        let failure = tool.run(call(input, &EventSink::with_room(0))).await;
        let failure = failure.expect_err("refused");
        assert_eq!(failure.class, ToolErrorClass::Cancelled);
    }
}

#[test]
fn missing_texts_of_a_pack_are_those_of_the_builtin() {
    let bare = ToolDef {
        approval: false,
        progress_status: None,
        name: "rate".into(),
        description: String::new(),
        kind: ToolKind::Direct(BuiltinFunction::LlmFeedback),
        input_schema: Value::Null,
        status: None,
        timeout_ms: None,
        remember: false,
    };
    let tool = feedback().renamed(&bare);
    assert_eq!(tool.name(), "rate");
    assert_eq!(tool.description(), feedback().description());
    assert_eq!(tool.input_schema(), feedback().input_schema());
    assert_eq!(
        (tool.status(), tool.remember(), tool.timeout()),
        (None, false, None)
    );
    let full = ToolDef {
        description: "Rates.".into(),
        input_schema: json!({"type": "object"}),
        status: Some("rating".into()),
        timeout_ms: Some(5),
        remember: true,
        approval: true,
        ..bare
    };
    let tool = feedback().renamed(&full);
    assert_eq!(tool.description(), "Rates.");
    assert_eq!(tool.input_schema(), json!({"type": "object"}));
    assert_eq!(tool.status(), Some("rating"));
    assert!(tool.approval(), "what must be allowed is asked about");
    assert_eq!(
        (tool.remember(), tool.timeout()),
        (true, Some(Duration::from_millis(5)))
    );
}

#[test]
fn documents_list_the_inputs_of_every_builtin_tool() {
    use BuiltinFunction as F;
    let page = include_str!("../../../../docs/tools.md");
    let section = page.split("## Built-in tools").nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("an end");
    let clock: Arc<dyn Clock> = Arc::new(FixedClock(1_000));
    let ids: Arc<dyn IdGenerator> = Arc::new(CountingIdGenerator::default());
    let functions = [
        F::Clock,
        F::Echo,
        F::Sleep,
        F::Fail,
        F::Burst,
        F::EmitStatus,
        F::LlmFeedback,
    ];
    let built = functions.map(|function| super::builtin(function, &clock, &ids));
    let direct = built
        .iter()
        .map(|tool| (format!("`{}`", tool.name()), tool.input_schema()));
    let list = render::schema(RenderShape::List, true);
    let single = render::schema(RenderShape::Single, true);
    // The rows of sub-agents are tested where their tools are made.
    let generated = [
        ("`render`, `shape: list`".to_owned(), list),
        ("`render`, `shape: single`".to_owned(), single),
        ("`delegate`".to_owned(), delegate::input_schema()),
    ];
    for (name, schema) in direct.chain(generated) {
        let start = format!("| {name} | ");
        let row = section.lines().find_map(|line| line.strip_prefix(&start));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        let input = row.split(" | ").next().expect("a cell");
        let fields = schema["properties"].as_object().expect("an object");
        assert_eq!(fields.is_empty(), input == "none", "{row}");
        for field in fields.keys() {
            assert!(input.contains(&format!("`{field}`")), "{field} in {row}");
        }
    }
}
