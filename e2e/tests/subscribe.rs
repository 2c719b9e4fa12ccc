//! Subscribing: filters, presets, errors, replay and its limits (SC-21, S3-013 to S3-040).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::scene::{Scene, kinds, shape};
use turnwire_event::{Body, Epoch, Event, EventType, Filter, Position, Seq};
use turnwire_testkit::script::{Script, Step, tool};
use turnwire_testkit::server::Options;
use turnwire_testkit::watch::{Ask, Client, Seen};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Subscribes and must be refused.
async fn refused(client: &mut Client, frame: &Value) -> Value {
    client.send(frame).await.expect("sent");
    loop {
        match client.next().await.expect("an answer") {
            Seen::Frame(answer) if answer["type"] == "subscribe_error" => return answer,
            Seen::Frame(answer) => assert_ne!(answer["type"], "subscribe_ack", "{frame}"),
            Seen::Event(_) => {}
        }
    }
}

#[tokio::test]
async fn s3_017_an_unknown_type_is_named_and_the_socket_takes_a_better_filter() {
    let scene = Scene::saying([Step::text("hello")]).await;
    let mut client = scene.connect("strict").await;
    for (filter, named) in [
        (json!({"event_types": ["text.delta", "made.up.thing"]}), "made.up.thing"),
        (json!({"event_types": ["tool.use_input_partial_parsed"]}), "tool.use_input_partial_parsed"),
        (json!({"actors": ["martian"]}), "martian"),
        (json!("preset:everything"), "preset:everything"),
        (json!({"colour": "red"}), "colour"),
        (json!({"event_types": "text.delta"}), "event_types"),
        (json!(7), "filter"),
    ] {
        let answer = refused(&mut client, &json!({"type": "subscribe", "filter": filter})).await;
        assert_eq!(answer["code"], "invalid_filter", "{answer}");
        assert!(answer["message"].as_str().is_some_and(|m| m.contains(named)), "{answer}");
    }
    let ask = Ask::live().filter(json!({"event_types": ["text.delta", "route.decided"]}));
    let ack = client.subscribed(&ask).await.expect("the corrected one is taken");
    let expected = json!({
        "event_types": ["route.decided", "text.delta"], "actors": null,
        "include_worker_sessions": false, "include_suppressed": false,
    });
    assert_eq!(ack["resolved_filter"], expected);
    scene.rest.submit(scene.session, "x").await.expect("an answer");
    let events = client.until(|e| e.body.kind() == EventType::TextDelta).await.expect("events");
    assert_eq!(shape(&events), ["route.decided", "text.delta"]);
    scene.judge().await;
}

#[tokio::test]
async fn s3_015_what_is_left_out_of_a_filter_has_its_default() {
    let scene = Scene::saying([Step::text("hello")]).await;
    let mut client = scene.connect("plain").await;
    client.send(&json!({"type": "subscribe", "filter": {}})).await.expect("sent");
    let Seen::Frame(ack) = client.next().await.expect("a frame") else { panic!("an event") };
    assert_eq!(ack["type"], "subscribe_ack");
    assert_eq!((&ack["since"], &ack["snapshot"], &ack["replay_event_count"]), (&json!(null), &json!(false), &json!(0)));
    let all = serde_json::to_value(Filter::full().spec()).expect("plain data");
    assert_eq!(ack["resolved_filter"], all);
}

#[tokio::test]
async fn s3_021_a_preset_and_its_expansion_get_the_same_frames() {
    let steps = [
        Step::thinking("hm", "c2VhbA=="),
        Step::slow("some words", 3, 2),
        Step::tool(tool::ECHO, json!({"text": "x"})),
        Step::text("done"),
    ];
    let scene = Scene::saying(steps).await;
    for preset in ["preset:chat", "preset:full"] {
        let spec = Filter::preset(preset).expect("a preset").spec();
        let spec = serde_json::to_value(spec).expect("plain data");
        let mut short = scene.connect(&format!("{preset} short")).await;
        let ack = short.subscribed(&Ask::live().filter(preset)).await.expect("an acknowledgement");
        assert_eq!(ack["resolved_filter"], spec);
        let mut long = scene.watch(&format!("{preset} long"), Ask::live().filter(spec)).await;
        let turn = scene.rest.submit(scene.session, "go").await.expect("an answer").turn_id;
        let (a, b) = (short.turn(turn).await.expect("events"), long.turn(turn).await.expect("events"));
        assert_eq!(a, b);
        assert!(a.len() > 10);
    }
    scene.judge().await;
}

