//! A busy session: queued, interrupting and refused turns, and the queue after a restart.

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, back, events, say, until, whole};
use turnwire_e2e::server_fixture::{ServerFixture, kinds};
use turnwire_event::{Event, EventType, ResponseId, TurnId};
use turnwire_testkit::api::ApiResponse;
use turnwire_testkit::chat::{ChatStream, ChatSubmit};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::text("you said {{user}}")])
}

/// A scene in which a turn runs until it is cancelled; its stream.
async fn busy() -> (ServerFixture, ChatStream) {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let question = ChatSubmit::new("stall")
        .session(fixture.session)
        .continue_on_disconnect();
    let mut stream = say(&fixture.api, "running", &question).await;
    stream.until("text").await.expect("words");
    (fixture, stream)
}

/// Submits without a stream.
async fn submit(fixture: &ServerFixture, message: &str, on_busy: &str) -> ApiResponse {
    let path = format!("/sessions/{}/turns", fixture.session);
    let body = json!({"message": message, "on_busy": on_busy});
    fixture.api.post(&path, body).await.expect("an answer")
}

/// Puts a turn in line.
async fn enqueue(fixture: &ServerFixture, message: &str) -> TurnId {
    let answer = submit(fixture, message, "enqueue").await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(answer.json()["state"], "queued", "{}", answer.body);
    id(&answer.json()["turn_id"])
}

fn id(value: &Value) -> TurnId {
    let id = value.as_str().and_then(|id| id.parse().ok());
    id.unwrap_or_else(|| panic!("no turn: {value}"))
}

fn waiting(fixture: &ServerFixture, message: &str) -> ChatSubmit {
    let question = ChatSubmit::new(message).session(fixture.session);
    question
        .field("on_busy", "enqueue")
        .continue_on_disconnect()
}

/// The turns of a log in the order they started, and that each ended before the next began.
fn started(log: &[Event]) -> Vec<TurnId> {
    let mut order = Vec::new();
    let mut open = None;
    for event in log {
        match event.body.kind() {
            EventType::TurnStarted => {
                assert_eq!(open, None, "two turns at once");
                open = event.turn_id;
                order.extend(open);
            }
            kind if kind.is_terminal() => open = None,
            _ => {}
        }
    }
    order
}

async fn terminal(fixture: &ServerFixture, turn: TurnId) -> Value {
    let row = fixture.api.ended(turn).await.expect("an end");
    row["terminal"]["payload"].clone()
}

#[tokio::test]
async fn queued_turns_run_in_order_and_report_their_start() {
    let (fixture, mut running) = busy().await;
    let mut order = vec![running.turn(), enqueue(&fixture, "one").await];
    let mut stream = say(&fixture.api, "two", &waiting(&fixture, "two")).await;
    order.push(stream.turn());
    order.push(enqueue(&fixture, "three").await);
    assert_eq!(
        MetricsSnapshot::read(&fixture.api)
            .await
            .sum("turnwire_turn_queued"),
        3.0
    );
    for turn in &order[1..] {
        let row = fixture.api.turn(*turn).await.expect("an answer");
        assert_eq!(row["state"], "queued", "{row}");
    }
    // A viewer of one that waits waits with it.
    let mut viewer = back(&fixture.api, "viewer", order[3], None).await;
    fixture.api.cancel(running.turn()).await.expect("an answer");
    assert_eq!(
        events(&running.read_to_end().await.expect("an end")),
        ["cancelled"]
    );
    for stream in [&mut stream, &mut viewer] {
        let frames = stream.read_to_end().await.expect("a whole stream");
        assert_eq!(events(&frames)[0], "response_id");
        assert_eq!(events(&frames).last(), Some(&"completed"));
    }
    assert_eq!(started(&fixture.log().await), order);
    assert_eq!(
        MetricsSnapshot::read(&fixture.api)
            .await
            .sum("turnwire_turn_queued"),
        0.0
    );
    fixture.check_history().await;
}

#[tokio::test]
async fn ninth_queued_turn_is_refused_with_retry() {
    let (fixture, running) = busy().await;
    let mut line = Vec::new();
    for number in 0..8 {
        line.push(enqueue(&fixture, &format!("number {number}")).await);
    }
    for on_busy in ["enqueue", "interrupt"] {
        let ninth = submit(&fixture, "ninth", on_busy).await;
        assert_eq!((ninth.status, ninth.code().as_str()), (429, "queue_full"));
        assert_eq!(ninth.header("content-type"), "application/problem+json");
        assert!(
            ninth
                .header("retry-after")
                .parse::<u32>()
                .is_ok_and(|s| s >= 1)
        );
    }
    let refused = ChatStream::submit(&fixture.api, "ninth", &waiting(&fixture, "ninth")).await;
    let refused = refused.expect_err("refused");
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "queue_full")
    );
    assert!(
        refused
            .head
            .header("retry-after")
            .parse::<u32>()
            .is_ok_and(|s| s >= 1)
    );
    // One that leaves the line makes room.
    fixture.api.cancel(line.remove(3)).await.expect("an answer");
    line.push(enqueue(&fixture, "ninth").await);
    fixture.api.cancel(running.turn()).await.expect("an answer");
    for turn in line {
        assert_eq!(terminal(&fixture, turn).await["status"], "ok");
    }
    drop(running);
    fixture.check_history().await;
}

