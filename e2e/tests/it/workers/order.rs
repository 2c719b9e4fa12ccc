//! Delegated work: the order of its events, who sees which of them, and the limits on number and
//! depth of workers.

use serde_json::{Value, json};
use turnwire_e2e::workers::{
    READER, WorkerFixture, course, delegates, of, pack, read_by, streamed_course,
};
use turnwire_event::{Body, Epoch, Event, Position, Seq};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

fn reading() -> ModelScript {
    read_by(
        delegates("Read up on tea.", "Tea is old."),
        [ScriptStep::text("Tea came from China.")],
    )
}

// S3-088
#[tokio::test]
async fn named_worker_exists_whenever_its_name_arrives() {
    let fixture = WorkerFixture::new(&reading()).await;
    let mut watcher = fixture.watch("parent", fixture.session).await;
    for _ in 0..20 {
        let turn = fixture.say("tea").await;
        let started = |event: &Event| matches!(event.body, Body::DelegateStarted(_));
        let events = watcher.until(started).await.expect("a worker");
        let Some(Body::DelegateStarted(start)) = events.last().map(|event| &event.body) else {
            panic!("{events:?}");
        };
        let path = format!("/sessions/{}", start.worker_session_id);
        let session = fixture.api.get(&path).await.expect("an answer");
        assert_eq!(session.status, 200, "{}", session.json());
        watcher.turn(turn).await.expect("the whole turn");
    }
}

// S3-085, S3-086, S3-089, S3-090
#[tokio::test]
async fn delegation_events_are_in_order_and_limited() {
    let fixture = WorkerFixture::new(&reading()).await;
    let mut watcher = fixture.watch("parent", fixture.session).await;
    let turn = fixture.say("tea").await;
    let seen = watcher.turn(turn).await.expect("the whole turn");
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "llm.call_completed",
        "tool.called",
        "delegate.started",
        "delegate.completed",
        "tool.completed",
        "llm.call_started",
        "llm.call_completed",
        "turn.completed",
    ];
    assert_eq!(streamed_course(&seen), expected, "s3_089");
    assert!(
        seen.iter().all(|event| event.session_id == fixture.session),
        "s3_085"
    );
    let log = fixture.log(fixture.session).await;
    assert_eq!(course(&log), expected);

    let (worker, worker_turn) = fixture.working(fixture.session).await;
    let started = &of(&log, "delegate.started").expect("a start")["payload"];
    assert_eq!(started["worker_session_id"], json!(worker), "s3_086");
    assert_eq!(started["task_summary"], "Read up on tea.");
    let completed = of(&log, "delegate.completed").expect("an end");
    assert_eq!(completed["actor"], format!("worker:{worker}"));
    let payload = &completed["payload"];
    assert_eq!(payload["worker_session_id"], json!(worker));
    assert_eq!(payload["success"], true);
    assert_eq!(payload["summary"], "Tea came from China.");

    // The worker's own log, from 1, with an agent of its own; its end is there first (s3_090).
    let own = fixture.log(worker).await;
    let first = Position::persisted(Epoch::FIRST, Seq(1));
    assert_eq!(
        (&own[0]["type"], &own[0]["id"]),
        (&json!("session.created"), &json!(first))
    );
    assert_eq!(
        of(&own, "turn.started").expect("a start")["payload"]["kind"],
        "worker"
    );
    let end = own.last().expect("an end");
    assert_eq!(
        (&end["type"], &end["turn_id"]),
        (&json!("turn.completed"), &json!(worker_turn))
    );
    assert!(end["timestamp"].as_str() <= completed["timestamp"].as_str());

    // The orchestrator's model receives the worker's last text, with the end of the tool.
    let path = format!("/sessions/{}/messages", fixture.session);
    let messages = fixture
        .api
        .pages(&path, "messages")
        .await
        .expect("pages")
        .concat();
    let results: Vec<&Value> = messages
        .iter()
        .flat_map(|message| message["content"].as_array().into_iter().flatten())
        .filter(|block| block["type"] == "tool_result")
        .collect();
    assert_eq!(results.len(), 1);
    assert_eq!(
        results[0]["content"],
        json!({"success": true, "answer": "Tea came from China."})
    );

    let row = fixture.api.attach(worker).await.expect("a session");
    assert_eq!(row["parent_session_id"], json!(fixture.session));
    assert_eq!(row["agent"], READER);
    let sessions = fixture
        .api
        .pages("/sessions", "sessions")
        .await
        .expect("pages")
        .concat();
    let ids: Vec<&Value> = sessions.iter().map(|one| &one["session_id"]).collect();
    assert_eq!(
        ids,
        [&json!(fixture.session)],
        "workers are listed with their session alone"
    );
    let listed = fixture.workers(fixture.session).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["turn"]["state"], "completed");
}

