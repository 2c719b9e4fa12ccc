//! Cancels: each case of S3 6.2, by HTTP and WebSocket, once and repeated (SC-22, SC-23).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::{ServerFixture, shape};
use turnwire_event::code::{CancelCode, LlmErrorClass, Phase, ToolErrorClass};
use turnwire_event::{Body, Event, EventType, ResponseId, StopReason, TurnId};
use turnwire_testkit::cancel_case::{CancelCase, classify_cancel};
use turnwire_testkit::history::History;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

const SLOW: &str = "a long answer that takes its time and that nobody will want to hear to its end";

/// Watches a turn up to its first event of a kind, and on for a moment.
async fn reach(
    fixture: &ServerFixture,
    client: &mut WatchClient,
    kind: EventType,
    nth: usize,
) -> (TurnId, Vec<Event>) {
    let turn = fixture.submit("go").await;
    let mut seen = Vec::new();
    for _ in 0..nth {
        seen.extend(
            client
                .until(|e| e.body.kind() == kind)
                .await
                .expect("it comes"),
        );
    }
    (turn, seen)
}

/// The whole turn: what was seen before the cancel and what came after it.
async fn rest_of(client: &mut WatchClient, turn: TurnId, mut seen: Vec<Event>) -> Vec<Event> {
    seen.extend(client.turn(turn).await.expect("an end"));
    seen.retain(|e| e.turn_id == Some(turn));
    seen
}

/// The types after the cancel was asked for.
fn tail(events: &[Event]) -> Vec<&'static str> {
    let cancel_index = events
        .iter()
        .position(|e| e.body.kind() == EventType::TurnCancelRequested);
    let after_cancel = &events[cancel_index.expect("it was asked for") + 1..];
    let names = shape(after_cancel);
    // How much still comes between the request and the stop is no promise.
    names
        .into_iter()
        .filter(|name| !name.ends_with("delta"))
        .collect()
}

fn statuses<'a>(history: &'a History, role: &str) -> Vec<&'a str> {
    let rows = history.sessions[0]
        .messages
        .iter()
        .filter(|row| row["role"] == role);
    rows.filter_map(|row| row["status"].as_str()).collect()
}

/// What SC-22 says about each event of its turn.
fn cut_short(body: &Body) {
    match body {
        Body::ToolUseEnd(end) => assert_eq!(end.final_input, json!({})),
        Body::MessageComplete(end) => {
            assert_eq!(end.stop_reason, StopReason::Cancelled);
            assert_eq!(end.final_content[0].as_text(), Some("I'll start by"));
        }
        Body::LlmCallFailed(call) => assert_eq!(call.error_class, LlmErrorClass::Cancelled),
        Body::TurnCancelled(end) => {
            assert_eq!(
                (end.reason.as_str(), end.phase),
                ("user_cancel", Phase::Llm)
            );
            assert_eq!(end.partial.bytes, 13);
            assert_eq!(end.receipt.len(), 1);
        }
        _ => {}
    }
}

// S3-080, SC-22, S3-072, S3-100
#[tokio::test]
async fn cancel_while_model_streams_a_tool_use() {
    let steps = [
        ScriptStep::text("I'll start by"),
        ScriptStep::slow_tool(
            "read_file",
            json!("{\"path\":\"/a very long path that takes a while\"}"),
            40,
            100,
        ),
        ScriptStep::stall(),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, seen) = reach(&fixture, &mut client, EventType::ToolUseInputDelta, 2).await;
    let frame = json!({"type": "cancel", "turn_id": turn, "reason": "user_cancel"});
    client.send(&frame).await.expect("sent");
    let events = rest_of(&mut client, turn, seen).await;
    assert_eq!(
        tail(&events),
        [
            "tool.use_end",
            "message.complete",
            "llm.call_failed",
            "dispatch.traced",
            "turn.cancelled"
        ]
    );
    assert_eq!(classify_cancel(&events), Ok(CancelCase::Llm));
    for event in &events {
        cut_short(&event.body);
    }
    // A second cancel adds nothing anyone sees; a new turn is a new turn (S3-080).
    client.send(&frame).await.expect("sent");
    assert_eq!(
        fixture.api.cancel(turn).await.expect("an answer").json()["state"],
        "cancelled"
    );
    let next = fixture.submit("again").await;
    assert_ne!(next, turn);
    client
        .until(|e| e.turn_id == Some(next) && e.body.kind() == EventType::RouteDecided)
        .await
        .expect("fresh routing");
    assert_eq!(
        fixture.api.cancel(next).await.expect("an answer").status,
        202
    );
    client.turn(next).await.expect("an end");
    let history = fixture.check_history().await;
    assert_eq!(statuses(&history, "assistant")[0], "cancelled");
}

