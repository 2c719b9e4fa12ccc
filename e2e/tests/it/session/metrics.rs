//! The metrics of the session wire move with what its clients experience (S3-109).

use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::chat::{MetricsSnapshot, until};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, Epoch, Event, EventType, Position, Seq};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{StalledClient, SubscribeOptions, WatchFrame};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

async fn sum(fixture: &ServerFixture, name: &str) -> f64 {
    MetricsSnapshot::read(&fixture.api).await.sum(name)
}

/// Waits until a metric has a value.
async fn until_sum(fixture: &ServerFixture, name: &str, value: f64) {
    until(name, || async { sum(fixture, name).await >= value }).await;
}

/// A turn with `pairs` pairs of tool events.
fn burst(pairs: u64) -> ModelScript {
    let step = ScriptStep::tool(tool::BURST, json!({"count": pairs}));
    ModelScript::new().on("", [step, ScriptStep::text("done")])
}

// S3-041, S3-109
#[tokio::test]
async fn seam_lasts_until_the_replay_is_written() {
    const STALL: Duration = Duration::from_millis(800);
    // A replay of more bytes than the buffers between server and client take.
    let options = ServerOptions::script(burst(2_000))
        .set("stream", "pending_bytes", 16_384)
        .set("stream", "send_buffer_bytes", 4_096)
        .set("stream", "write_deadline_ms", 60_000);
    let fixture = ServerFixture::new(options).await;
    let turn = fixture.submit("go").await;
    fixture.api.ended(turn).await.expect("an end");
    assert_eq!(sum(&fixture, "turnwire_ws_seam_seconds_count").await, 0.0);
    let begun = Instant::now();
    let filter = json!({"event_types": ["tool.called", "tool.completed"]});
    let ask = SubscribeOptions::since(START).filter(filter);
    let client = StalledClient::connect(&fixture.api, "stalled", fixture.session, &ask).await;
    let mut client = client.expect("a connection").into_reader();
    tokio::time::sleep(STALL).await;
    assert_eq!(
        sum(&fixture, "turnwire_ws_seam_seconds_count").await,
        0.0,
        "not live yet"
    );
    for _ in 0..4_000 {
        client.event().await.expect("a replayed event");
    }
    until_sum(&fixture, "turnwire_ws_seam_seconds_count", 1.0).await;
    let seam = sum(&fixture, "turnwire_ws_seam_seconds_sum").await;
    let stall = STALL.as_secs_f64();
    assert!(seam >= stall, "{seam} s with a stall of {stall} s");
    let whole = begun.elapsed().as_secs_f64();
    assert!(seam <= whole, "{seam} of {whole} s");
    // Each further subscribe is measured too, a snapshot and a live one.
    for (n, ask) in [SubscribeOptions::snapshot(), SubscribeOptions::live()]
        .iter()
        .enumerate()
    {
        let client = fixture.watch(&format!("client {n}"), ask.clone()).await;
        until_sum(&fixture, "turnwire_ws_seam_seconds_count", n as f64 + 2.0).await;
        drop(client);
    }
}

// S3-109
#[tokio::test]
async fn replays_refusals_and_sent_events_are_counted() {
    let fixture = ServerFixture::new(ServerOptions::script(burst(10))).await;
    let turn = fixture.submit("go").await;
    fixture.api.ended(turn).await.expect("an end");
    let mut client = fixture.connect("client").await;
    let invalid = json!({"type": "subscribe", "filter": {"event_types": ["made.up"]}});
    client.send(&invalid).await.expect("sent");
    let WatchFrame::Frame(refused) = client.next().await.expect("an answer") else {
        panic!("an event")
    };
    assert_eq!(refused["code"], "invalid_filter");
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    assert_eq!(metrics.sum("turnwire_ws_subscribe_error_total"), 1.0);
    assert_eq!(metrics.sum("turnwire_ws_connections"), 1.0);
    assert_eq!(metrics.sum("turnwire_ws_replay_events_total"), 0.0);
    let filter = json!({"event_types": ["tool.called", "tool.completed", "message.complete"]});
    let ask = SubscribeOptions::since(START).filter(filter);
    let ack = client.subscribed(&ask).await.expect("accepted");
    assert_eq!(ack["replay_event_count"], 22, "the burst and its own tool");
    let mut received = 0.0;
    for _ in 0..24 {
        client.event().await.expect("an event");
        received += 1.0;
    }
    until_sum(&fixture, "turnwire_ws_events_sent_total", received).await;
    assert_eq!(
        sum(&fixture, "turnwire_ws_events_sent_total").await,
        received
    );
    assert_eq!(sum(&fixture, "turnwire_ws_replay_events_total").await, 22.0);
    drop(client);
    until("the connection is gone", || async {
        sum(&fixture, "turnwire_ws_connections").await == 0.0
    })
    .await;
}

