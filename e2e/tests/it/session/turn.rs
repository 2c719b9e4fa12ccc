//! Submitting and reading turns and feedback over HTTP (S3-007, S3-011, R-08).

use serde_json::json;
use turnwire_e2e::server_fixture::{ServerFixture, shape};
use turnwire_event::{Body, EventType};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::SubscribeOptions;

// S3-011
#[tokio::test]
async fn one_turn_runs_at_a_time() {
    let fixture =
        ServerFixture::saying([ScriptStep::slow("a slow answer to something", 2, 30)]).await;
    let running = fixture.submit("one").await;
    let busy = fixture
        .api
        .try_submit(fixture.session, "two")
        .await
        .expect("an answer");
    assert_eq!((busy.status, busy.code().as_str()), (409, "turn_in_flight"));
    assert_eq!(busy.header("content-type"), "application/problem+json");
    assert_eq!(busy.json()["turn_id"], running.to_string());
    // Another session is not concerned.
    let other = fixture.api.create().await.expect("a session");
    let other_turn = fixture
        .api
        .submit(other, "three")
        .await
        .expect("an answer")
        .turn_id;
    fixture.api.ended(running).await.expect("an end");
    fixture.api.ended(other_turn).await.expect("an end");
    let after = fixture.submit("four").await;
    fixture.api.ended(after).await.expect("an end");
    fixture.check_history().await;
}

// S3-011, I-09
#[tokio::test]
async fn one_of_many_concurrent_submits_is_accepted() {
    let fixture = ServerFixture::saying([ScriptStep::slow("words words words words", 2, 20)]).await;
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let (api, session) = (fixture.api.clone(), fixture.session);
            tokio::spawn(async move {
                api.try_submit(session, "me")
                    .await
                    .expect("an answer")
                    .status
            })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        match task.await.expect("a task") {
            202 => accepted += 1,
            status => assert_eq!(status, 409),
        }
    }
    assert_eq!(accepted, 1);
    fixture.check_history().await;
}

// S3-022, S3-007
#[tokio::test]
async fn accepted_position_replays_the_whole_turn() {
    let fixture = ServerFixture::saying([
        ScriptStep::text("hello "),
        ScriptStep::tool(tool::CLOCK, json!({})),
        ScriptStep::text("done"),
    ])
    .await;
    for number in 0..3 {
        let answer = fixture
            .api
            .try_submit(fixture.session, "go")
            .await
            .expect("an answer");
        assert_eq!(answer.status, 202);
        let body = answer.json();
        let turn = body["turn_id"].as_str().expect("a turn");
        assert_eq!(body["response_id"], format!("resp_{turn}"));
        assert!(["queued", "running"].contains(&body["state"].as_str().expect("a state")));
        let since = body["position"]
            .as_str()
            .expect("a position")
            .parse()
            .expect("a position");
        let turn = turn.parse().expect("a turn");
        let mut client = fixture
            .watch(&format!("since {number}"), SubscribeOptions::since(since))
            .await;
        let events = client.turn(turn).await.expect("the turn");
        assert_eq!(shape(&events)[..2], ["turn.started", "route.decided"]);
        let row = fixture.api.turn(turn).await.expect("an answer");
        assert_eq!(row["state"], "completed");
        assert_eq!(row["position"], body["position"]);
        assert_eq!(row["terminal"]["type"], "turn.completed");
        assert_eq!(row["session_id"], fixture.session.to_string());
    }
    fixture.check_history().await;
}

// D-03
#[tokio::test]
async fn turn_is_addressable_by_response_id() {
    let fixture = ServerFixture::saying([ScriptStep::stall()]).await;
    let turn = fixture.submit("go").await;
    let path = format!("/turns/resp_{turn}/cancel");
    let answer = fixture
        .api
        .send(hyper::Method::POST, &path, None)
        .await
        .expect("an answer");
    assert_eq!(
        (answer.status, answer.json()["turn_id"].clone()),
        (202, json!(turn))
    );
    fixture.api.ended(turn).await.expect("an end");
    let row = fixture
        .api
        .get(&format!("/turns/resp_{turn}"))
        .await
        .expect("an answer");
    assert_eq!(
        (row.status, row.json()["state"].clone()),
        (200, json!("cancelled"))
    );
    assert!(row.json()["receipt"].is_array());
    fixture.check_history().await;
}

