//! Subscribe requests: filters, presets, and refusals (SC-21, S3-013 to S3-026).

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::{ServerFixture, shape};
use turnwire_event::{EventFilter, EventType};
use turnwire_testkit::script::{ScriptStep, tool};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

/// Subscribes and must be refused.
async fn refused(client: &mut WatchClient, frame: &Value) -> Value {
    client.send(frame).await.expect("sent");
    loop {
        match client.next().await.expect("an answer") {
            WatchFrame::Frame(answer) if answer["type"] == "subscribe_error" => return answer,
            WatchFrame::Frame(answer) => assert_ne!(answer["type"], "subscribe_ack", "{frame}"),
            WatchFrame::Event(_) => {}
        }
    }
}

// S3-025, S3-017, S3-100, SC-21
#[tokio::test]
async fn unknown_event_type_is_named_and_filter_can_be_resent() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let mut client = fixture.connect("strict").await;
    for (filter, named) in [
        (
            json!({"event_types": ["text.delta", "made.up.thing"]}),
            "made.up.thing",
        ),
        (
            json!({"event_types": ["tool.use_input_partial_parsed"]}),
            "tool.use_input_partial_parsed",
        ),
        (json!({"actors": ["martian"]}), "martian"),
        (json!("preset:everything"), "preset:everything"),
        (json!({"colour": "red"}), "colour"),
        (json!({"event_types": "text.delta"}), "event_types"),
        (json!(7), "filter"),
    ] {
        let answer = refused(&mut client, &json!({"type": "subscribe", "filter": filter})).await;
        assert_eq!(answer["code"], "invalid_filter", "{answer}");
        assert!(
            answer["message"]
                .as_str()
                .is_some_and(|m| m.contains(named)),
            "{answer}"
        );
    }
    let ask =
        SubscribeOptions::live().filter(json!({"event_types": ["text.delta", "route.decided"]}));
    let ack = client
        .subscribed(&ask)
        .await
        .expect("the corrected one is taken");
    let expected = json!({
        "event_types": ["route.decided", "text.delta"], "actors": null,
        "include_worker_sessions": false, "include_suppressed": false,
    });
    assert_eq!(ack["resolved_filter"], expected);
    fixture
        .api
        .submit(fixture.session, "x")
        .await
        .expect("an answer");
    let events = client
        .until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("events");
    assert_eq!(shape(&events), ["route.decided", "text.delta"]);
    fixture.check_history().await;
}

// S3-015
#[tokio::test]
async fn omitted_filter_fields_use_defaults() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let mut client = fixture.connect("plain").await;
    client
        .send(&json!({"type": "subscribe", "filter": {}}))
        .await
        .expect("sent");
    let WatchFrame::Frame(ack) = client.next().await.expect("a frame") else {
        panic!("an event")
    };
    assert_eq!(ack["type"], "subscribe_ack");
    assert_eq!(
        (&ack["since"], &ack["snapshot"], &ack["replay_event_count"]),
        (&json!(null), &json!(false), &json!(0))
    );
    let all = serde_json::to_value(EventFilter::full().spec()).expect("plain data");
    assert_eq!(ack["resolved_filter"], all);
}

// S3-021
#[tokio::test]
async fn preset_and_its_expansion_give_equal_frames() {
    let steps = [
        ScriptStep::thinking("hm", "c2VhbA=="),
        ScriptStep::slow("some words", 3, 2),
        ScriptStep::tool(tool::ECHO, json!({"text": "x"})),
        ScriptStep::text("done"),
    ];
    let fixture = ServerFixture::saying(steps).await;
    for preset in ["preset:chat", "preset:full"] {
        let spec = EventFilter::preset(preset).expect("a preset").spec();
        let spec = serde_json::to_value(spec).expect("plain data");
        let mut short = fixture.connect(&format!("{preset} short")).await;
        let ack = short
            .subscribed(&SubscribeOptions::live().filter(preset))
            .await
            .expect("an acknowledgement");
        assert_eq!(ack["resolved_filter"], spec);
        let mut long = fixture
            .watch(
                &format!("{preset} long"),
                SubscribeOptions::live().filter(spec),
            )
            .await;
        let turn = fixture.submit("go").await;
        let (a, b) = (
            short.turn(turn).await.expect("events"),
            long.turn(turn).await.expect("events"),
        );
        assert_eq!(a, b);
        assert!(a.len() > 10);
    }
    fixture.check_history().await;
}

