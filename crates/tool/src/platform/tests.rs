//! What the tools of the platform emit, and what a pack may call them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::feedback::Recorded;
use turnwire_event::body::status::Emitted;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::{Actor, Body};
use turnwire_pack::{BuiltinFunction, ToolDef, ToolKind};

use crate::platform::{EmitStatus, Feedback, Named};
use crate::stage::{Sink, call, scene};
use crate::tool::{Tool, ToolFailure};

async fn run(tool: &dyn Tool, input: Value) -> (Result<Value, ToolFailure>, Vec<(Actor, Body)>) {
    let sink = Sink::with_room(10);
    let given = tool.run(call(input, &sink)).await;
    let events = sink.taken().into_iter();
    (
        given,
        events.map(|event| (event.actor, event.body)).collect(),
    )
}

#[tokio::test]
async fn a_status_is_the_agents_and_any_id_is_passed_on() {
    for id in ["searching_offers", "made_up", ""] {
        let (given, events) = run(&EmitStatus, json!({"event_id": id})).await;
        assert_eq!(given, Ok(json!("noted")));
        let emitted = Emitted {
            event_id: id.to_owned(),
            message: String::new(),
        };
        assert_eq!(
            events,
            [(Actor::subagent("shop"), Body::StatusEmitted(emitted))]
        );
    }
    let sink = Sink::with_room(1);
    let mut own = scene();
    own.agent = None;
    let mut call = call(json!({"event_id": "thinking"}), &sink);
    call.scene = Arc::new(own);
    assert!(EmitStatus.run(call).await.is_ok());
    assert_eq!(sink.taken()[0].actor, Actor::ORCHESTRATOR);
}

#[tokio::test]
async fn s2_005_r_08_feedback_is_recorded_about_the_turn() {
    let input = json!({"rating": "up", "comment": "found it at once"});
    let (given, events) = run(&Feedback, input).await;
    assert_eq!(given, Ok(json!("kept")));
    let recorded = Recorded {
        message_id: None,
        turn_id: Some(scene().turn_id),
        rating: "up".to_owned(),
        comment: Some("found it at once".to_owned()),
    };
    let body = Body::FeedbackRecorded(recorded);
    assert_eq!(events, [(Actor::tool("llm_feedback"), body)]);
}

#[tokio::test]
async fn inputs_that_do_not_fit_emit_nothing() {
    let cases: [(&dyn Tool, Value); 7] = [
        (&EmitStatus, json!({})),
        (&EmitStatus, json!({"event_id": 5})),
        (&EmitStatus, json!({"event_id": "x".repeat(129)})),
        (&Feedback, json!({})),
        (&Feedback, json!({"rating": ""})),
        (&Feedback, json!({"rating": "up", "turn_id": "another"})),
        (
            &Feedback,
            json!({"rating": "up", "comment": "x".repeat(2_001)}),
        ),
    ];
    for (tool, input) in cases {
        let (given, events) = run(tool, input).await;
        let failure = given.expect_err("does not fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert_eq!(events, []);
    }
}

#[tokio::test]
async fn a_turn_that_is_stopping_takes_neither() {
    let cases: [(&dyn Tool, Value); 2] = [
        (&EmitStatus, json!({"event_id": "x"})),
        (&Feedback, json!({"rating": "up"})),
    ];
    for (tool, input) in cases {
        let failure = tool.run(call(input, &Sink::with_room(0))).await;
        let failure = failure.expect_err("refused");
        assert_eq!(failure.class, ToolErrorClass::Cancelled);
    }
}

#[test]
fn what_a_pack_does_not_say_the_function_says() {
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
    let tool = Named::new(&bare, Arc::new(Feedback));
    assert_eq!(tool.name(), "rate");
    assert_eq!(tool.description(), Feedback.description());
    assert_eq!(tool.input_schema(), Feedback.input_schema());
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
    let tool = Named::new(&full, Arc::new(Feedback));
    assert_eq!(tool.description(), "Rates.");
    assert_eq!(tool.input_schema(), json!({"type": "object"}));
    assert_eq!(tool.status(), Some("rating"));
    assert!(tool.approval(), "what must be allowed is asked about");
    assert_eq!(
        (tool.remember(), tool.timeout()),
        (true, Some(Duration::from_millis(5)))
    );
}