#[tokio::test]
async fn message_is_text_or_blocks_and_is_logged() {
    let fixture = ServerFixture::saying([ScriptStep::text("You said {{user}}")]).await;
    let blocks = json!([{"type": "text", "text": "two "}, {"type": "text", "text": "blocks"}]);
    let mut client = fixture.watch("blocks", SubscribeOptions::live()).await;
    let path = format!("/sessions/{}/turns", fixture.session);
    let answer = fixture
        .api
        .post(&path, json!({"message": blocks}))
        .await
        .expect("an answer");
    assert_eq!(answer.status, 202, "{}", answer.body);
    let events = client
        .until(|e| e.body.kind().is_terminal())
        .await
        .expect("the turn");
    let Some(Body::TurnStarted(started)) = events
        .iter()
        .map(|e| &e.body)
        .find(|b| b.kind() == EventType::TurnStarted)
    else {
        panic!("no start")
    };
    assert_eq!(
        serde_json::to_value(&started.input).expect("plain data"),
        blocks
    );
    let history = fixture.check_history().await;
    assert_eq!(history.sessions[0].messages[0]["content"], blocks);
}

//
#[tokio::test]
async fn feedback_is_logged_and_streamed() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let events = fixture.turn("x").await;
    let turn = events[0].turn_id.expect("a turn");
    let message = events.iter().find_map(|e| match &e.body {
        Body::MessageComplete(end) => Some(end.message_id),
        _ => None,
    });
    let mut client = fixture
        .watch("watching", SubscribeOptions::live().filter("preset:chat"))
        .await;
    let path = format!("/sessions/{}/feedback", fixture.session);
    let bodies = [
        json!({"message_id": message, "rating": "up", "comment": "good"}),
        json!({"turn_id": turn, "rating": 4}),
    ];
    for body in bodies {
        let answer = fixture
            .api
            .post(&path, body.clone())
            .await
            .expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.body);
        let event = client.event().await.expect("the feedback");
        assert_eq!(answer.json()["position"], event.id.to_string());
        assert_eq!(event.turn_id, None, "feedback belongs to no turn");
        let Body::FeedbackRecorded(feedback) = event.body else {
            panic!("something else")
        };
        assert_eq!(
            feedback.rating,
            body["rating"].to_string().trim_matches('"')
        );
    }
    for (body, status) in [
        (json!({"rating": "up"}), 422),
        (
            json!({"message_id": "00000000000000000000000000", "rating": "up"}),
            404,
        ),
        (
            json!({"turn_id": "00000000000000000000000000", "rating": "up"}),
            404,
        ),
    ] {
        let answer = fixture
            .api
            .post(&path, body.clone())
            .await
            .expect("an answer");
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    fixture.check_history().await;
}

// S3-109
#[tokio::test]
async fn metrics_report_turns_and_connections() {
    let script = ModelScript::new()
        .on("^stall", [ScriptStep::stall()])
        .on("", [ScriptStep::text("hi")]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    fixture.turn("x").await;
    let turn = fixture.submit("stall").await;
    fixture.api.cancel(turn).await.expect("an answer");
    fixture.api.ended(turn).await.expect("an end");
    let metrics = fixture.api.get("/metrics").await.expect("an answer");
    assert_eq!(metrics.status, 200);
    for name in [
        "turnwire_ws_connections",
        "turnwire_turn_cancelled_total",
        "turnwire_llm_calls_total",
        "turnwire_log_commits_total",
    ] {
        assert!(
            metrics.body.lines().any(|line| line.starts_with(name)),
            "{name} is missing:\n{}",
            metrics.body
        );
    }
    assert!(
        !metrics.body.contains(&fixture.session.to_string()),
        "no session ids as labels"
    );
    for path in ["/healthz", "/readyz"] {
        assert_eq!(fixture.api.get(path).await.expect("an answer").status, 200);
    }
}
