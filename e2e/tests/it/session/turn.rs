//! Submitting and reading turns and feedback over HTTP (S3-007, S3-011, R-08).

use serde_json::json;
use turnwire_e2e::scene::{Scene, shape};
use turnwire_event::{Body, EventType};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::SubscribeOptions;

// S3-011
#[tokio::test]
async fn one_turn_runs_at_a_time() {
    let scene = Scene::saying([ScriptStep::slow("a slow answer to something", 2, 30)]).await;
    let running = scene.submit("one").await;
    let busy = scene
        .api
        .try_submit(scene.session, "two")
        .await
        .expect("an answer");
    assert_eq!((busy.status, busy.code().as_str()), (409, "turn_in_flight"));
    assert_eq!(busy.header("content-type"), "application/problem+json");
    assert_eq!(busy.json()["turn_id"], running.to_string());
    // Another session is not concerned.
    let other = scene.api.create().await.expect("a session");
    let other_turn = scene
        .api
        .submit(other, "three")
        .await
        .expect("an answer")
        .turn_id;
    scene.api.ended(running).await.expect("an end");
    scene.api.ended(other_turn).await.expect("an end");
    let after = scene.submit("four").await;
    scene.api.ended(after).await.expect("an end");
    scene.judge().await;
}

// S3-011
#[tokio::test]
async fn one_of_many_concurrent_submits_is_accepted() {
    let scene = Scene::saying([ScriptStep::slow("words words words words", 2, 20)]).await;
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let (api, session) = (scene.api.clone(), scene.session);
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
    scene.judge().await;
}

// S3-022, S3-007
#[tokio::test]
async fn accepted_position_replays_the_whole_turn() {
    let scene = Scene::saying([
        ScriptStep::text("hello "),
        ScriptStep::tool(tool::CLOCK, json!({})),
        ScriptStep::text("done"),
    ])
    .await;
    for number in 0..3 {
        let answer = scene
            .api
            .try_submit(scene.session, "go")
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
        let mut client = scene
            .watch(&format!("since {number}"), SubscribeOptions::since(since))
            .await;
        let events = client.turn(turn).await.expect("the turn");
        assert_eq!(shape(&events)[..2], ["turn.started", "route.decided"]);
        let row = scene.api.turn(turn).await.expect("an answer");
        assert_eq!(row["state"], "completed");
        assert_eq!(row["position"], body["position"]);
        assert_eq!(row["terminal"]["type"], "turn.completed");
        assert_eq!(row["session_id"], scene.session.to_string());
    }
    scene.judge().await;
}

// D-03
#[tokio::test]
async fn turn_is_addressable_by_response_id() {
    let scene = Scene::saying([ScriptStep::stall()]).await;
    let turn = scene.submit("go").await;
    let path = format!("/turns/resp_{turn}/cancel");
    let answer = scene
        .api
        .send(hyper::Method::POST, &path, None)
        .await
        .expect("an answer");
    assert_eq!(
        (answer.status, answer.json()["turn_id"].clone()),
        (202, json!(turn))
    );
    scene.api.ended(turn).await.expect("an end");
    let row = scene
        .api
        .get(&format!("/turns/resp_{turn}"))
        .await
        .expect("an answer");
    assert_eq!(
        (row.status, row.json()["state"].clone()),
        (200, json!("cancelled"))
    );
    assert!(row.json()["receipt"].is_array());
    scene.judge().await;
}

#[tokio::test]
async fn message_is_text_or_blocks_and_is_logged() {
    let scene = Scene::saying([ScriptStep::text("You said {{user}}")]).await;
    let blocks = json!([{"type": "text", "text": "two "}, {"type": "text", "text": "blocks"}]);
    let mut client = scene.watch("blocks", SubscribeOptions::live()).await;
    let path = format!("/sessions/{}/turns", scene.session);
    let answer = scene
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
    let history = scene.judge().await;
    assert_eq!(history.sessions[0].messages[0]["content"], blocks);
}

//
#[tokio::test]
async fn feedback_is_logged_and_streamed() {
    let scene = Scene::saying([ScriptStep::text("hi")]).await;
    let events = scene.turn("x").await;
    let turn = events[0].turn_id.expect("a turn");
    let message = events.iter().find_map(|e| match &e.body {
        Body::MessageComplete(end) => Some(end.message_id),
        _ => None,
    });
    let mut client = scene
        .watch("watching", SubscribeOptions::live().filter("preset:chat"))
        .await;
    let path = format!("/sessions/{}/feedback", scene.session);
    let bodies = [
        json!({"message_id": message, "rating": "up", "comment": "good"}),
        json!({"turn_id": turn, "rating": 4}),
    ];
    for body in bodies {
        let answer = scene
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
        let answer = scene
            .api
            .post(&path, body.clone())
            .await
            .expect("an answer");
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    scene.judge().await;
}

// S3-109
#[tokio::test]
async fn metrics_report_turns_and_connections() {
    let script = ModelScript::new()
        .on("^stall", [ScriptStep::stall()])
        .on("", [ScriptStep::text("hi")]);
    let scene = Scene::new(ServerOptions::script(script)).await;
    scene.turn("x").await;
    let turn = scene.submit("stall").await;
    scene.api.cancel(turn).await.expect("an answer");
    scene.api.ended(turn).await.expect("an end");
    let metrics = scene.api.get("/metrics").await.expect("an answer");
    assert_eq!(metrics.status, 200);
    for name in [
        "ws_connections",
        "turn_cancelled_total",
        "llm_calls_total",
        "log_commits_total",
    ] {
        assert!(
            metrics.body.lines().any(|line| line.starts_with(name)),
            "{name} is missing:\n{}",
            metrics.body
        );
    }
    assert!(
        !metrics.body.contains(&scene.session.to_string()),
        "no session ids as labels"
    );
    for path in ["/healthz", "/readyz"] {
        assert_eq!(scene.api.get(path).await.expect("an answer").status, 200);
    }
}
