//! A client that stops reading: it is disconnected, other clients are not delayed, and it resumes
//! (S3-092 to S3-095, law 7).

use std::time::{Duration, Instant};

use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, Event, EventType};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{StalledClient, SubscribeOptions, WatchClient, WatchEnd};

/// Much more than the buffers between a server and a frozen client hold.
fn options() -> ServerOptions {
    let words = "0123456789".repeat(40);
    let script = ModelScript::new().on("", [ScriptStep::slow(&words, 400, 2).repeat(1_000)]);
    ServerOptions::script(script)
        .set("stream", "queue_max", 50)
        .set("stream", "send_buffer_bytes", 4_096)
}

fn too_slow(event: &Event) -> bool {
    matches!(&event.body, Body::BusHandlerWarning(w) if w.reason == "client_too_slow")
}

// S3-092, S3-094, S3-095, S3-093, S3-100
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_client_is_closed_and_resumes_without_gap() {
    let fixture = ServerFixture::new(options()).await;
    let frozen = StalledClient::connect(
        &fixture.api,
        "frozen",
        fixture.session,
        &SubscribeOptions::live(),
    )
    .await
    .expect("a connection");
    let mut live = fixture.watch("live", SubscribeOptions::live()).await;
    let turn = fixture.submit("go").await;
    let watching = tokio::spawn(async move {
        let started = Instant::now();
        let events = live.turn(turn).await.expect("the whole turn");
        (events, started.elapsed())
    });
    let warning = fixture.logged(too_slow).await;
    let Body::BusHandlerWarning(warning) = &warning.body else {
        panic!("just found")
    };
    assert!(!warning.subscription_name.is_empty(), "{warning:?}");

    let (events, last, end) = frozen.resume_reading().await;
    assert!(matches!(end, WatchEnd::Closed(1008, _)), "{end}");
    assert_eq!(
        end,
        WatchEnd::Closed(
            1008,
            r#"{"code":"client_too_slow","message":"Outbound queue overflowed; reconnect with replay."}"#.into()
        )
    );
    assert!(
        !events.is_empty() && events.len() < 1_000,
        "{}",
        events.len()
    );
    assert!(events.iter().all(|e| !e.body.kind().is_terminal()));

    let mut back = WatchClient::connect(&fixture.api, "frozen", fixture.session)
        .await
        .expect("a connection");
    back.subscribed(&SubscribeOptions::since(last.expect("a cursor")))
        .await
        .expect("an acknowledgement");
    back.turn(turn).await.expect("the rest of the turn");
    let (seen, took) = watching.await.expect("the live one");
    let deltas = seen
        .iter()
        .filter(|e| e.body.kind() == EventType::TextDelta)
        .count();
    assert_eq!(deltas, 1_000);
    // The model speaks for two seconds; a reader beside a frozen one is not held up.
    assert!(took < Duration::from_secs(10), "{took:?}");
    fixture.check_history().await;
}

// S3-094, S3-093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socket_accepting_no_bytes_is_closed() {
    let fixture = ServerFixture::new(options().set("stream", "write_deadline_ms", 300)).await;
    let frozen = StalledClient::connect(
        &fixture.api,
        "frozen",
        fixture.session,
        &SubscribeOptions::live(),
    )
    .await
    .expect("a connection");
    let turn = fixture.submit("go").await;
    fixture.logged(too_slow).await;
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "completed");
    let open = |metrics: &str| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with("turnwire_ws_connections "));
        line.and_then(|line| line.split_whitespace().last()?.parse::<f64>().ok())
    };
    let started = Instant::now();
    loop {
        let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
        if open(&metrics) == Some(0.0) {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "the connection is still held: {:?}",
            open(&metrics)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(frozen);
    fixture.check_history().await;
}
