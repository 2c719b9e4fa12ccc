//! The events of a turn and their order (S3-046 to S3-061, S3-096).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::{ServerFixture, kinds, shape};
use turnwire_event::code::{LlmErrorClass, ToolErrorClass, TurnStatus};
use turnwire_event::{Body, Event, EventType, StopReason};
use turnwire_testkit::cancel_case::check_uncancelled_turn;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::SubscribeOptions;

// S3-052
#[tokio::test]
async fn tool_turn_events_are_in_order() {
    let steps = [
        ScriptStep::thinking("Let me see.", "c2Vhb"),
        ScriptStep::text("I will echo. "),
        ScriptStep::slow_tool(tool::ECHO, json!({"text": "x"}), 3, 1),
        ScriptStep::text("Done."),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let events = fixture.turn("go").await;
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "message.start",
        "thinking.delta",
        "text.delta",
        "tool.use_start",
        "tool.use_input_delta",
        "tool.use_end",
        "message.complete",
        "llm.call_completed",
        "tool.called",
        "tool.completed",
        "llm.call_started",
        "message.start",
        "text.delta",
        "message.complete",
        "llm.call_completed",
        "dispatch.traced",
        "turn.completed",
    ];
    assert_eq!(shape(&events), expected);
    assert_eq!(check_uncancelled_turn(&events), Ok(()));
    fixture.check_history().await;
}

// S3-055
#[tokio::test]
async fn thinking_signature_is_on_its_last_delta() {
    let fixture = ServerFixture::saying([
        ScriptStep::thinking("One two three four five six", "c2Vhb"),
        ScriptStep::text("Yes."),
    ])
    .await;
    let events = fixture.turn("think").await;
    let seals: Vec<Option<String>> = events
        .iter()
        .filter_map(|e| match &e.body {
            Body::ThinkingDelta(delta) => Some(delta.signature.clone()),
            _ => None,
        })
        .collect();
    let (last, others) = seals.split_last().expect("thoughts");
    assert_eq!(last.as_deref(), Some("c2Vhb"));
    assert!(others.iter().all(Option::is_none), "{seals:?}");
    fixture.check_history().await;
}

// S3-058, S3-057
#[tokio::test]
async fn tool_input_fragments_add_up() {
    let input = json!({"text": "a \"quoted\" \u{6c34} \u{1f30a} word"});
    let fixture = ServerFixture::saying([
        ScriptStep::slow_tool(tool::ECHO, input.clone(), 9, 1),
        ScriptStep::text("ok"),
    ])
    .await;
    let events = fixture.turn("go").await;
    let mut raw = String::new();
    let mut pieces = 0;
    for event in &events {
        match &event.body {
            Body::ToolUseInputDelta(delta) => {
                raw.push_str(&delta.partial_json);
                pieces += 1;
            }
            Body::ToolUseEnd(end) => assert_eq!(end.final_input, input),
            _ => {}
        }
    }
    assert_eq!(serde_json::from_str::<Value>(&raw).expect("JSON"), input);
    assert!(pieces > 1);
    fixture.check_history().await;
}

