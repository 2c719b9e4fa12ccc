//! Replay: how many past events a cursor gives, its limits, and snapshots in the middle of a
//! message (SC-21, S3-033 to S3-040).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::{ServerFixture, kinds, shape};
use turnwire_event::{Body, Epoch, Event, EventType, Position, Seq};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

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

/// The ids of a session's tool events, which no subscribe adds to.
async fn tool_events(fixture: &ServerFixture) -> Vec<Position> {
    let log = fixture.log().await;
    let tools = log.iter().filter(|e| {
        matches!(
            e.body.kind(),
            EventType::ToolCalled | EventType::ToolCompleted
        )
    });
    tools.map(|e| e.id).collect()
}

async fn replay_limit(max: usize, steps: u64, options: ServerOptions) {
    let script = ModelScript::new().on(
        "",
        [
            ScriptStep::tool(tool::BURST, json!({"count": steps})),
            ScriptStep::text("done"),
        ],
    );
    let fixture = ServerFixture::new(ServerOptions {
        script: Some(script),
        ..options
    })
    .await;
    let turn = fixture
        .api
        .submit(fixture.session, "go")
        .await
        .expect("an answer");
    fixture.api.ended(turn.turn_id).await.expect("an end");
    let ids = tool_events(&fixture).await;
    assert!(ids.len() > max + 1, "{} events", ids.len());
    let filter = json!({"event_types": ["tool.called", "tool.completed"]});
    let too_old = ids[ids.len() - max - 2];
    let mut client = fixture.connect("limit").await;
    let frame = SubscribeOptions::since(too_old)
        .filter(filter.clone())
        .frame();
    let answer = refused(&mut client, &frame).await;
    assert_eq!(answer["code"], "replay_too_large", "{answer}");
    let just = ids[ids.len() - max - 1];
    let ack = client
        .subscribed(&SubscribeOptions::since(just).filter(filter))
        .await
        .expect("that many are allowed");
    assert_eq!(ack["replay_event_count"], max);
    for &id in &ids[ids.len() - max..] {
        assert_eq!(client.event().await.expect("an event").id, id);
    }
    fixture.check_history().await;
}

// S3-037
#[tokio::test]
async fn replay_is_bounded_by_its_limit() {
    replay_limit(
        10,
        20,
        ServerOptions::default().set("stream", "replay_max", 10),
    )
    .await;
}

// S3-037, S3-100, C-14
#[tokio::test]
async fn ten_thousand_events_replay_and_one_more_does_not() {
    replay_limit(10_000, 5_001, ServerOptions::default()).await;
}

// S3-108, S3-036, S3-100, SC-21
#[tokio::test]
async fn expired_cursor_recovers_with_a_snapshot() {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    let options = ServerOptions::script(script)
        .set("store", "retention_s", 1)
        .set("store", "retention_sweep_ms", 100);
    let fixture = ServerFixture::new(options).await;
    let first = fixture
        .api
        .submit(fixture.session, "one")
        .await
        .expect("an answer");
    fixture.api.ended(first.turn_id).await.expect("an end");
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    // Something recent, so that the session does not look forgotten.
    let second = fixture
        .api
        .submit(fixture.session, "two")
        .await
        .expect("an answer");
    fixture.api.ended(second.turn_id).await.expect("an end");
    let mut client = fixture.connect("late").await;
    let answer = refused(&mut client, &SubscribeOptions::since(START).frame()).await;
    assert_eq!(answer["code"], "cursor_expired", "{answer}");
    client
        .subscribed(&SubscribeOptions::snapshot())
        .await
        .expect("a snapshot is always there");
    let WatchFrame::Frame(snapshot) = client.next().await.expect("a frame") else {
        panic!("an event")
    };
    assert_eq!(snapshot["session"]["turn_count"], 2);
    let answer = fixture
        .api
        .get(&format!(
            "/sessions/{}/events?since={START}",
            fixture.session
        ))
        .await
        .expect("an answer");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (410, "cursor_expired")
    );
}