/// A stalled client, whose socket takes little, beside a model that writes for a while.
fn slow_options(steps: Vec<ScriptStep>) -> ServerOptions {
    ServerOptions::script(ModelScript::new().on("", steps))
        .set("stream", "queue_max", 50)
        .set("stream", "pending_bytes", 16_384)
        .set("stream", "send_buffer_bytes", 4_096)
        .set("stream", "write_deadline_ms", 60_000)
}

// S3-109, S3-093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_counted_and_named() {
    let words = "0123456789".repeat(40);
    // The events of a slow client leave the ring before it is closed, and not while it still seems to
    // read.
    let options = slow_options(vec![ScriptStep::slow(&words, 400, 5).repeat(600)]);
    let fixture = ServerFixture::new(options.set("stream", "ring_events", 40)).await;
    let mut frozen = Vec::new();
    for name in ["one", "two"] {
        let ask = SubscribeOptions::live();
        let client = StalledClient::connect(&fixture.api, name, fixture.session, &ask).await;
        frozen.push(client.expect("a connection"));
    }
    let turn = fixture.submit("go").await;
    until_sum(&fixture, "turnwire_ws_slow_client_closed_total", 2.0).await;
    assert!(sum(&fixture, "turnwire_ws_queue_depth_max").await > 0.0);
    fixture.api.ended(turn).await.expect("an end");
    // Both were more than 50 events behind, or had lost one of a ring of 40.
    until_sum(&fixture, "turnwire_ws_frame_dropped_total", 82.0).await;
    let warnings = |events: &[Event]| -> Vec<String> {
        let warned = events.iter().filter_map(|event| match &event.body {
            Body::BusHandlerWarning(w) if w.reason == "client_too_slow" => {
                assert_eq!(w.count, 1, "{w:?}");
                Some(w.subscription_name.clone())
            }
            _ => None,
        });
        warned.collect()
    };
    until("both are named", || async {
        warnings(&fixture.log().await).len() == 2
    })
    .await;
    let names = warnings(&fixture.log().await);
    assert_ne!(names[0], names[1]);
}

// S3-092
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_events_do_not_make_a_client_too_slow() {
    let steps = || {
        vec![
            ScriptStep::tool(tool::BURST, json!({"count": 20})),
            ScriptStep::slow("hidden ", 7, 1).repeat(800),
        ]
    };
    // With a small ring the hidden events also push the others out of memory.
    for ring_events in [4_096, 16] {
        let options = slow_options(steps()).set("stream", "ring_events", ring_events);
        let fixture = ServerFixture::new(options).await;
        let types = ["tool.called", "tool.completed", "turn.completed"];
        let ask = SubscribeOptions::live().filter(json!({"event_types": types}));
        let client = StalledClient::connect(&fixture.api, "stalled", fixture.session, &ask).await;
        let client = client.expect("a connection");
        let turn = fixture.submit("go").await;
        fixture.api.ended(turn).await.expect("an end");
        let mut client = client.into_reader();
        let events = client.turn(turn).await.expect("the whole turn");
        let of = |kind| events.iter().filter(|e| e.body.kind() == kind).count();
        let counts = types.map(|name| of(name.parse::<EventType>().expect("a type")));
        assert_eq!(counts, [21, 21, 1], "a ring of {ring_events}");
        assert_eq!(
            sum(&fixture, "turnwire_ws_slow_client_closed_total").await,
            0.0
        );
        fixture.check_history().await;
    }
}

// S3-039, S3-092
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_deltas_do_not_make_a_client_of_ends_too_slow() {
    // The first message blocks the client; the deltas of the second push its position out of the ring.
    let steps = || {
        vec![
            ScriptStep::text(&"long ".repeat(20_000)),
            ScriptStep::tool(tool::BURST, json!({"count": 1})),
            ScriptStep::slow("hidden ", 7, 1).repeat(800),
        ]
    };
    for types in [
        &["message.complete"][..],
        &["message.start", "message.complete"],
    ] {
        let options = slow_options(steps()).set("stream", "ring_events", 16);
        let fixture = ServerFixture::new(options).await;
        let ask = SubscribeOptions::live().filter(json!({"event_types": types}));
        let client = StalledClient::connect(&fixture.api, "stalled", fixture.session, &ask).await;
        let client = client.expect("a connection");
        let turn = fixture.submit("go").await;
        fixture.api.ended(turn).await.expect("an end");
        let mut client = client.into_reader();
        let mut received = Vec::new();
        for _ in 0..2 * types.len() {
            received.push(client.event().await.expect("an event of a message"));
        }
        let kinds: Vec<&str> = received.iter().map(|e| e.body.kind().name()).collect();
        assert_eq!(kinds, [types, types].concat());
        let last = received.last().expect("an end");
        let Body::MessageComplete(end) = &last.body else {
            panic!("not an end: {last:?}")
        };
        let text = end.final_content[0].as_text().map(str::len);
        assert_eq!(text, Some("hidden ".len() * 800), "the whole message");
        let closed = sum(&fixture, "turnwire_ws_slow_client_closed_total").await;
        assert_eq!(closed, 0.0, "{types:?}");
        fixture.check_history().await;
    }
}
