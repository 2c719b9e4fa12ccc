//! Cancels and crashes while a worker runs: the worker ends with its own terminal, before that of
//! its parent's turn.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::engine::check_dispatch_rules;
use turnwire_e2e::load::check_history;
use turnwire_e2e::workers::{WorkerFixture, delegates, of, read_by, streamed_course};
use turnwire_event::{Event, SessionId};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::watch::ResumingReader;

fn stalling() -> ModelScript {
    read_by(
        delegates("Read.", "never said"),
        [ScriptStep::text("Half a "), ScriptStep::stall()],
    )
}

/// Nests `levels` deep, then stalls.
fn nesting() -> ModelScript {
    let deeper = ScriptStep::tool("deeper", json!({"task": "Go on."}));
    let research = ScriptStep::tool("research", json!({"task": "Read."}));
    ModelScript::new()
        .on_call("orchestrator", "^start$", 1, [deeper])
        .call("orchestrator", 1, [research])
        .call(
            "reader",
            1,
            [ScriptStep::text("Half a "), ScriptStep::stall()],
        )
}

async fn line(fixture: &WorkerFixture, levels: usize) -> Vec<SessionId> {
    let mut line = vec![fixture.session];
    for _ in 0..levels {
        line.push(fixture.working(line[line.len() - 1]).await.0);
    }
    fixture.logged(line[levels], "llm.call_started").await;
    line
}

// S3-081
#[tokio::test]
async fn cancelling_the_parent_ends_the_worker_first() {
    let fixture = WorkerFixture::new(&stalling()).await;
    let mut parent = fixture.watch("parent", fixture.session).await;
    let mut all = fixture.watch_all("everything").await;
    let turn = fixture.say("tea").await;
    let (worker, worker_turn) = fixture.working(fixture.session).await;
    let mut child = fixture.watch("worker", worker).await;
    child
        .until(|event| event.body.kind().name() == "text.delta")
        .await
        .expect("words");
    assert_eq!(
        fixture.api.cancel(turn).await.expect("an answer").status,
        202
    );
    // On one connection the worker's end comes before the parent tells of it.
    let ends = |event: &Event| event.turn_id == Some(turn) && event.body.kind().is_terminal();
    let both = all.until(ends).await.expect("the whole turn");
    let place = |wanted: &dyn Fn(&Event) -> bool| both.iter().position(wanted).expect("it came");
    let end = place(&|e| e.session_id == worker && e.body.kind().is_terminal());
    let failed = place(&|e| e.body.kind().name() == "delegate.failed");
    assert!(end < failed, "{end} {failed}");
    let seen = parent.turn(turn).await.expect("the whole turn");
    let all = streamed_course(&seen);
    assert_eq!(
        all[all.len() - 4..],
        [
            "turn.cancel_requested",
            "delegate.failed",
            "tool.failed",
            "turn.cancelled"
        ]
    );
    let own = child.until(|event| event.body.kind().is_terminal()).await;
    let own = streamed_course(&own.expect("an end"));
    assert_eq!(
        own[own.len() - 3..],
        ["turn.cancel_requested", "llm.call_failed", "turn.cancelled"]
    );
    let (log, own) = (
        fixture.log(fixture.session).await,
        fixture.log(worker).await,
    );
    check_dispatch_rules(&log);
    check_dispatch_rules(&own);
    let request = &of(&own, "turn.cancel_requested").expect("a request")["payload"];
    assert_eq!(
        (&request["by"], &request["reason"]),
        (&json!("system"), &json!("parent_cancelled"))
    );
    let failed = of(&log, "delegate.failed").expect("a failure");
    assert_eq!(failed["payload"]["failure_mode"], "cancelled_by_user");
    let end = own.last().expect("an end");
    assert_eq!(end["turn_id"], json!(worker_turn));
    assert!(
        end["timestamp"].as_str() <= failed["timestamp"].as_str(),
        "its own end comes first"
    );
    let cancelled = &log.last().expect("an end")["payload"];
    assert_eq!(cancelled["phase"], "delegate");
    let line = cancelled["receipt"].as_array().into_iter().flatten();
    let line: Vec<&Value> = line.filter(|line| line["kind"] == "worker").collect();
    assert_eq!(line.len(), 1, "{cancelled}");
    assert_eq!(
        (&line[0]["id"], &line[0]["outcome"]),
        (&json!(worker), &json!("stopped"))
    );
}

