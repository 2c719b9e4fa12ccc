//! The lifetime of a connection: heartbeats, close codes, invalid frames (SC-27, S3-031).

use std::time::Duration;

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::Body;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchEnd, WatchFrame};

fn fast() -> ServerOptions {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    ServerOptions::script(script)
        .set("stream", "ping_ms", 120)
        .set("stream", "subscribe_wait_ms", 300)
}

// S3-042
#[tokio::test]
async fn idle_socket_is_pinged_and_stays_while_it_answers() {
    let fixture = ServerFixture::new(fast()).await;
    let mut client = fixture.watch("alive", SubscribeOptions::live()).await;
    client.answers = false;
    let mut nonces = Vec::new();
    while nonces.len() < 8 {
        match client.next().await.expect("the socket lives") {
            WatchFrame::Frame(frame) if frame["type"] == "ping" => {
                let nonce = frame["nonce"].as_str().expect("a nonce").to_owned();
                client
                    .send(&json!({"type": "pong", "nonce": nonce}))
                    .await
                    .expect("sent");
                nonces.push(nonce);
            }
            WatchFrame::Frame(frame) => panic!("{frame}"),
            WatchFrame::Event(_) => {}
        }
    }
    let all = nonces.len();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), all, "every ping has a nonce of its own");
    fixture.check_history().await;
}

// S3-043, S3-100, SC-27
#[tokio::test]
async fn three_unanswered_pings_close_the_connection() {
    let fixture = ServerFixture::new(fast()).await;
    let mut client = fixture.watch("silent", SubscribeOptions::live()).await;
    client.answers = false;
    let mut pings = 0;
    let end = loop {
        match client.next().await {
            Ok(WatchFrame::Frame(frame)) if frame["type"] == "ping" => pings += 1,
            Ok(_) => {}
            Err(end) => break end,
        }
    };
    assert_eq!(pings, 3);
    assert!(matches!(end, WatchEnd::Closed(1008, _)), "{end}");
    assert_eq!(end.code(), "ping_timeout");
}

// S3-044
#[tokio::test]
async fn ping_is_answered_with_its_nonce() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let mut client = fixture.connect("asking").await;
    // Also before the first subscribe (D-40).
    for nonce in ["a", "\u{1f30a}"] {
        client
            .send(&json!({"type": "ping", "nonce": nonce}))
            .await
            .expect("sent");
        let WatchFrame::Frame(frame) = client.next().await.expect("an answer") else {
            panic!("an event")
        };
        assert_eq!(frame, json!({"type": "pong", "nonce": nonce}));
    }
}

// S3-042
#[tokio::test]
async fn ping_position_is_a_lasting_cursor() {
    let fixture = ServerFixture::new(fast()).await;
    let nothing = SubscribeOptions::live().filter(json!({"event_types": ["approval.requested"]}));
    let mut client = fixture.watch("bored", nothing).await;
    fixture.turn("x").await;
    let last = fixture.log().await.last().expect("an event").id;
    client.answers = false;
    let position = loop {
        let WatchFrame::Frame(frame) = client.next().await.expect("a ping") else {
            panic!("an event")
        };
        client
            .send(&json!({"type": "pong", "nonce": frame["nonce"]}))
            .await
            .expect("sent");
        let position = frame["position"]
            .as_str()
            .expect("a position")
            .parse()
            .expect("a position");
        if position >= last {
            break position;
        }
    };
    let mut again = fixture.connect("back").await;
    let filter = json!({"event_types": ["turn.started", "turn.completed"]});
    let ack = again
        .subscribed(&SubscribeOptions::since(position).filter(filter))
        .await
        .expect("a legal cursor");
    assert_eq!(ack["replay_event_count"], 0);
    fixture.check_history().await;
}

// D-40
#[tokio::test]
async fn client_that_never_subscribes_is_closed() {
    let fixture = ServerFixture::new(fast()).await;
    let mut client = fixture.connect("mute").await;
    let started = std::time::Instant::now();
    let end = client.end().await;
    assert!(matches!(end, WatchEnd::Closed(1008, _)), "{end}");
    assert_eq!(end.code(), "subscribe_timeout");
    assert!(
        started.elapsed() > Duration::from_millis(200),
        "{:?}",
        started.elapsed()
    );
}

// S3-031
#[tokio::test]
async fn binary_invalid_json_and_oversize_close_codes() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let large = format!("{{\"type\":\"ping\",\"nonce\":\"{}\"}}", "x".repeat(70_000));
    let cases = [
        (Message::binary(vec![1, 2, 3]), 1003, "binary"),
        (Message::text("not json"), 1007, "non_json"),
        (Message::text("{\"type\":"), 1007, "non_json"),
        (Message::text(large), 1009, "oversized"),
    ];
    for (message, code, word) in cases {
        for subscribed in [false, true] {
            let mut client = fixture.connect(&format!("{word} {subscribed}")).await;
            if subscribed {
                client
                    .subscribed(&SubscribeOptions::live())
                    .await
                    .expect("an acknowledgement");
            }
            client.send_message(message.clone()).await.expect("sent");
            let end = client.end().await;
            let WatchEnd::Closed(reply, reason) = &end else {
                panic!("{end}")
            };
            assert_eq!((*reply, end.code().as_str()), (code, word), "{reason}");
            assert!(reason.len() <= 123);
        }
    }
}

// S3-007, S3-031
#[tokio::test]
async fn unknown_frame_type_is_ignored_with_warning() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let mut client = fixture.watch("odd", SubscribeOptions::live()).await;
    for frame in [
        json!({"type": "submit", "message": "hi"}),
        json!({"no": "type"}),
        json!([1]),
    ] {
        client.send(&frame).await.expect("sent");
    }
    client
        .send(&json!({"type": "ping", "nonce": "still here"}))
        .await
        .expect("sent");
    loop {
        if let WatchFrame::Frame(frame) = client.next().await.expect("the socket lives") {
            assert_eq!(frame, json!({"type": "pong", "nonce": "still here"}));
            break;
        }
    }
    let warning = fixture
        .logged(|e| matches!(e.body, Body::BusHandlerWarning(_)))
        .await;
    let Body::BusHandlerWarning(warning) = warning.body else {
        panic!("just found")
    };
    assert_eq!(warning.reason, "unknown_frame");
    assert!(!warning.subscription_name.is_empty());
    // The request started no turn.
    let turns = fixture
        .api
        .get(&format!("/sessions/{}/turns", fixture.session))
        .await
        .expect("an answer");
    assert_eq!(turns.json()["turns"], json!([]));
    fixture.check_history().await;
}
