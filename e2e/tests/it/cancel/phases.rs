//! F14: a stop in every phase of a turn, over sockets, with a provider whose sockets are looked at.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::load;
use turnwire_e2e::stops::{House, Way, after, stopped, watch};
use turnwire_event::code::Phase;
use turnwire_event::{EventType, SessionId, TurnId};
use turnwire_testkit::cases::{Case, cancel_case};
use turnwire_testkit::provider::{Answer, Message, Part};
use turnwire_testkit::watch::Client;

/// Slow enough that a stop at the first piece comes before the second.
const PIECE: Duration = Duration::from_millis(700);

fn say_back(n: u32, text: &str) -> Part {
    Part::call(&format!("call_{n}"), "say_back", &json!({ "text": text }))
}

/// One phase: what the model says, at which event the stop comes, and what it must come to.
struct Cell {
    name: &'static str,
    answers: Vec<(&'static str, Answer)>,
    /// The events to wait for, one after the other.
    at: &'static [EventType],
    case: Case,
    phase: Phase,
}

fn cells() -> Vec<Cell> {
    let words = || Answer::text(["One ", "two ", "three ", "four."]).frames_every(PIECE);
    let input = Part::call_in(
        Some("call_1"),
        "say_back",
        ["{\"te", "xt\": \"a", " b c", " d\"}"],
    );
    vec![
        Cell {
            name: "silent-phase",
            answers: vec![("silent-phase", Answer::text(["never"]).silent())],
            at: &[EventType::LlmCallStarted],
            case: Case::Silent,
            phase: Phase::Llm,
        },
        Cell {
            name: "words-phase",
            answers: vec![("words-phase", words())],
            at: &[EventType::TextDelta],
            case: Case::Llm,
            phase: Phase::Llm,
        },
        Cell {
            name: "input-phase",
            answers: vec![(
                "input-phase",
                Answer::message(Message::new([input])).frames_every(PIECE),
            )],
            at: &[EventType::ToolUseInputDelta],
            case: Case::Llm,
            phase: Phase::Llm,
        },
        Cell {
            name: "later-phase",
            answers: vec![
                ("behind-the-tool", words()),
                (
                    "later-phase",
                    Message::new([say_back(1, "behind-the-tool")]).into(),
                ),
            ],
            at: &[EventType::ToolCompleted, EventType::TextDelta],
            case: Case::LaterLlm,
            phase: Phase::Llm,
        },
    ]
}

async fn reach(client: &mut Client, kinds: &[EventType]) -> Vec<turnwire_event::Event> {
    let mut seen = Vec::new();
    for kind in kinds {
        let some = client.until(|event| event.body.kind() == *kind).await;
        seen.extend(some.expect("it comes"));
    }
    seen
}

// S3-072, S3-076, S3-077
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn model_call_is_stopped_in_every_phase_and_socket_closes() {
    let house = House::open(Duration::from_secs(1)).await;
    let mut sessions = Vec::new();
    for (n, cell) in cells().into_iter().enumerate() {
        for (needle, answer) in cell.answers {
            house.fake.always(needle, answer);
        }
        let rest = &house.rest;
        let session = rest.create().await.expect("a session");
        sessions.push(session);
        let mut client = watch(rest, cell.name, session).await;
        let turn = rest
            .submit(session, cell.name)
            .await
            .expect("taken")
            .turn_id;
        let mut seen = reach(&mut client, cell.at).await;
        let way = Way::ALL[n % Way::ALL.len()];
        way.stop(rest, &mut client, (session, turn)).await;
        seen.extend(client.turn(turn).await.expect("the end"));
        seen.retain(|event| event.turn_id == Some(turn));
        let end = stopped(cell.name, &seen);
        assert_eq!(end.phase, cell.phase, "{}", cell.name);
        assert_eq!(cancel_case(&seen), Ok(cell.case), "{}", cell.name);
        after(rest, cell.name, session, turn).await;
        house.sockets_closed().await;
    }
    load::judge(&house.rest, &sessions).await;
}

// S3-075, S3-077
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_at_end_of_message_matches_a_known_case() {
    let house = House::open(Duration::from_secs(1)).await;
    let parts = (0..8).map(|n| say_back(n, "a word"));
    house.fake.always("seam-phase", Message::new(parts));
    let rest = &house.rest;
    let mut sessions = Vec::new();
    for way in Way::ALL {
        let session = rest.create().await.expect("a session");
        sessions.push(session);
        let mut client = watch(rest, "seam", session).await;
        let turn = rest
            .submit(session, "seam-phase")
            .await
            .expect("taken")
            .turn_id;
        let mut seen = reach(&mut client, &[EventType::MessageComplete]).await;
        way.stop(rest, &mut client, (session, turn)).await;
        seen.extend(client.turn(turn).await.expect("the end"));
        seen.retain(|event| event.turn_id == Some(turn));
        stopped(&format!("{way:?}"), &seen);
        let case = cancel_case(&seen);
        assert!(case.is_ok(), "{way:?}: {case:?}");
        println!("{way:?}: {case:?}");
    }
    house.sockets_closed().await;
    load::judge(rest, &sessions).await;
}

async fn submit_with(house: &House, session: SessionId, key: &str, body: Value) -> TurnId {
    let rest = house.rest.clone().with("idempotency-key", key);
    let path = format!("/sessions/{session}/turns");
    let answer = rest.post(&path, body).await.expect("an answer");
    assert_eq!(answer.status, 202, "{}", answer.body);
    let turn = answer.json()["turn_id"].as_str().map(str::parse);
    turn.expect("an id").expect("an id")
}

// S3-077
#[tokio::test]
async fn queued_and_not_yet_submitted_turns_are_cancelled() {
    let house = House::open(Duration::from_secs(1)).await;
    let nap = Part::call("call_1", "nap", &json!({"ms": 30_000}));
    house.fake.always("busy-phase", Message::new([nap]));
    let rest = &house.rest;
    let session = rest.create().await.expect("a session");
    let cancel = format!("/sessions/{session}/cancel");
    let nothing = rest.post(&cancel, json!({})).await.expect("an answer");
    assert_eq!(
        (nothing.status, nothing.json()),
        (200, json!({"turn_id": null}))
    );
    let mut client = watch(rest, "line", session).await;
    let busy = rest
        .submit(session, "busy-phase")
        .await
        .expect("taken")
        .turn_id;
    reach(&mut client, &[EventType::ToolCalled]).await;
    // In line.
    let body = json!({"message": "waits", "on_busy": "enqueue"});
    let waits = submit_with(&house, session, "key-1", body).await;
    let by_key = json!({"idempotency_key": "key-1", "reason": "too long"});
    let path = format!("{cancel}?wait=true");
    let answer = rest.post(&path, by_key.clone()).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let turn = &answer.json()["turn"];
    assert_eq!(
        (&turn["turn_id"], &turn["state"]),
        (&json!(waits), &json!("cancelled"))
    );
    assert_eq!(turn["terminal"]["payload"]["phase"], "queued");
    assert_eq!(turn["terminal"]["payload"]["reason"], "too long");
    // Again: it has its end.
    let again = rest.post(&path, by_key).await.expect("an answer");
    assert_eq!((again.status, &again.json()["turn"]), (200, turn));
    // Not come yet, and the session is busy; then not come yet, and it is free.
    for (key, phase) in [("key-2", "queued"), ("key-3", "route")] {
        let kept = rest.post(&path, json!({"idempotency_key": key}));
        let kept = kept.await.expect("an answer");
        assert_eq!((kept.status, kept.json()), (202, json!({"turn_id": null})));
        let body = json!({"message": "comes late", "on_busy": "enqueue"});
        let late = submit_with(&house, session, key, body).await;
        let row = rest.ended(late).await.expect("an end");
        assert_eq!(row["state"], "cancelled", "{row}");
        assert_eq!(row["terminal"]["payload"]["phase"], phase, "{row}");
        assert_eq!(row["receipt"], json!([]));
        after(rest, key, session, late).await;
        if phase == "queued" {
            let now = rest.post(&path, json!({})).await.expect("an answer");
            assert_eq!(now.json()["turn_id"], json!(busy), "what runs now");
        }
    }
    let asked = house.fake.calls();
    assert_eq!(asked.len(), 1, "the model of the others was never asked");
    let stranger = house.server.rest().with("x-turnwire-principal", "eve");
    let foreign = stranger.post(&cancel, json!({})).await.expect("an answer");
    assert_eq!(
        (foreign.status, foreign.code().as_str()),
        (404, "session_not_found")
    );
    let wrong = rest.post(&cancel, json!({"idempotency_key": "a b"}));
    assert_eq!(wrong.await.expect("an answer").status, 422);
    house.sockets_closed().await;
    load::judge(rest, &[session]).await;
}

// S3-082, S3-083
#[tokio::test]
async fn duplicate_late_or_unknown_stops_change_nothing() {
    let house = House::open(Duration::from_secs(1)).await;
    let nap = Part::call("call_1", "nap", &json!({"ms": 30_000}));
    // In this order: what was said first is in the second question too.
    house.fake.always("quick-phase", Answer::text(["Yes."]));
    house.fake.always("busy-phase", Message::new([nap]));
    let rest = &house.rest;
    let session = rest.create().await.expect("a session");
    let mut client = watch(rest, "twice", session).await;
    let turn = rest
        .submit(session, "busy-phase")
        .await
        .expect("taken")
        .turn_id;
    reach(&mut client, &[EventType::ToolCalled]).await;
    rest.cancel(turn).await.expect("an answer");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let path = |turn| format!("/turns/{turn}/cancel?wait=true");
    let second = rest.post(&path(turn), json!({"reason": "again"})).await;
    let second = second.expect("an answer");
    assert_eq!(second.status, 200);
    assert_eq!(
        second.json()["terminal"]["payload"]["reason"],
        "user_cancel"
    );
    // One that has ended by itself stays as it is, and is told.
    let done = rest
        .submit(session, "quick-phase")
        .await
        .expect("taken")
        .turn_id;
    let row = rest.ended(done).await.expect("an end");
    let late = rest.post(&path(done), json!({})).await.expect("an answer");
    assert_eq!((late.status, late.json()), (200, row));
    let unknown = path(TurnId(turnwire_event::Ulid(7)));
    let unknown = rest.post(&unknown, json!({})).await.expect("an answer");
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "turn_not_found")
    );
    let odd = format!("/turns/{turn}/cancel?wait=maybe");
    assert_eq!(
        rest.post(&odd, json!({})).await.expect("an answer").status,
        422
    );
    let warned = rest.events(session).await.expect("the log");
    let warned = warned
        .iter()
        .any(|event| event.text.contains("redundant_cancel"));
    assert!(warned, "a stop of what has ended leaves a warning");
    load::judge(rest, &[session]).await;
}