#[tokio::test]
async fn s3_026_only_events_of_the_wanted_actors_come() {
    let steps = [Step::tool(tool::ECHO, json!({"text": "x"})), Step::tool(tool::CLOCK, json!({})), Step::text("done")];
    let scene = Scene::saying(steps).await;
    let mut tools = scene.watch("tools", Ask::live().filter(json!({"actors": ["tool"]}))).await;
    let mut echo = scene.watch("echo", Ask::live().filter(json!({"actors": ["tool:echo"]}))).await;
    let mut mouth = scene.watch("mouth", Ask::live().filter(json!({"actors": ["orchestrator"]}))).await;
    let turn = scene.rest.submit(scene.session, "go").await.expect("an answer").turn_id;
    let said = mouth.until(|e| e.body.kind() == EventType::TurnCompleted).await;
    let said = match said {
        Ok(events) => events,
        Err(end) => panic!("{end}"),
    };
    assert!(said.iter().all(|e| e.actor.to_string() == "orchestrator"), "{said:?}");
    assert!(said.iter().any(|e| e.body.kind() == EventType::TextDelta));
    scene.rest.ended(turn).await.expect("an end");
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(tools.event().await.expect("an event"));
    }
    assert!(seen.iter().all(|e| e.actor.to_string().starts_with("tool:")), "{seen:?}");
    for kind in [EventType::ToolCalled, EventType::ToolCompleted] {
        let event = echo.event().await.expect("an event");
        assert_eq!((event.body.kind(), event.actor.to_string().as_str()), (kind, "tool:echo"));
    }
    scene.judge().await;
}

/// The ids of a session's tool events, which no subscribe adds to.
async fn tool_events(scene: &Scene) -> Vec<Position> {
    let log = scene.log().await;
    let tools = log.iter().filter(|e| matches!(e.body.kind(), EventType::ToolCalled | EventType::ToolCompleted));
    tools.map(|e| e.id).collect()
}

async fn replay_limit(max: usize, steps: u64, options: Options) {
    let script = Script::new().on("", [Step::tool(tool::BURST, json!({"count": steps})), Step::text("done")]);
    let scene = Scene::new(Options { script: Some(script), ..options }).await;
    let turn = scene.rest.submit(scene.session, "go").await.expect("an answer");
    scene.rest.ended(turn.turn_id).await.expect("an end");
    let ids = tool_events(&scene).await;
    assert!(ids.len() > max + 1, "{} events", ids.len());
    let filter = json!({"event_types": ["tool.called", "tool.completed"]});
    let over = ids[ids.len() - max - 2];
    let mut client = scene.connect("limit").await;
    let frame = Ask::since(over).filter(filter.clone()).frame();
    let answer = refused(&mut client, &frame).await;
    assert_eq!(answer["code"], "replay_too_large", "{answer}");
    let just = ids[ids.len() - max - 1];
    let ack = client.subscribed(&Ask::since(just).filter(filter)).await.expect("that many are allowed");
    assert_eq!(ack["replay_event_count"], max);
    for &id in &ids[ids.len() - max..] {
        assert_eq!(client.event().await.expect("an event").id, id);
    }
    scene.judge().await;
}

#[tokio::test]
async fn s3_037_a_replay_has_at_most_as_many_events_as_are_allowed() {
    replay_limit(10, 20, Options::default().set("stream", "replay_max", 10)).await;
}