// serial: a cancel while tools run ends within 2 s
// S3-079, SC-23, S3-073, S3-100
#[tokio::test]
async fn cancel_while_tools_run() {
    let steps = [
        ScriptStep::tool(tool::SLEEP, json!({"ms": 30_000})),
        ScriptStep::tool(tool::SLEEP, json!({"ms": 20_000})),
        ScriptStep::tool(tool::ECHO, json!({"text": "quick"})),
        ScriptStep::text("done"),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, seen) = reach(&fixture, &mut client, EventType::ToolCompleted, 1).await;
    let started = std::time::Instant::now();
    let answer = fixture.api.cancel(turn).await.expect("an answer");
    assert_eq!(
        (answer.status, answer.json()["turn_id"].clone()),
        (202, json!(turn))
    );
    let events = rest_of(&mut client, turn, seen).await;
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        tail(&events),
        ["tool.failed", "dispatch.traced", "turn.cancelled"]
    );
    assert_eq!(classify_cancel(&events), Ok(CancelCase::Tool));
    let failed = events.iter().filter_map(|e| match &e.body {
        Body::ToolFailed(tool) => Some((tool.error_class, tool.called)),
        _ => None,
    });
    assert_eq!(
        failed.collect::<Vec<_>>(),
        [(ToolErrorClass::Cancelled, true); 2]
    );
    let names = shape(&events);
    assert!(!names.contains(&"llm.call_failed"));
    assert_eq!(
        names.iter().filter(|&&n| n == "message.complete").count(),
        1
    );
    let history = fixture.check_history().await;
    // S3-079: what was stopped is stored as cancelled, what was done as done.
    let calls = &history.sessions[0].tool_calls;
    let count = |status: &str| calls.iter().filter(|call| call["status"] == status).count();
    assert_eq!(
        (count("cancelled"), count("completed"), calls.len()),
        (2, 1, 3)
    );
}

// S3-079, S3-076
#[tokio::test]
async fn cancel_in_later_call_equals_cancel_in_first() {
    let steps = [
        ScriptStep::text("First "),
        ScriptStep::tool(tool::CLOCK, json!({})),
        ScriptStep::slow(SLOW, 2, 30),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, mut seen) = reach(&fixture, &mut client, EventType::ToolCompleted, 1).await;
    seen.extend(
        client
            .until(|e| e.body.kind() == EventType::TextDelta)
            .await
            .expect("words"),
    );
    fixture.api.cancel(turn).await.expect("an answer");
    let events = rest_of(&mut client, turn, seen).await;
    assert_eq!(
        tail(&events),
        [
            "message.complete",
            "llm.call_failed",
            "dispatch.traced",
            "turn.cancelled"
        ]
    );
    assert_eq!(classify_cancel(&events), Ok(CancelCase::LaterLlm));
    let history = fixture.check_history().await;
    assert_eq!(statuses(&history, "assistant"), ["complete", "cancelled"]);
}

// S3-077
#[tokio::test]
async fn cancel_of_call_without_output() {
    let fixture = ServerFixture::saying([ScriptStep::stall()]).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, seen) = reach(&fixture, &mut client, EventType::LlmCallStarted, 1).await;
    fixture.api.cancel(turn).await.expect("an answer");
    let events = rest_of(&mut client, turn, seen).await;
    assert_eq!(
        tail(&events),
        ["llm.call_failed", "dispatch.traced", "turn.cancelled"]
    );
    assert_eq!(classify_cancel(&events), Ok(CancelCase::Silent));
    fixture.check_history().await;
}

