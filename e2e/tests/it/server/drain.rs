//! SIGTERM: the server announces the drain, lets turns finish, and exits with 0 (F15).

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use turnwire_e2e::chat::until;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, EventType};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchEnd};

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on(
            "",
            [ScriptStep::slow(
                "a slow answer that takes about a second",
                2,
                50,
            )],
        )
}

// F15
#[tokio::test]
async fn draining_server_finishes_turn_and_exits_0() {
    let mut fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let mut client = fixture.watch("watching", SubscribeOptions::live()).await;
    let turn = fixture.submit("go").await;
    let mut events = client
        .until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    fixture.server.sigterm();
    tokio::time::sleep(Duration::from_millis(150)).await;
    let ready = fixture
        .api
        .get("/readyz")
        .await
        .expect("an answer while draining");
    assert_eq!((ready.status, ready.code().as_str()), (503, "draining"));
    let refused = fixture
        .api
        .post("/sessions", json!({}))
        .await
        .expect("an answer while draining");
    assert_eq!((refused.status, refused.code().as_str()), (503, "draining"));
    let last = loop {
        match client.event().await {
            Ok(event) => events.push(event),
            Err(end) => break end,
        }
    };
    assert!(matches!(last, WatchEnd::Closed(1001, _)), "{last}");
    assert_eq!(last.code(), "draining");
    assert!(fixture.server.wait(Duration::from_secs(60)).await.success());
    fixture.server.run().await.expect("it comes up again");
    let row = fixture.api.turn(turn).await.expect("an answer");
    assert_eq!(
        (&row["state"], &row["terminal"]["payload"]["status"]),
        (&json!("completed"), &json!("ok")),
        "{row}"
    );
    fixture.check_history().await;
}

// F15
#[tokio::test]
async fn unfinished_turn_is_ended_when_drain_window_closes() {
    let mut fixture =
        ServerFixture::new(ServerOptions::script(script()).set("listen", "drain_ms", 400)).await;
    let mut client = fixture.watch("watching", SubscribeOptions::live()).await;
    let turn = fixture.submit("stall").await;
    client
        .until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    // Without the window the server would wait for the turn, which never ends by itself.
    fixture.server.sigterm();
    assert!(fixture.server.wait(Duration::from_secs(60)).await.success());
    fixture.server.run().await.expect("it comes up again");
    let log = fixture.log().await;
    let end = log
        .iter()
        .find(|e| e.turn_id == Some(turn) && e.body.kind().is_terminal())
        .expect("an end");
    let Body::TurnCompleted(end) = &end.body else {
        panic!("{end:?}")
    };
    assert_eq!(end.reason.as_deref(), Some("server_shutdown"));
    fixture.check_history().await;
}

// F15
#[tokio::test]
async fn second_signal_exits_at_once() {
    let mut fixture =
        ServerFixture::new(ServerOptions::script(script()).set("listen", "drain_ms", 60_000)).await;
    fixture.submit("stall").await;
    fixture.server.sigterm();
    // Two signals that come before the first is handled are one.
    let server = &fixture.server;
    until("the server drains", || async {
        server.stderr().contains("draining")
    })
    .await;
    fixture.server.signal(Signal::TERM);
    fixture.server.wait(Duration::from_secs(30)).await;
    fixture.server.run().await.expect("it comes up again");
    fixture.check_history().await;
}