// S3-081
#[tokio::test]
async fn cancel_goes_down_and_ends_come_up_the_worker_chain() {
    let fixture = WorkerFixture::new(&nesting()).await;
    let turn = fixture.say("start").await;
    let line = line(&fixture, 2).await;
    assert_eq!(
        fixture.api.cancel(turn).await.expect("an answer").status,
        202
    );
    assert_eq!(
        fixture.api.ended(turn).await.expect("a turn")["state"],
        "cancelled"
    );
    let mut before: Option<String> = None;
    for id in line.iter().rev() {
        let log = fixture.log(*id).await;
        check_dispatch_rules(&log);
        let end = log.last().expect("an end");
        assert_eq!(end["type"], "turn.cancelled");
        let at = end["timestamp"].as_str().expect("a time").to_owned();
        if let Some(before) = before.replace(at) {
            let failed = of(&log, "delegate.failed").expect("a failure");
            assert!(Some(before.as_str()) <= failed["timestamp"].as_str());
        }
    }
}

//
#[tokio::test]
async fn killed_server_ends_workers_before_parents() {
    let mut fixture = WorkerFixture::new(&nesting()).await;
    fixture.say("start").await;
    let line = line(&fixture, 2).await;
    fixture.server.restart().await;
    let mut before: Option<String> = None;
    for id in line.iter().rev() {
        let log = fixture.log(*id).await;
        check_dispatch_rules(&log);
        let end = log.last().expect("an end");
        assert_eq!(end["type"], "turn.completed");
        assert_eq!(end["payload"]["reason"], "server_restart");
        let at = end["timestamp"].as_str().expect("a time").to_owned();
        if let Some(before) = before.replace(at) {
            let failed = of(&log, "delegate.failed").expect("a failure");
            assert_eq!(failed["payload"]["failure_mode"], "error");
            assert!(Some(before.as_str()) <= failed["timestamp"].as_str());
        }
    }
    assert_eq!(
        fixture.workers(fixture.session).await[0]["turn"]["state"],
        "completed"
    );
}

#[tokio::test]
async fn terminated_server_ends_worker_and_parent() {
    let mut fixture = WorkerFixture::new(&stalling()).await;
    fixture.say("tea").await;
    let line = line(&fixture, 1).await;
    fixture.server.sigterm();
    fixture.server.wait(Duration::from_secs(60)).await;
    fixture.server.run().await.expect("it comes up");
    for id in line {
        let log = fixture.log(id).await;
        check_dispatch_rules(&log);
        let end = &log.last().expect("an end")["payload"];
        assert_ne!(
            end["reason"], "server_restart",
            "nothing was left to be swept: {end}"
        );
    }
}

/// Two clients on a parent and one on its worker, cut again and again, over a crash: what each got
/// is the log, in its order.
//
#[tokio::test]
async fn watchers_see_one_order_through_cuts_and_restart() {
    let words = ScriptStep::slow("All about tea and more. ", 3, 5).repeat(8);
    let script = read_by(delegates("Read.", "Tea is old."), [words]).on_call(
        "orchestrator",
        "^start$",
        1,
        [ScriptStep::tool("deeper", json!({"task": "Go on."}))],
    );
    let mut fixture = WorkerFixture::new(&script).await;
    fixture.say("tea").await;
    let (worker, _) = fixture.working(fixture.session).await;
    let mut readers = [
        ResumingReader::new(&fixture.api, "parent 1", fixture.session),
        ResumingReader::new(&fixture.api, "parent 2", fixture.session),
        ResumingReader::new(&fixture.api, "worker", worker),
    ];
    for bytes in [700, 1_500, 2_500] {
        for reader in &mut readers {
            reader.cut_after(bytes, Duration::from_millis(200)).await;
        }
    }
    for reader in &mut readers {
        reader.drop_connection();
    }
    fixture.server.restart().await;
    let again = fixture
        .api
        .submit(fixture.session, "more tea")
        .await
        .expect("accepted");
    for bytes in [900, 2_000] {
        for reader in &mut readers {
            reader.cut_after(bytes, Duration::from_millis(200)).await;
        }
    }
    fixture.api.ended(again.turn_id).await.expect("a turn");
    let mut logs = Vec::new();
    for id in [fixture.session, worker] {
        let log = fixture.log(id).await;
        check_dispatch_rules(&log);
        logs.push(log);
    }
    for reader in &mut readers {
        let log = if reader.session() == worker {
            &logs[1]
        } else {
            &logs[0]
        };
        let tail = log.last().expect("an event")["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        reader.finish(tail.parse().expect("a position")).await;
    }
    check_history(&fixture.api, &[fixture.session, worker]).await;
}