// S3-082
#[tokio::test]
async fn redundant_cancel_changes_nothing_but_warns() {
    let fixture = ServerFixture::saying([ScriptStep::slow(SLOW, 2, 50)]).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, seen) = reach(&fixture, &mut client, EventType::TextDelta, 1).await;
    let frame = json!({"type": "cancel", "turn_id": turn});
    client.send(&frame).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(10)).await;
    client.send(&frame).await.expect("sent");
    let events = rest_of(&mut client, turn, seen).await;
    assert_eq!(classify_cancel(&events), Ok(CancelCase::Llm));
    let Some(Body::TurnCancelled(end)) = events.last().map(|e| &e.body) else {
        panic!("no end")
    };
    assert_eq!(end.reason, "user_cancel", "the reason nobody gave");
    let warning = fixture
        .logged(|e| matches!(e.body, Body::BusHandlerWarning(_)))
        .await;
    let Body::BusHandlerWarning(warning) = warning.body else {
        panic!("just found")
    };
    // Which of the two it is depends on whether the turn had ended when the second one came.
    assert!(
        ["redundant_cancel", "unknown_turn"].contains(&warning.reason.as_str()),
        "{warning:?}"
    );
    fixture.check_history().await;
}

// S3-083
#[tokio::test]
async fn cancel_of_unknown_or_ended_turn_changes_nothing() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let ended = fixture.turn("x").await[0].turn_id.expect("a turn");
    let answer = fixture.api.cancel(ended).await.expect("an answer");
    assert_eq!(
        (answer.status, answer.json()["state"].clone()),
        (202, json!("completed"))
    );
    for unknown in ["00000000000000000000000000", "nothing"] {
        let path = format!("/turns/{unknown}/cancel");
        let answer = fixture
            .api
            .send(hyper::Method::POST, &path, None)
            .await
            .expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "turn_not_found"),
            "{unknown}"
        );
    }
    let mut client = fixture.watch("wrong", SubscribeOptions::live()).await;
    client
        .send(&json!({"type": "cancel", "turn_id": "00000000000000000000000000"}))
        .await
        .expect("sent");
    let warned =
        |e: &Event| matches!(&e.body, Body::BusHandlerWarning(w) if w.reason == "unknown_turn");
    fixture.logged(warned).await;
    fixture.check_history().await;
}

/// The next answer to a cancel frame.
async fn cancel_answer(client: &mut WatchClient) -> Value {
    loop {
        if let WatchFrame::Frame(frame) = client.next().await.expect("a frame")
            && ["cancel_ack", "cancel_error"]
                .map(Value::from)
                .contains(&frame["type"])
        {
            return frame;
        }
    }
}

// S3-082, S3-083
#[tokio::test]
async fn every_cancel_frame_is_answered_once() {
    let fixture = ServerFixture::saying([ScriptStep::slow(SLOW, 2, 50)]).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, _) = reach(&fixture, &mut client, EventType::TextDelta, 1).await;
    let queued = json!({"message": "later", "on_busy": "enqueue"});
    let path = format!("/sessions/{}/turns", fixture.session);
    let queued = fixture.api.post(&path, queued).await.expect("an answer");
    let queued = queued.json()["turn_id"].clone();
    let response_id = ResponseId::from(turn);
    let long = "x".repeat(100);
    let error = |code: &str, turn_id: Value| json!({"type": "cancel_error", "code": code, "turn_id": turn_id});
    let unknown = "00000000000000000000000000";
    let cases = [
        (json!({}), error("invalid_frame", Value::Null)),
        (
            json!({"turn_id": turn, "reason": 7}),
            error("invalid_frame", Value::Null),
        ),
        (
            json!({"turn_id": unknown}),
            error("turn_not_found", json!(unknown)),
        ),
        (
            json!({"turn_id": long}),
            error("turn_not_found", json!(long[..64])),
        ),
        (
            json!({"turn_id": queued}),
            json!({"type": "cancel_ack", "turn_id": queued, "state": "cancelled"}),
        ),
        (
            json!({"turn_id": response_id}),
            json!({"type": "cancel_ack", "turn_id": turn, "state": "cancelling"}),
        ),
    ];
    for (mut frame, expected) in cases {
        frame["type"] = "cancel".into();
        client.send(&frame).await.expect("sent");
        let mut answer = cancel_answer(&mut client).await;
        if let Some(fields) = answer.as_object_mut() {
            fields.remove("message");
        }
        assert_eq!(answer, expected, "{frame}");
    }
    // Again while it stops, and after its end.
    client
        .send(&json!({"type": "cancel", "turn_id": turn}))
        .await
        .expect("sent");
    let again = cancel_answer(&mut client).await;
    assert_eq!(
        (&again["type"], &again["turn_id"]),
        (&json!("cancel_ack"), &json!(turn))
    );
    assert_eq!(
        fixture.api.ended(turn).await.expect("a turn")["state"],
        "cancelled"
    );
    client
        .send(&json!({"type": "cancel", "turn_id": turn}))
        .await
        .expect("sent");
    let late = cancel_answer(&mut client).await;
    assert_eq!(
        late,
        json!({"type": "cancel_ack", "turn_id": turn, "state": "cancelled"})
    );
    fixture.check_history().await;
}