#[tokio::test]
async fn interrupt_cancels_running_turn_and_runs_next() {
    let (fixture, mut running) = busy().await;
    let first = enqueue(&fixture, "in line").await;
    let question = ChatSubmit::new("now")
        .session(fixture.session)
        .field("on_busy", "interrupt");
    let (pushed, frames) = whole(&fixture.api, "pushing in", &question).await;
    assert_eq!(events(&frames).last(), Some(&"completed"));
    assert_eq!(
        events(&running.read_to_end().await.expect("an end")),
        ["cancelled"]
    );
    let end = terminal(&fixture, running.turn()).await;
    assert_eq!(
        (&end["code"], &end["reason"]),
        (&json!("REQUEST_CANCELLED"), &json!("interrupted"))
    );
    fixture.api.ended(first).await.expect("an end");
    assert_eq!(
        started(&fixture.log().await),
        [running.turn(), pushed, first]
    );
    fixture.check_history().await;
}

#[tokio::test]
async fn no_wait_submit_names_the_running_turn() {
    let (fixture, running) = busy().await;
    for on_busy in [json!({}), json!({"on_busy": "reject"})] {
        let mut question = ChatSubmit::new("now").session(fixture.session);
        if let Some(value) = on_busy.get("on_busy") {
            question = question.field("on_busy", value.clone());
        }
        let refused = ChatStream::submit(&fixture.api, "refused", &question).await;
        let refused = refused.expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (409, "turn_in_flight")
        );
        let problem: Value = serde_json::from_str(&refused.body).expect("a problem");
        assert_eq!(id(&problem["turn_id"]), running.turn(), "{problem}");
    }
    let refused = submit(&fixture, "now", "reject").await;
    assert_eq!(
        (refused.status, id(&refused.json()["turn_id"])),
        (409, running.turn())
    );
    let turns = fixture
        .api
        .get(&format!("/sessions/{}/turns", fixture.session))
        .await;
    assert_eq!(
        turns.expect("an answer").json()["turns"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn cancelled_queued_turn_has_one_complete_history() {
    let (fixture, running) = busy().await;
    let mut stream = say(&fixture.api, "waiting", &waiting(&fixture, "never")).await;
    let path = format!("/turns/{}/cancel", ResponseId::from(stream.turn()));
    for state in ["cancelled", "cancelled"] {
        let answer = fixture
            .api
            .post(&path, json!({"reason": "changed my mind"}))
            .await;
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.status, &answer.json()["state"]),
            (202, &json!(state))
        );
    }
    let frames = stream.read_to_end().await.expect("an end");
    assert_eq!(events(&frames), ["response_id", "episode", "cancelled"]);
    let log = fixture.log().await;
    let story: Vec<&Event> = log
        .iter()
        .filter(|e| e.turn_id == Some(stream.turn()))
        .collect();
    let all_events: Vec<Event> = story.iter().map(|event| (*event).clone()).collect();
    let expected = [
        EventType::TurnStarted,
        EventType::TurnCancelRequested,
        EventType::DispatchTraced,
        EventType::TurnCancelled,
    ];
    assert_eq!(kinds(&all_events), expected);
    // Neighbours in the log: nothing of the turn that runs came between.
    let places: Vec<u64> = all_events.iter().map(|event| event.id.seq.0).collect();
    assert_eq!(places, [0, 1, 2, 3].map(|n| places[0] + n));
    let end = terminal(&fixture, stream.turn()).await;
    assert_eq!(
        (&end["phase"], &end["reason"]),
        (&json!("queued"), &json!("changed my mind"))
    );
    let row = fixture.api.turn(running.turn()).await.expect("an answer");
    assert_eq!(row["state"], "running", "{row}");
    fixture.api.cancel(running.turn()).await.expect("an answer");
    drop(running);
    fixture.check_history().await;
}

#[tokio::test]
async fn kill_ends_running_turn_and_runs_queue_in_order() {
    let (mut fixture, mut running) = busy().await;
    let mut order = vec![running.turn()];
    for message in ["one", "two"] {
        order.push(enqueue(&fixture, message).await);
    }
    let mut stream = say(&fixture.api, "three", &waiting(&fixture, "three")).await;
    order.push(stream.turn());
    let withdrawn = enqueue(&fixture, "four").await;
    fixture.api.cancel(withdrawn).await.expect("an answer");
    fixture.api.ended(withdrawn).await.expect("an end");
    fixture.server.restart().await;
    running.next().await.expect_err("the line is cut");
    stream.next().await.expect_err("the line is cut");
    let frames = back(&fixture.api, "running", order[0], running.last())
        .await
        .read_to_end()
        .await;
    let frames = frames.expect("the rest");
    assert_eq!(events(&frames), ["usage", "error"]);
    let end = terminal(&fixture, order[0]).await;
    assert_eq!(end["reason"], "server_restart");
    // The client is told up to where its text is stored.
    let kept = frames[1].field("kept_until");
    assert!(
        kept.as_str().is_some_and(|id| id.starts_with("evt_")),
        "{kept}"
    );
    assert_eq!(*kept, end["partial"]["kept_until"]);
    for turn in &order[1..] {
        assert_eq!(terminal(&fixture, *turn).await["status"], "ok");
    }
    let frames = back(&fixture.api, "three", order[3], None)
        .await
        .read_to_end()
        .await;
    assert_eq!(
        events(&frames.expect("its turn")).last(),
        Some(&"completed")
    );
    let mut log = fixture.log().await;
    // Its story stands inside that of the turn that ran.
    log.retain(|event| event.turn_id != Some(withdrawn));
    assert_eq!(started(&log), order);
    until("the line is empty", || async {
        MetricsSnapshot::read(&fixture.api)
            .await
            .sum("turnwire_turn_queued")
            == 0.0
    })
    .await;
    fixture.check_history().await;
}