// S3-026
#[tokio::test]
async fn only_events_of_selected_actors_arrive() {
    let steps = [
        ScriptStep::tool(tool::ECHO, json!({"text": "x"})),
        ScriptStep::tool(tool::CLOCK, json!({})),
        ScriptStep::text("done"),
    ];
    let fixture = ServerFixture::saying(steps).await;
    let mut tools = fixture
        .watch(
            "tools",
            SubscribeOptions::live().filter(json!({"actors": ["tool"]})),
        )
        .await;
    let mut echo = fixture
        .watch(
            "echo",
            SubscribeOptions::live().filter(json!({"actors": ["tool:echo"]})),
        )
        .await;
    let mut mouth = fixture
        .watch(
            "mouth",
            SubscribeOptions::live().filter(json!({"actors": ["orchestrator"]})),
        )
        .await;
    let turn = fixture.submit("go").await;
    let sent = mouth
        .until(|e| e.body.kind() == EventType::TurnCompleted)
        .await;
    let sent = match sent {
        Ok(events) => events,
        Err(end) => panic!("{end}"),
    };
    assert!(
        sent.iter().all(|e| e.actor.to_string() == "orchestrator"),
        "{sent:?}"
    );
    assert!(sent.iter().any(|e| e.body.kind() == EventType::TextDelta));
    fixture.api.ended(turn).await.expect("an end");
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(tools.event().await.expect("an event"));
    }
    assert!(
        seen.iter()
            .all(|e| e.actor.to_string().starts_with("tool:")),
        "{seen:?}"
    );
    for kind in [EventType::ToolCalled, EventType::ToolCompleted] {
        let event = echo.event().await.expect("an event");
        assert_eq!(
            (event.body.kind(), event.actor.to_string().as_str()),
            (kind, "tool:echo")
        );
    }
    fixture.check_history().await;
}

// S3-024
#[tokio::test]
async fn cursor_outside_the_session_has_expired() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    fixture.turn("x").await;
    let mut client = fixture.connect("lost").await;
    for since in [
        "garbage",
        "evt_00010000009999",
        "evt_00020000000001",
        "",
        "evt_0001000000000u",
    ] {
        let frame = json!({"type": "subscribe", "filter": "preset:chat", "since": since});
        let answer = refused(&mut client, &frame).await;
        assert_eq!(answer["code"], "cursor_expired", "{since}: {answer}");
    }
    let frame = json!({"type": "subscribe", "filter": "preset:chat", "since": 7});
    let answer = refused(&mut client, &frame).await;
    assert_eq!(answer["code"], "invalid_filter");
}

// D-40
#[tokio::test]
async fn second_subscribe_replaces_the_first() {
    let fixture = ServerFixture::saying([ScriptStep::slow("one two three", 4, 2)]).await;
    let mut client = fixture
        .watch(
            "twice",
            SubscribeOptions::live().filter(json!({"event_types": ["turn.started"]})),
        )
        .await;
    let one = fixture
        .api
        .submit(fixture.session, "x")
        .await
        .expect("an answer");
    client
        .until(|e| e.body.kind() == EventType::TurnStarted)
        .await
        .expect("the first");
    fixture.api.ended(one.turn_id).await.expect("an end");
    let only = SubscribeOptions::live().filter(json!({"event_types": ["turn.completed"]}));
    client
        .subscribed(&only)
        .await
        .expect("a new acknowledgement");
    let turn = fixture.submit("y").await;
    let events = client.turn(turn).await.expect("events");
    assert_eq!(shape(&events), ["turn.completed"]);
    fixture.check_history().await;
}

// S3-024
#[tokio::test]
async fn deleted_session_is_not_found() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let mut client = fixture.connect("too late").await;
    let path = format!("/sessions/{}", fixture.session);
    let answer = fixture
        .api
        .send(hyper::Method::DELETE, &path, None)
        .await
        .expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.body);
    client
        .send(&SubscribeOptions::live().frame())
        .await
        .expect("sent");
    match client.next().await {
        Ok(WatchFrame::Frame(answer)) => {
            assert_eq!(answer["code"], "session_not_found", "{answer}")
        }
        Ok(WatchFrame::Event(event)) => panic!("{event:?}"),
        // The socket may already have been closed for the same reason.
        Err(end) => assert_eq!(end.code(), "session_deleted", "{end}"),
    }
}