// S3-078, S3-100
#[tokio::test]
async fn every_client_sees_the_same_cancel() {
    let fixture = ServerFixture::saying([ScriptStep::slow(SLOW, 2, 30)]).await;
    let mut other = fixture.watch("other", SubscribeOptions::live()).await;
    let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
    let (turn, seen) = reach(&fixture, &mut client, EventType::TextDelta, 2).await;
    client
        .send(&json!({"type": "cancel", "turn_id": turn, "reason": "because"}))
        .await
        .expect("sent");
    let mine = rest_of(&mut client, turn, seen).await;
    let other_events = other.turn(turn).await.expect("an end");
    assert_eq!(mine, other_events);
    let Some(Body::TurnCancelled(end)) = mine.last().map(|e| &e.body) else {
        panic!("no end")
    };
    assert_eq!(end.reason, "because");
    fixture.check_history().await;
}

// S3-071, D-44
#[tokio::test]
async fn server_cancels_turn_over_its_time_limit() {
    let script = ModelScript::new().on("", [ScriptStep::text("Wait "), ScriptStep::stall()]);
    let fixture =
        ServerFixture::new(ServerOptions::script(script).set("turn", "timeout_ms", 400)).await;
    let events = fixture.turn("go").await;
    assert_eq!(classify_cancel(&events), Ok(CancelCase::Llm));
    for event in &events {
        match &event.body {
            Body::TurnCancelRequested(asked) => {
                assert_eq!(
                    (asked.by.as_str(), asked.reason.as_str(), asked.code),
                    ("system", "turn_timeout", CancelCode::IdleTimeout)
                );
            }
            Body::TurnCancelled(end) => {
                let told = (end.reason.as_str(), end.code);
                assert_eq!(told, ("turn_timeout", CancelCode::IdleTimeout));
            }
            _ => {}
        }
    }
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn turn_is_cancelled_when_last_watcher_leaves() {
    let fixture = ServerFixture::saying([ScriptStep::slow(SLOW, 1, 40)]).await;
    let path = format!("/sessions/{}/turns", fixture.session);
    for (mode, state) in [("cancel", "cancelled"), ("continue", "completed")] {
        let mut client = fixture.watch(mode, SubscribeOptions::live()).await;
        let body = json!({"message": "go", "on_disconnect": mode, "disconnect_grace_ms": 100});
        let answer = fixture.api.post(&path, body).await.expect("an answer");
        let turn: TurnId = answer.json()["turn_id"]
            .as_str()
            .and_then(|id| id.parse().ok())
            .expect("a turn");
        client
            .until(|e| e.turn_id == Some(turn) && e.body.kind() == EventType::TextDelta)
            .await
            .expect("words");
        drop(client);
        let row = fixture.api.ended(turn).await.expect("an end");
        assert_eq!(row["state"], state, "{row}");
        assert_eq!(row["on_disconnect"], mode);
    }
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn watcher_back_within_grace_keeps_the_turn() {
    let fixture = ServerFixture::saying([ScriptStep::slow(SLOW, 2, 25)]).await;
    let mut client = fixture.watch("brief", SubscribeOptions::live()).await;
    let body = json!({"message": "go", "on_disconnect": "cancel", "disconnect_grace_ms": 5_000});
    let answer = fixture
        .api
        .post(&format!("/sessions/{}/turns", fixture.session), body)
        .await
        .expect("an answer");
    let turn: TurnId = answer.json()["turn_id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("a turn");
    client
        .until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    let last = client.last().expect("a cursor");
    drop(client);
    let mut client = fixture.watch("brief", SubscribeOptions::since(last)).await;
    let events = client.turn(turn).await.expect("an end");
    assert_eq!(
        events.last().map(|e| e.body.kind()),
        Some(EventType::TurnCompleted)
    );
    fixture.check_history().await;
}
