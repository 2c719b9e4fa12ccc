//! Attaching to a session: tokens, the first subscribe, the first turn (SC-19, SC-27).

use std::time::Duration;

use serde_json::json;
use turnwire_e2e::server_fixture::{ServerFixture, shape};
use turnwire_event::{Body, EventType};
use turnwire_testkit::script::ScriptStep;
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

/// The next frame is the snapshot of a session in which nothing was said (S3-028).
async fn empty_snapshot(client: &mut WatchClient) {
    let WatchFrame::Frame(snapshot) = client.next().await.expect("a frame") else {
        panic!("an event before the snapshot")
    };
    assert_eq!(snapshot["type"], "snapshot");
    assert_eq!(snapshot["messages"], json!([]));
    let summary = snapshot["session"].as_object().expect("a summary");
    for field in [
        "id",
        "workspace_path",
        "active_model",
        "routing_policy_version",
        "cost_so_far_usd",
        "turn_count",
        "current_turn_id",
        "current_turn_status",
    ] {
        assert!(
            summary.contains_key(field),
            "{field} is missing: {summary:?}"
        );
    }
}

// S3-002, S3-009, S3-023, S3-030, S3-054, SC-19, S3-100
#[tokio::test]
async fn attach_snapshot_then_live() {
    let fixture = ServerFixture::saying([ScriptStep::slow("Hello from the script.", 4, 2)]).await;
    let attached = fixture
        .api
        .attach(fixture.session)
        .await
        .expect("an answer");
    let token = attached["attach_token"].as_str().expect("a token");
    assert_eq!(token.len(), "atk_".len() + 26);
    assert_eq!(attached["session_id"], fixture.session.to_string());
    assert!(attached["active_model"].is_string());
    let url = format!(
        "ws://{}/sessions/{}/stream?attach={token}",
        fixture.api.addr(),
        fixture.session
    );
    assert_eq!(attached["ws_url"], url);

    let mut client = WatchClient::open(&fixture.api, "first", fixture.session, &url, None)
        .await
        .expect("the url works");
    let ask = SubscribeOptions::snapshot().filter("preset:chat");
    let ack = client.subscribed(&ask).await.expect("an acknowledgement");
    assert_eq!(ack["replay_event_count"], 0);
    assert_eq!(ack["snapshot"], true);
    assert_eq!(
        ack["resolved_filter"]["event_types"]
            .as_array()
            .map(Vec::len),
        Some(26)
    );
    empty_snapshot(&mut client).await;
    let at = client.last().expect("the snapshot's position");

    let turn = fixture
        .api
        .submit(fixture.session, "hi")
        .await
        .expect("an answer");
    let events = client.turn(turn.turn_id).await.expect("the turn");
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "message.start",
        "text.delta",
        "message.complete",
        "llm.call_completed",
        "turn.completed",
    ];
    assert_eq!(shape(&events), expected);
    assert!(events.iter().all(|event| event.id > at));
    let texts: String = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::TextDelta(delta) => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, "Hello from the script.");
    fixture.check_history().await;
}

// S3-004, S3-100, SC-27
#[tokio::test]
async fn token_opens_one_connection_once() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let url = fixture
        .api
        .attach(fixture.session)
        .await
        .expect("an answer")["ws_url"]
        .to_string();
    let url = url.trim_matches('"');
    let first = WatchClient::open(&fixture.api, "first", fixture.session, url, None).await;
    assert!(first.is_ok());
    let second = WatchClient::open(&fixture.api, "second", fixture.session, url, None).await;
    let refused = second.expect_err("a token is good once");
    assert_eq!(refused.status, 401);
    assert!(
        refused.body.contains("\"code\":\"unauthorized\""),
        "{}",
        refused.body
    );
    let without = url.split('?').next().expect("a path");
    let refused = WatchClient::open(&fixture.api, "third", fixture.session, without, None).await;
    assert_eq!(refused.expect_err("no token").status, 401);
}