#[tokio::test]
async fn s3_037_ten_thousand_events_are_replayed_and_one_more_is_not() {
    replay_limit(10_000, 5_001, Options::default()).await;
}

#[tokio::test]
async fn s3_036_a_cursor_behind_retention_has_expired_and_a_snapshot_helps() {
    let script = Script::new().on("", [Step::text("hello")]);
    let options = Options::script(script)
        .set("store", "retention_s", 1)
        .set("store", "retention_sweep_ms", 100);
    let scene = Scene::new(options).await;
    let first = scene.rest.submit(scene.session, "one").await.expect("an answer");
    scene.rest.ended(first.turn_id).await.expect("an end");
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    // Something recent, so that the session does not look forgotten.
    let second = scene.rest.submit(scene.session, "two").await.expect("an answer");
    scene.rest.ended(second.turn_id).await.expect("an end");
    let mut client = scene.connect("late").await;
    let answer = refused(&mut client, &Ask::since(START).frame()).await;
    assert_eq!(answer["code"], "cursor_expired", "{answer}");
    client.subscribed(&Ask::snapshot()).await.expect("a snapshot is always there");
    let Seen::Frame(snapshot) = client.next().await.expect("a frame") else { panic!("an event") };
    assert_eq!(snapshot["session"]["turn_count"], 2);
    let answer = scene.rest.get(&format!("/sessions/{}/events?since={START}", scene.session)).await.expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (410, "cursor_expired"));
}

#[tokio::test]
async fn s3_024_a_cursor_that_is_no_place_of_the_session_has_expired() {
    let scene = Scene::saying([Step::text("hello")]).await;
    scene.turn("x").await;
    let mut client = scene.connect("lost").await;
    for since in ["garbage", "evt_00010000009999", "evt_00020000000001", "", "evt_0001000000000u"] {
        let frame = json!({"type": "subscribe", "filter": "preset:chat", "since": since});
        let answer = refused(&mut client, &frame).await;
        assert_eq!(answer["code"], "cursor_expired", "{since}: {answer}");
    }
    let frame = json!({"type": "subscribe", "filter": "preset:chat", "since": 7});
    let answer = refused(&mut client, &frame).await;
    assert_eq!(answer["code"], "invalid_filter");
}

#[tokio::test]
async fn s3_038_the_acknowledgement_counts_the_persisted_events_of_the_replay() {
    let scene = Scene::saying([Step::slow("several words of an answer", 3, 1)]).await;
    scene.turn("x").await;
    let wanted = [EventType::TurnStarted, EventType::RouteDecided, EventType::TurnCompleted];
    let filter = json!({"event_types": wanted.map(EventType::name)});
    let mut client = scene.connect("counting").await;
    let ack = client.subscribed(&Ask::since(START).filter(filter)).await.expect("an acknowledgement");
    assert_eq!(ack["replay_event_count"], 3);
    assert_eq!(ack["since"], START.to_string());
    let events = client.until(|e| e.body.kind() == EventType::TurnCompleted).await.expect("events");
    assert_eq!(kinds(&events), wanted);
    scene.judge().await;
}

fn words(events: &[Event]) -> String {
    let deltas = events.iter().filter_map(|e| match &e.body {
        Body::TextDelta(delta) => Some(delta.text.as_str()),
        _ => None,
    });
    deltas.collect()
}