// S3-022, S3-038
#[tokio::test]
async fn subscribe_ack_counts_persisted_replay_events() {
    let fixture =
        ServerFixture::saying([ScriptStep::slow("several words of an answer", 3, 1)]).await;
    fixture.turn("x").await;
    let wanted = [
        EventType::TurnStarted,
        EventType::RouteDecided,
        EventType::TurnCompleted,
    ];
    let filter = json!({"event_types": wanted.map(EventType::name)});
    let mut client = fixture.connect("counting").await;
    let ack = client
        .subscribed(&SubscribeOptions::since(START).filter(filter))
        .await
        .expect("an acknowledgement");
    assert_eq!(ack["replay_event_count"], 3);
    assert_eq!(ack["since"], START.to_string());
    let events = client
        .until(|e| e.body.kind() == EventType::TurnCompleted)
        .await
        .expect("events");
    assert_eq!(kinds(&events), wanted);
    fixture.check_history().await;
}

fn words(events: &[Event]) -> String {
    let deltas = events.iter().filter_map(|e| match &e.body {
        Body::TextDelta(delta) => Some(delta.text.as_str()),
        _ => None,
    });
    deltas.collect()
}

// S3-040, S3-067, S3-039
#[tokio::test]
async fn finished_message_replays_as_start_and_complete() {
    let text = "the quick brown fox jumps over the lazy dog and so on";
    let fixture = ServerFixture::saying([ScriptStep::slow(text, 4, 1)]).await;
    let live = fixture.turn("x").await;
    let done = |e: &Event| e.body.kind() == EventType::TurnCompleted;
    let mut late = fixture.watch("late", SubscribeOptions::since(START)).await;
    let replayed = late.until(done).await.expect("a replay");
    let of_turn: Vec<Event> = replayed
        .into_iter()
        .filter(|e| e.turn_id.is_some())
        .collect();
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "message.start",
        "message.complete",
        "llm.call_completed",
        "dispatch.traced",
        "turn.completed",
    ];
    assert_eq!(shape(&of_turn), expected);
    // S3-040: the id of any delta is a cursor.
    let deltas: Vec<&Event> = live
        .iter()
        .filter(|e| e.body.kind() == EventType::TextDelta)
        .collect();
    for (index, cut) in deltas.iter().enumerate().step_by(3) {
        let before: String = words(
            &deltas[..=index]
                .iter()
                .map(|e| (**e).clone())
                .collect::<Vec<_>>(),
        );
        let mut inside = fixture
            .watch(&format!("inside {index}"), SubscribeOptions::since(cut.id))
            .await;
        let api = inside.until(done).await.expect("a replay");
        assert_eq!(format!("{before}{}", words(&api)), text);
        let joined = api
            .iter()
            .filter(|e| e.body.kind() == EventType::TextDelta)
            .count();
        assert_eq!(
            joined,
            usize::from(index + 1 < deltas.len()),
            "the rest comes in one piece"
        );
    }
    fixture.check_history().await;
}

// S3-033, D-41
#[tokio::test]
async fn snapshot_inside_message_plus_deltas_is_the_message() {
    let text = "the quick brown fox jumps over the lazy dog and then it rests for a while";
    let fixture = ServerFixture::saying([ScriptStep::slow(text, 3, 15)]).await;
    let mut first = fixture.watch("first", SubscribeOptions::live()).await;
    let turn = fixture.submit("x").await;
    first
        .until(|e| matches!(&e.body, Body::TextDelta(_)))
        .await
        .expect("words");
    let mut second = fixture.watch("second", SubscribeOptions::snapshot()).await;
    let WatchFrame::Frame(snapshot) = second.next().await.expect("a frame") else {
        panic!("an event")
    };
    assert_eq!(snapshot["session"]["current_turn_status"], "in_flight");
    assert_eq!(snapshot["session"]["current_turn_id"], turn.to_string());
    let open = snapshot["messages"]
        .as_array()
        .and_then(|m| m.last())
        .expect("the message in flight");
    assert_eq!(open["status"], "in_progress");
    let before = open["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let api = second.turn(turn).await.expect("the rest");
    assert_eq!(format!("{before}{}", words(&api)), text);
    assert!(
        !words(&api).is_empty(),
        "the snapshot was taken too late to tell"
    );
    fixture.check_history().await;
}