// S3-004
#[tokio::test]
async fn racing_uses_of_a_token_have_one_winner() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    for _ in 0..20 {
        let url = fixture
            .api
            .attach(fixture.session)
            .await
            .expect("an answer")["ws_url"]
            .to_string();
        let url = url.trim_matches('"');
        let (a, b) = tokio::join!(
            WatchClient::open(&fixture.api, "a", fixture.session, url, None),
            WatchClient::open(&fixture.api, "b", fixture.session, url, None),
        );
        assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1);
    }
}

// S3-004, D-39
#[tokio::test]
async fn token_expires_soon() {
    let script = turnwire_testkit::script::ModelScript::new().on("", [ScriptStep::text("hi")]);
    let options = ServerOptions::script(script).set("stream", "token_ttl_ms", 150);
    let fixture = ServerFixture::new(options).await;
    let url = || async {
        fixture
            .api
            .attach(fixture.session)
            .await
            .expect("an answer")["ws_url"]
            .to_string()
    };
    let fresh = url().await;
    let opened = WatchClient::open(
        &fixture.api,
        "fresh",
        fixture.session,
        fresh.trim_matches('"'),
        None,
    )
    .await;
    assert!(opened.is_ok());
    let old = url().await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let refused = WatchClient::open(
        &fixture.api,
        "old",
        fixture.session,
        old.trim_matches('"'),
        None,
    )
    .await;
    assert_eq!(refused.expect_err("an old token").status, 401);
}

// S3-005
#[tokio::test]
async fn token_is_valid_for_its_session_only() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let other = fixture.api.create().await.expect("a session");
    let url = fixture
        .api
        .attach(fixture.session)
        .await
        .expect("an answer")["ws_url"]
        .to_string();
    let stolen = url
        .trim_matches('"')
        .replace(&fixture.session.to_string(), &other.to_string());
    let refused = WatchClient::open(&fixture.api, "thief", other, &stolen, None).await;
    assert_eq!(refused.expect_err("another session's token").status, 401);
}

// S3-003
#[tokio::test]
async fn unknown_session_is_not_found() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    for id in ["sess_00000000000000000000000000", "sess_x", "x"] {
        let answer = fixture
            .api
            .get(&format!("/sessions/{id}"))
            .await
            .expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "session_not_found"),
            "{id}"
        );
    }
}

// S3-006
#[tokio::test]
async fn each_connection_has_its_own_filter_and_cursor() {
    let fixture = ServerFixture::saying([ScriptStep::slow("a few words here", 3, 2)]).await;
    let mut chat = fixture
        .watch("chat", SubscribeOptions::live().filter("preset:chat"))
        .await;
    let only = json!({"event_types": ["turn.completed"]});
    let mut ends = fixture
        .watch("ends", SubscribeOptions::live().filter(only))
        .await;
    let first = fixture
        .api
        .submit(fixture.session, "one")
        .await
        .expect("an answer");
    let events = chat.turn(first.turn_id).await.expect("the turn");
    assert!(events.len() > 8);
    let end = ends.turn(first.turn_id).await.expect("the turn");
    assert_eq!(shape(&end), ["turn.completed"]);
    fixture.check_history().await;
}

// S3-045
#[tokio::test]
async fn turn_continues_when_its_watcher_leaves() {
    let fixture =
        ServerFixture::saying([ScriptStep::slow("a long answer that goes on and on", 2, 20)]).await;
    let mut client = fixture.watch("gone", SubscribeOptions::live()).await;
    let turn = fixture
        .api
        .submit(fixture.session, "go")
        .await
        .expect("an answer");
    client
        .until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    drop(client);
    let row = fixture.api.ended(turn.turn_id).await.expect("an end");
    assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
    fixture
        .logged(|e| matches!(e.body, Body::BusSubscriberUnregistered(_)))
        .await;
    fixture.check_history().await;
}