#[tokio::test]
async fn s3_039_a_finished_message_is_replayed_as_its_ends_and_from_inside_as_the_rest() {
    let text = "the quick brown fox jumps over the lazy dog and so on";
    let scene = Scene::saying([Step::slow(text, 4, 1)]).await;
    let live = scene.turn("x").await;
    let done = |e: &Event| e.body.kind() == EventType::TurnCompleted;
    let mut late = scene.watch("late", Ask::since(START)).await;
    let replayed = late.until(done).await.expect("a replay");
    let of_turn: Vec<Event> = replayed.into_iter().filter(|e| e.turn_id.is_some()).collect();
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "message.start",
        "message.complete",
        "llm.call_completed",
        "turn.completed",
    ];
    assert_eq!(shape(&of_turn), expected);
    // S3-040: the id of any delta is a cursor.
    let deltas: Vec<&Event> = live.iter().filter(|e| e.body.kind() == EventType::TextDelta).collect();
    for (index, cut) in deltas.iter().enumerate().step_by(3) {
        let before: String = words(&deltas[..=index].iter().map(|e| (**e).clone()).collect::<Vec<_>>());
        let mut inside = scene.watch(&format!("inside {index}"), Ask::since(cut.id)).await;
        let rest = inside.until(done).await.expect("a replay");
        assert_eq!(format!("{before}{}", words(&rest)), text);
        let joined = rest.iter().filter(|e| e.body.kind() == EventType::TextDelta).count();
        assert_eq!(joined, usize::from(index + 1 < deltas.len()), "the rest comes in one piece");
    }
    scene.judge().await;
}

#[tokio::test]
async fn s3_033_a_snapshot_inside_a_message_and_what_follows_are_the_message() {
    let text = "the quick brown fox jumps over the lazy dog and then it rests for a while";
    let scene = Scene::saying([Step::slow(text, 3, 15)]).await;
    let mut first = scene.watch("first", Ask::live()).await;
    let turn = scene.rest.submit(scene.session, "x").await.expect("an answer").turn_id;
    first.until(|e| matches!(&e.body, Body::TextDelta(_))).await.expect("words");
    let mut second = scene.watch("second", Ask::snapshot()).await;
    let Seen::Frame(snapshot) = second.next().await.expect("a frame") else { panic!("an event") };
    assert_eq!(snapshot["session"]["current_turn_status"], "in_flight");
    assert_eq!(snapshot["session"]["current_turn_id"], turn.to_string());
    let open = snapshot["messages"].as_array().and_then(|m| m.last()).expect("the message in flight");
    assert_eq!(open["status"], "in_progress");
    let before = open["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let rest = second.turn(turn).await.expect("the rest");
    assert_eq!(format!("{before}{}", words(&rest)), text);
    assert!(!words(&rest).is_empty(), "the snapshot was taken too late to tell");
    scene.judge().await;
}

#[tokio::test]
async fn d_40_a_second_subscribe_replaces_the_first() {
    let scene = Scene::saying([Step::slow("one two three", 4, 2)]).await;
    let mut client = scene.watch("twice", Ask::live().filter(json!({"event_types": ["turn.started"]}))).await;
    let one = scene.rest.submit(scene.session, "x").await.expect("an answer");
    client.until(|e| e.body.kind() == EventType::TurnStarted).await.expect("the first");
    scene.rest.ended(one.turn_id).await.expect("an end");
    let only = Ask::live().filter(json!({"event_types": ["turn.completed"]}));
    client.subscribed(&only).await.expect("a new acknowledgement");
    let turn = scene.rest.submit(scene.session, "y").await.expect("an answer").turn_id;
    let events = client.turn(turn).await.expect("events");
    assert_eq!(shape(&events), ["turn.completed"]);
    scene.judge().await;
}

#[tokio::test]
async fn s3_024_a_session_that_was_deleted_is_not_found() {
    let scene = Scene::saying([Step::text("hello")]).await;
    let mut client = scene.connect("too late").await;
    let path = format!("/sessions/{}", scene.session);
    let answer = scene.rest.send(hyper::Method::DELETE, &path, None).await.expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.body);
    client.send(&Ask::live().frame()).await.expect("sent");
    match client.next().await {
        Ok(Seen::Frame(answer)) => assert_eq!(answer["code"], "session_not_found", "{answer}"),
        Ok(Seen::Event(event)) => panic!("{event:?}"),
        // The socket may already have been closed for the same reason.
        Err(end) => assert_eq!(end.code(), "session_deleted", "{end}"),
    }
}
