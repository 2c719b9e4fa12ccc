//! Stops of relayed turns: by a person, by leaving, by silence.

use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::chat::{code, events, say, until, whole, words};
use turnwire_event::{Body, ResponseId};
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::upstream::UpstreamStep as Step;

use super::{completed, relay, relay_with, text};

fn stalling() -> Vec<Step> {
    vec![Step::head(), Step::event(&text("Hel")), Step::Stall]
}

// SC-06, S1-107, S1-108, S1-109, D-13, S1-131
#[tokio::test]
async fn silent_upstream_is_cancelled_with_idle_timeout() {
    let steps = vec![
        Step::head(),
        Step::event(&json!({"type": "tool_call_start", "id": "c1", "name": "search"})),
        Step::event(&text("Hel")),
    ];
    // Comments are no events.
    let comments = (0..15).flat_map(|_| [Step::wait(200), Step::comment()]);
    let late = [Step::event(&text("lo")), Step::event(&completed())];
    let steps = steps.into_iter().chain(comments).chain(late).collect();
    let (upstream, fixture) =
        relay_with(steps, |options| options.set("relay", "idle_ms", 1_000)).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (turn, frames) = whole(&fixture.api, "idle", &question).await;
    assert_eq!(frames.last().map(Block::event), Some("cancelled"));
    assert_eq!(
        (code(&frames), words(&frames).as_str()),
        ("IDLE_TIMEOUT", "Hel")
    );
    let names = events(&frames);
    assert_eq!(names[names.len() - 2..], ["tool_completed", "cancelled"]);
    let row = fixture.api.turn(turn).await.expect("a turn");
    let end = &row["terminal"]["payload"];
    assert_eq!(
        (&end["reason"], &end["code"], &end["phase"]),
        (
            &json!("idle_timeout"),
            &json!("IDLE_TIMEOUT"),
            &json!("idle")
        )
    );
    until("the upstream's connection is closed", || async {
        upstream.requests()[0].closed_by_client.is_some()
    })
    .await;
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let counted = metrics.lines().any(|line| {
        line.starts_with("turnwire_stream_cancellation_total{") && line.contains("IDLE_TIMEOUT")
    });
    assert!(counted);
    fixture.check_history().await;
}

// S1-107
#[tokio::test]
async fn upstream_without_a_head_is_idle_too() {
    let (_upstream, fixture) = relay_with(vec![Step::Stall], |options| {
        options.set("relay", "idle_ms", 300)
    })
    .await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "no head", &question).await;
    assert_eq!(frames.last().map(Block::event), Some("cancelled"));
    assert_eq!(code(&frames), "IDLE_TIMEOUT");
    fixture.check_history().await;
}

// S1-105, S1-106, S1-028
#[tokio::test]
async fn cancel_closes_the_connection_of_the_upstream() {
    let (upstream, fixture) = relay(stalling()).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "stopped", &question).await;
    let mut frames = stream.until("text").await.expect("a beginning");
    let path = format!("/turns/{}/cancel", ResponseId::from(stream.turn()));
    let answer = fixture.api.post(&path, json!({})).await.expect("an answer");
    assert_eq!(answer.status, 202);
    frames.extend(stream.read_to_end().await.expect("an end"));
    assert_eq!(frames.last().map(Block::event), Some("cancelled"));
    assert_eq!(code(&frames), "REQUEST_CANCELLED");
    until("the upstream's connection is closed", || async {
        upstream.requests()[0].closed_by_client.is_some()
    })
    .await;
    fixture.check_history().await;
}

// serial: the connection of the upstream is closed within 1 s
// S1-104
#[tokio::test]
async fn client_that_leaves_closes_the_upstream_within_a_second() {
    let (upstream, fixture) = relay(stalling()).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "leaving", &question).await;
    stream.until("text").await.expect("a beginning");
    let turn = stream.turn();
    let left = Instant::now();
    drop(stream);
    until("the upstream's connection is closed", || async {
        upstream.requests()[0].closed_by_client.is_some()
    })
    .await;
    let closed = upstream.requests()[0].closed_by_client.expect("closed");
    assert!(
        closed - left < Duration::from_secs(1),
        "{:?}",
        closed - left
    );
    // A client that comes back finds its turn.
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["terminal"]["payload"]["reason"], "client_disconnected");
    fixture.check_history().await;
}

// S1-028
#[tokio::test]
async fn upstream_that_stops_by_itself_ends_the_turn_as_cancelled() {
    for (own, expected, reason) in [
        (
            "REQUEST_CANCELLED",
            "REQUEST_CANCELLED",
            "upstream_cancelled",
        ),
        ("IDLE_TIMEOUT", "IDLE_TIMEOUT", "idle_timeout"),
    ] {
        let cancelled = json!({"type": "cancelled", "error": {"code": own}});
        let steps = vec![
            Step::head(),
            Step::event(&text("Hel")),
            Step::event(&cancelled),
            Step::event(&completed()),
        ];
        let (_upstream, fixture) = relay(steps).await;
        let question = ChatSubmit::new("hi").session(fixture.session);
        let (turn, frames) = whole(&fixture.api, own, &question).await;
        assert_eq!(frames.last().map(Block::event), Some("cancelled"));
        assert_eq!(code(&frames), expected);
        let row = fixture.api.turn(turn).await.expect("a turn");
        assert_eq!(row["terminal"]["payload"]["reason"], reason);
        fixture.check_history().await;
    }
}

// S1-105
#[tokio::test]
async fn fifty_relayed_turns_leave_no_connection_after_stops_and_a_kill() {
    let (upstream, mut fixture) = relay(stalling()).await;
    let mut turns = Vec::new();
    for _ in 0..50 {
        let session = fixture.api.create().await.expect("a session");
        let turn = fixture
            .api
            .submit(session, "hi")
            .await
            .expect("accepted")
            .turn_id;
        turns.push(turn);
    }
    until("all are asked", || async {
        upstream.requests().len() == 50
    })
    .await;
    for turn in &turns[..25] {
        fixture.api.cancel(*turn).await.expect("an answer");
    }
    for turn in &turns[..25] {
        let row = fixture.api.ended(*turn).await.expect("an end");
        assert_eq!(row["state"], "cancelled");
    }
    until("the stopped ones are closed", || async {
        upstream.open_connections() == 25
    })
    .await;
    fixture.server.kill().await;
    until("all are closed", || async {
        upstream.open_connections() == 0
    })
    .await;
    fixture.server.run().await.expect("it comes up again");
    for turn in &turns[25..] {
        let row = fixture.api.turn(*turn).await.expect("a turn");
        assert_eq!(row["terminal"]["payload"]["reason"], "server_restart");
    }
    assert_eq!(upstream.requests().len(), 50, "nothing is asked again");
    let ends = fixture.log().await;
    assert!(
        !ends
            .iter()
            .any(|event| matches!(event.body, Body::TurnCancelled(_)))
    );
}