// S3-088
#[tokio::test]
async fn worker_is_followed_cancelled_and_addressed_as_a_session() {
    let later =
        ModelScript::new().on_call(READER, "go on", 1, [ScriptStep::text("The other half.")]);
    let task = ScriptStep::tool("research", json!({"task": "Read."}));
    let script = later
        .call("orchestrator", 1, [task])
        .call("orchestrator", 2, [ScriptStep::text("It was stopped.")])
        .call(
            READER,
            1,
            [ScriptStep::text("Half a "), ScriptStep::stall()],
        );
    let fixture = WorkerFixture::new(&script).await;
    let turn = fixture.say("tea").await;
    let (worker, worker_turn) = fixture.working(fixture.session).await;
    let mut watcher = fixture.watch("worker", worker).await;
    watcher
        .until(|event| event.body.kind().name() == "text.delta")
        .await
        .expect("words");
    let cancel = json!({"type": "cancel", "turn_id": worker_turn, "reason": "user_interrupt"});
    watcher.send(&cancel).await.expect("sent");
    let own = watcher.until(|event| event.body.kind().is_terminal()).await;
    let own = own.expect("an end");
    assert_eq!(
        own.last().expect("an end").body.kind().name(),
        "turn.cancelled"
    );
    let row = fixture.api.ended(turn).await.expect("a turn");
    assert_eq!(row["state"], "completed", "the parent goes on: {row}");
    let log = fixture.log(fixture.session).await;
    let failed = &of(&log, "delegate.failed").expect("a failure")["payload"];
    assert_eq!(failed["failure_mode"], "cancelled_by_user");
    assert_eq!(
        of(&log, "tool.failed").expect("a failure")["payload"]["error_class"],
        "cancelled"
    );
    // Its agent stays its own.
    let again = fixture.api.submit(worker, "go on").await.expect("accepted");
    let row = fixture.api.ended(again.turn_id).await.expect("a turn");
    assert_eq!(
        (&row["state"], &row["kind"]),
        (&json!("completed"), &json!("worker"))
    );
    let stranger = fixture
        .server
        .api()
        .with("x-turnwire-principal", "stranger");
    for path in [
        format!("/sessions/{worker}"),
        format!("/sessions/{}/workers", fixture.session),
    ] {
        assert_eq!(stranger.get(&path).await.expect("an answer").status, 404);
    }
}

#[tokio::test]
async fn workers_nest_up_to_the_depth_limit() {
    let script = ModelScript::new()
        .call(
            "orchestrator",
            1,
            [ScriptStep::tool("deeper", json!({"task": "Go on."}))],
        )
        .call("orchestrator", 2, [ScriptStep::text("That is it.")]);
    let fixture = WorkerFixture::new(&script).await;
    let turn = fixture.say("deep").await;
    let row = fixture.api.ended(turn).await.expect("a turn");
    assert_eq!(row["state"], "completed");
    let mut line = vec![fixture.session];
    loop {
        let workers = fixture.workers(line[line.len() - 1]).await;
        let Some(worker) = workers.first() else { break };
        let id = worker["session_id"].as_str().expect("an id");
        line.push(id.parse().expect("an id"));
    }
    assert_eq!(line.len(), 4, "three levels");
    let deepest = fixture.log(line[3]).await;
    assert!(
        of(&deepest, "delegate.started").is_none(),
        "nobody is told of one that is not"
    );
    assert_eq!(
        of(&deepest, "tool.failed").expect("a failure")["payload"]["error_class"],
        "internal"
    );
    for pair in line.windows(2) {
        let (parent, own) = (fixture.log(pair[0]).await, fixture.log(pair[1]).await);
        let completed = of(&parent, "delegate.completed").expect("an end");
        let end = own.last().expect("an end");
        assert!(end["timestamp"].as_str() <= completed["timestamp"].as_str());
    }
    // All of them go with the first.
    let path = format!("/sessions/{}", fixture.session);
    let deleted = fixture.api.send(hyper::Method::DELETE, &path, None).await;
    assert_eq!(deleted.expect("an answer").status, 204);
    for id in line {
        let answer = fixture.api.get(&format!("/sessions/{id}")).await;
        assert_eq!(answer.expect("an answer").status, 404);
    }
}

#[tokio::test]
async fn workers_per_turn_are_limited_by_pack_and_server() {
    let task = || ScriptStep::tool("research", json!({"task": "Read."}));
    let script = ModelScript::new()
        .call("orchestrator", 1, [task(), task(), task()])
        .call("orchestrator", 2, [ScriptStep::text("Done.")])
        .call(READER, 1, [ScriptStep::text("Read.")]);
    let options = ServerOptions::pack(pack(&script, 60_000)).set("session", "workers_max", 2);
    let fixture = WorkerFixture::on(options).await;
    let turn = fixture.say("many").await;
    assert_eq!(
        fixture.api.ended(turn).await.expect("a turn")["state"],
        "completed"
    );
    assert_eq!(fixture.workers(fixture.session).await.len(), 2);
    let log = fixture.log(fixture.session).await;
    let count = |kind: &str| log.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (
            count("delegate.completed"),
            count("tool.completed"),
            count("tool.failed")
        ),
        (2, 2, 1)
    );
}

#[tokio::test]
async fn worker_over_its_time_is_stopped_and_turn_goes_on() {
    let script = read_by(
        delegates("Read.", "It took too long."),
        [ScriptStep::stall()],
    );
    let fixture = WorkerFixture::on(ServerOptions::pack(pack(&script, 300))).await;
    let turn = fixture.say("slow").await;
    let row = fixture.api.ended(turn).await.expect("a turn");
    assert_eq!(row["state"], "completed");
    let log = fixture.log(fixture.session).await;
    let failed = of(&log, "delegate.failed").expect("a failure");
    assert_eq!(failed["payload"]["failure_mode"], "timeout");
    assert_eq!(
        of(&log, "tool.failed").expect("a failure")["payload"]["error_class"],
        "timeout"
    );
    let (worker, _) = fixture.working(fixture.session).await;
    let own = fixture.log(worker).await;
    let end = own.last().expect("an end");
    assert_eq!(end["type"], "turn.cancelled");
    assert_eq!(end["payload"]["reason"], "delegate_timeout");
    assert!(end["timestamp"].as_str() <= failed["timestamp"].as_str());
}