// serial: tools that run at once end within 1.1 s
// S3-066
#[tokio::test]
async fn tools_requested_together_run_concurrently() {
    let steps = [
        ScriptStep::tool(tool::SLEEP, json!({"ms": 400})),
        ScriptStep::tool(tool::SLEEP, json!({"ms": 400})),
        ScriptStep::tool(tool::SLEEP, json!({"ms": 400})),
        ScriptStep::text("done"),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let started = Instant::now();
    let events = fixture.turn("go").await;
    assert!(
        started.elapsed() < Duration::from_millis(1_100),
        "{:?}",
        started.elapsed()
    );
    let tools: Vec<EventType> = kinds(&events)
        .into_iter()
        .filter(|kind| matches!(kind, EventType::ToolCalled | EventType::ToolCompleted))
        .collect();
    let (called, done) = (EventType::ToolCalled, EventType::ToolCompleted);
    assert_eq!(tools, [called, called, called, done, done, done]);
    assert_eq!(check_uncancelled_turn(&events), Ok(()));
    fixture.check_history().await;
}

// S3-061
#[tokio::test]
async fn large_message_is_sent_whole() {
    // Fewer frames than a connection may be behind, so that a slow reader is not closed.
    let line = "0123456789".repeat(100);
    let fixture = ServerFixture::saying([ScriptStep::slow(&line, 1_000, 0).repeat(300)]).await;
    let events = fixture.turn("go").await;
    let end = events.iter().find_map(|e| match &e.body {
        Body::MessageComplete(end) => Some(end),
        _ => None,
    });
    let end = end.expect("a message");
    let text = end.final_content[0].as_text().expect("words");
    assert_eq!(text.len(), 300_000);
    fixture.check_history().await;
}

// S3-096
#[tokio::test]
async fn broken_model_stream_fails_the_turn() {
    let script = ModelScript::new()
        .on("^early", [ScriptStep::error("rate_limited")])
        .on(
            "",
            [
                ScriptStep::text("In the middle of this"),
                ScriptStep::error("transport"),
            ],
        );
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let events = fixture.turn("late").await;
    let tail: Vec<&str> = shape(&events).into_iter().skip(4).collect();
    assert_eq!(
        tail,
        [
            "text.delta",
            "message.complete",
            "llm.call_failed",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    for event in &events {
        match &event.body {
            Body::MessageComplete(end) => assert_eq!(end.stop_reason, StopReason::Error),
            Body::LlmCallFailed(call) => assert_eq!(call.error_class, LlmErrorClass::Transport),
            Body::TurnCompleted(end) => assert_eq!(end.status, TurnStatus::Failed),
            _ => {}
        }
    }
    let early = fixture.turn("early").await;
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "llm.call_failed",
        "dispatch.traced",
        "turn.completed",
    ];
    assert_eq!(shape(&early), expected);
    let Some(Body::TurnCompleted(end)) = early.last().map(|e| &e.body) else {
        panic!("no end")
    };
    assert_eq!(
        serde_json::to_value(&end.error).expect("plain data")["code"],
        "RATE_LIMIT_ERROR"
    );
    let history = fixture.check_history().await;
    let failed = history.sessions[0]
        .messages
        .iter()
        .filter(|m| m["status"] == "failed")
        .count();
    assert_eq!(failed, 1);
}

#[tokio::test]
async fn failing_tool_fails_alone() {
    let steps = [
        ScriptStep::tool(tool::FAIL, json!({"message": "no luck"})),
        ScriptStep::tool(tool::ECHO, json!({"text": "still here"})),
        ScriptStep::tool("no_such_tool", json!({})),
        ScriptStep::text("done"),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let events = fixture.turn("go").await;
    assert_eq!(check_uncancelled_turn(&events), Ok(()));
    let failed: Vec<(&str, ToolErrorClass)> = events
        .iter()
        .filter_map(|e| match &e.body {
            Body::ToolFailed(tool) => Some((tool.tool_name.as_str(), tool.error_class)),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(
        failed.contains(&("fail", ToolErrorClass::Internal)),
        "{failed:?}"
    );
    assert!(
        failed.contains(&("no_such_tool", ToolErrorClass::InvalidInput)),
        "{failed:?}"
    );
    assert_eq!(
        kinds(&events)
            .iter()
            .filter(|&&k| k == EventType::ToolCompleted)
            .count(),
        1
    );
    let Some(Body::TurnCompleted(end)) = events.last().map(|e| &e.body) else {
        panic!("no end")
    };
    assert_eq!(end.status, TurnStatus::Ok);
    fixture.check_history().await;
}

// S3-047
#[tokio::test]
async fn two_clients_see_the_same_order() {
    let fixture = ServerFixture::saying([
        ScriptStep::slow("some words", 2, 3),
        ScriptStep::tool(tool::CLOCK, json!({})),
        ScriptStep::slow("and more", 2, 3),
    ])
    .await;
    let mut one = fixture.watch("one", SubscribeOptions::live()).await;
    let mut two = fixture.watch("two", SubscribeOptions::live()).await;
    let turn = fixture.submit("go").await;
    let (a, b) = tokio::join!(one.turn(turn), two.turn(turn));
    let (a, b): (Vec<Event>, Vec<Event>) = (a.expect("events"), b.expect("events"));
    assert_eq!(a, b);
    fixture.check_history().await;
}

// S3-107
#[tokio::test]
async fn session_cost_is_the_sum_of_call_costs() {
    let script = ModelScript::new().on(
        "",
        [
            ScriptStep::text("a"),
            ScriptStep::tool(tool::CLOCK, json!({})),
            ScriptStep::stop("tool_use", 0.25),
            ScriptStep::text("b"),
            ScriptStep::stop("end_turn", 0.5),
        ],
    );
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    for _ in 0..2 {
        let events = fixture.turn("go").await;
        let Some(Body::TurnCompleted(end)) = events.last().map(|e| &e.body) else {
            panic!("no end")
        };
        assert_eq!(
            (
                end.usage.cost_usd,
                end.usage.input_tokens,
                end.usage.output_tokens
            ),
            (0.75, 22, 14)
        );
    }
    let attached = fixture
        .api
        .attach(fixture.session)
        .await
        .expect("an answer");
    assert_eq!(
        (&attached["cost_so_far_usd"], &attached["turn_count"]),
        (&json!(1.5), &json!(2))
    );
    let mut client = fixture.watch("looking", SubscribeOptions::snapshot()).await;
    client
        .send(&json!({"type": "ping", "nonce": "x"}))
        .await
        .expect("sent");
    client.next().await.expect("the snapshot");
    fixture.check_history().await;
}

#[tokio::test]
async fn model_sees_earlier_messages() {
    let fixture = ServerFixture::saying([ScriptStep::text("I heard you.")]).await;
    let mut read = Vec::new();
    for _ in 0..3 {
        let events = fixture.turn("the same words each time").await;
        let Some(Body::TurnCompleted(end)) = events.last().map(|e| &e.body) else {
            panic!("no end")
        };
        read.push(end.usage.input_tokens);
    }
    assert!(
        read.is_sorted_by(|a, b| a < b),
        "each turn reads more than the one before: {read:?}"
    );
    fixture.check_history().await;
}
