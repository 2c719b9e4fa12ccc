//! SIGTERM: the server announces the drain, lets turns finish, and exits with 0 (F15).

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use turnwire_e2e::chat::until;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, EventType, SessionId, TurnId};
use turnwire_testkit::api::{AcceptedSubmit, ApiClient};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchEnd};

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

/// Starts turns in new sessions and follows each, until the server takes no more; returns the turns that
/// were accepted.
async fn follow_turns(api: ApiClient, number: usize) -> Vec<(SessionId, TurnId)> {
    let mut accepted = Vec::new();
    while let Ok(created) = api.post("/sessions", json!({})).await {
        if created.status != 201 {
            break;
        }
        let session = created.json()["session_id"]
            .as_str()
            .expect("an id")
            .parse();
        let session: SessionId = session.expect("an id");
        let name = format!("user {number}");
        let Ok(mut client) = WatchClient::connect(&api, &name, session).await else {
            break;
        };
        if client.subscribed(&SubscribeOptions::live()).await.is_err() {
            break;
        }
        let text = if accepted.len() % 3 == 0 {
            "stall"
        } else {
            "go"
        };
        match api.try_submit(session, text).await {
            Ok(answer) if answer.status == 202 => {
                let turn: AcceptedSubmit = serde_json::from_str(&answer.body).expect("a turn");
                accepted.push((session, turn.turn_id));
            }
            _ => break,
        }
        // A stalled turn is left to the drain.
        if text == "stall" {
            continue;
        }
        if client.turn(accepted[accepted.len() - 1].1).await.is_err() {
            break;
        }
    }
    accepted
}

// F15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_under_load_ends_every_turn_within_its_window() {
    const WINDOW_MS: u64 = 2_000;
    let options = ServerOptions::script(script()).set("listen", "drain_ms", WINDOW_MS);
    let mut fixture = ServerFixture::new(options).await;
    let users: Vec<_> = (0..16)
        .map(|number| tokio::spawn(follow_turns(fixture.api.clone(), number)))
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    fixture.server.sigterm();
    let asked = Instant::now();
    let ready = loop {
        let ready = fixture.api.get("/readyz").await.expect("an answer");
        if ready.status != 200 {
            break ready;
        }
    };
    let noticed = asked.elapsed();
    assert_eq!((ready.status, ready.code().as_str()), (503, "draining"));
    assert_eq!(ready.json()["reasons"], json!(["draining"]));
    assert!(noticed < Duration::from_millis(500), "{noticed:?}");
    assert!(fixture.server.wait(Duration::from_secs(60)).await.success());
    let took = asked.elapsed();
    // The window, then at most: the ends of turns, the goodbyes of connections, the last commits.
    assert!(took < Duration::from_millis(WINDOW_MS + 8_000), "{took:?}");
    let mut turns = Vec::new();
    for user in users {
        turns.extend(user.await.expect("a user"));
    }
    assert!(turns.len() > 20, "{} turns", turns.len());
    fixture.server.run().await.expect("it comes up again");
    let mut ends = std::collections::BTreeMap::new();
    for (session, turn) in turns {
        let row = fixture.api.turn(turn).await.expect("an answer");
        let terminal = &row["terminal"]["payload"];
        let end = format!(
            "{} {} {}",
            row["state"], terminal["status"], terminal["reason"]
        );
        *ends.entry(end).or_insert(0) += 1;
        assert_eq!(row["state"], "completed", "{session}: {row}");
    }
    println!("after {took:?}: {ends:?}");
    let unfinished = "\"completed\" \"failed\" \"server_shutdown\"";
    assert!(ends.contains_key(unfinished), "{ends:?}");
    assert!(
        !ends.keys().any(|end| end.contains("server_restart")),
        "{ends:?}"
    );
}
