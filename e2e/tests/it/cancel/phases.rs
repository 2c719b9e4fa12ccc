//! F14: a cancel in every phase of a turn, with a fake provider whose connections are checked.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::load;
use turnwire_e2e::stops::{StopFixture, StopMethod, after, stopped, watch};
use turnwire_event::code::Phase;
use turnwire_event::{EventType, SessionId, TurnId};
use turnwire_testkit::cancel_case::{CancelCase, classify_cancel};
use turnwire_testkit::provider::{MessagePart, ModelMessage, ProviderAnswer};
use turnwire_testkit::watch::WatchClient;

/// Slow enough that a stop at the first piece comes before the second.
const PIECE: Duration = Duration::from_millis(700);

fn say_back(n: u32, text: &str) -> MessagePart {
    MessagePart::call(&format!("call_{n}"), "say_back", &json!({ "text": text }))
}

/// One phase: what the model says, at which event the stop comes, and what it must come to.
struct PhaseCase {
    name: &'static str,
    answers: Vec<(&'static str, ProviderAnswer)>,
    /// The events to wait for, one after the other.
    at: &'static [EventType],
    case: CancelCase,
    phase: Phase,
}

fn cells() -> Vec<PhaseCase> {
    let words = || ProviderAnswer::text(["One ", "two ", "three ", "four."]).frames_every(PIECE);
    let input = MessagePart::call_in(
        Some("call_1"),
        "say_back",
        ["{\"te", "xt\": \"a", " b c", " d\"}"],
    );
    vec![
        PhaseCase {
            name: "silent-phase",
            answers: vec![("silent-phase", ProviderAnswer::text(["never"]).silent())],
            at: &[EventType::LlmCallStarted],
            case: CancelCase::Silent,
            phase: Phase::Llm,
        },
        PhaseCase {
            name: "words-phase",
            answers: vec![("words-phase", words())],
            at: &[EventType::TextDelta],
            case: CancelCase::Llm,
            phase: Phase::Llm,
        },
        PhaseCase {
            name: "input-phase",
            answers: vec![(
                "input-phase",
                ProviderAnswer::message(ModelMessage::new([input])).frames_every(PIECE),
            )],
            at: &[EventType::ToolUseInputDelta],
            case: CancelCase::Llm,
            phase: Phase::Llm,
        },
        PhaseCase {
            name: "later-phase",
            answers: vec![
                ("behind-the-tool", words()),
                (
                    "later-phase",
                    ModelMessage::new([say_back(1, "behind-the-tool")]).into(),
                ),
            ],
            at: &[EventType::ToolCompleted, EventType::TextDelta],
            case: CancelCase::LaterLlm,
            phase: Phase::Llm,
        },
    ]
}

async fn reach(client: &mut WatchClient, kinds: &[EventType]) -> Vec<turnwire_event::Event> {
    let mut seen = Vec::new();
    for kind in kinds {
        let some = client.until(|event| event.body.kind() == *kind).await;
        seen.extend(some.expect("it comes"));
    }
    seen
}

// S3-072, S3-076, S3-077, S1-104
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn model_call_is_stopped_in_every_phase_and_socket_closes() {
    let fixture = StopFixture::open(Duration::from_secs(1)).await;
    let mut sessions = Vec::new();
    for (n, cell) in cells().into_iter().enumerate() {
        for (needle, answer) in cell.answers {
            fixture.fake.always(needle, answer);
        }
        let api = &fixture.api;
        let session = api.create().await.expect("a session");
        sessions.push(session);
        let mut client = watch(api, cell.name, session).await;
        let turn = api.submit(session, cell.name).await.expect("taken").turn_id;
        let mut seen = reach(&mut client, cell.at).await;
        let way = StopMethod::ALL[n % StopMethod::ALL.len()];
        way.stop(api, &mut client, (session, turn)).await;
        seen.extend(client.turn(turn).await.expect("the end"));
        seen.retain(|event| event.turn_id == Some(turn));
        let end = stopped(cell.name, &seen);
        assert_eq!(end.phase, cell.phase, "{}", cell.name);
        assert_eq!(classify_cancel(&seen), Ok(cell.case), "{}", cell.name);
        after(api, cell.name, session, turn).await;
        fixture.sockets_closed().await;
    }
    load::check_history(&fixture.api, &sessions).await;
}

// S3-075, S3-077
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_at_end_of_message_matches_a_known_case() {
    let fixture = StopFixture::open(Duration::from_secs(1)).await;
    let api = &fixture.api;
    let mut sessions = Vec::new();
    for way in StopMethod::ALL {
        let message = format!("seam of {way:?}");
        let parts = (0..8).map(|n| say_back(n, "a word"));
        fixture.fake.push_if(&message, ModelMessage::new(parts));
        // However late the stop arrives, the turn still runs.
        let nap = MessagePart::call("call_nap", "nap", &json!({"ms": 30_000}));
        fixture.fake.always(&message, ModelMessage::new([nap]));
        let session = api.create().await.expect("a session");
        sessions.push(session);
        let mut client = watch(api, "seam", session).await;
        let turn = api.submit(session, &message).await.expect("taken").turn_id;
        let mut seen = reach(&mut client, &[EventType::MessageComplete]).await;
        way.stop(api, &mut client, (session, turn)).await;
        seen.extend(client.turn(turn).await.expect("the end"));
        seen.retain(|event| event.turn_id == Some(turn));
        stopped(&format!("{way:?}"), &seen);
        let case = classify_cancel(&seen);
        assert!(case.is_ok(), "{way:?}: {case:?}");
        println!("{way:?}: {case:?}");
    }
    fixture.sockets_closed().await;
    load::check_history(api, &sessions).await;
}

async fn submit_with(fixture: &StopFixture, session: SessionId, key: &str, body: Value) -> TurnId {
    let api = fixture.api.clone().with("idempotency-key", key);
    let path = format!("/sessions/{session}/turns");
    let answer = api.post(&path, body).await.expect("an answer");
    assert_eq!(answer.status, 202, "{}", answer.body);
    let turn = answer.json()["turn_id"].as_str().map(str::parse);
    turn.expect("an id").expect("an id")
}

// S3-077
#[tokio::test]
async fn queued_and_not_yet_submitted_turns_are_cancelled() {
    let fixture = StopFixture::open(Duration::from_secs(1)).await;
    let nap = MessagePart::call("call_1", "nap", &json!({"ms": 30_000}));
    fixture.fake.always("busy-phase", ModelMessage::new([nap]));
    let api = &fixture.api;
    let session = api.create().await.expect("a session");
    let cancel = format!("/sessions/{session}/cancel");
    let nothing = api.post(&cancel, json!({})).await.expect("an answer");
    assert_eq!(
        (nothing.status, nothing.json()),
        (200, json!({"turn_id": null}))
    );
    let mut client = watch(api, "line", session).await;
    let busy = api
        .submit(session, "busy-phase")
        .await
        .expect("taken")
        .turn_id;
    reach(&mut client, &[EventType::ToolCalled]).await;
    // In line.
    let body = json!({"message": "waits", "on_busy": "enqueue"});
    let waits = submit_with(&fixture, session, "key-1", body).await;
    let by_key = json!({"idempotency_key": "key-1", "reason": "too long"});
    let path = format!("{cancel}?wait=true");
    let answer = api.post(&path, by_key.clone()).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let turn = &answer.json()["turn"];
    assert_eq!(
        (&turn["turn_id"], &turn["state"]),
        (&json!(waits), &json!("cancelled"))
    );
    assert_eq!(turn["terminal"]["payload"]["phase"], "queued");
    assert_eq!(turn["terminal"]["payload"]["reason"], "too long");
    // Again: it has its end.
    let again = api.post(&path, by_key).await.expect("an answer");
    assert_eq!((again.status, &again.json()["turn"]), (200, turn));
    // Not come yet, and the session is busy; then not come yet, and it is free.
    for (key, phase) in [("key-2", "queued"), ("key-3", "route")] {
        let response = api.post(&path, json!({"idempotency_key": key}));
        let response = response.await.expect("an answer");
        assert_eq!(
            (response.status, response.json()),
            (202, json!({"turn_id": null}))
        );
        let body = json!({"message": "comes late", "on_busy": "enqueue"});
        let late = submit_with(&fixture, session, key, body).await;
        let row = api.ended(late).await.expect("an end");
        assert_eq!(row["state"], "cancelled", "{row}");
        assert_eq!(row["terminal"]["payload"]["phase"], phase, "{row}");
        assert_eq!(row["receipt"], json!([]));
        after(api, key, session, late).await;
        if phase == "queued" {
            let now = api.post(&path, json!({})).await.expect("an answer");
            assert_eq!(now.json()["turn_id"], json!(busy), "what runs now");
        }
    }
    let calls = fixture.fake.calls();
    assert_eq!(calls.len(), 1, "the model of the others was never asked");
    let stranger = fixture.server.api().with("x-turnwire-principal", "eve");
    let foreign = stranger.post(&cancel, json!({})).await.expect("an answer");
    assert_eq!(
        (foreign.status, foreign.code().as_str()),
        (404, "session_not_found")
    );
    let invalid = api.post(&cancel, json!({"idempotency_key": "a b"}));
    assert_eq!(invalid.await.expect("an answer").status, 422);
    fixture.sockets_closed().await;
    load::check_history(api, &[session]).await;
}

// S3-082, S3-083
#[tokio::test]
async fn duplicate_late_or_unknown_stops_change_nothing() {
    let fixture = StopFixture::open(Duration::from_secs(1)).await;
    let nap = MessagePart::call("call_1", "nap", &json!({"ms": 30_000}));
    // In this order: what was said first is in the second question too.
    fixture
        .fake
        .always("quick-phase", ProviderAnswer::text(["Yes."]));
    fixture.fake.always("busy-phase", ModelMessage::new([nap]));
    let api = &fixture.api;
    let session = api.create().await.expect("a session");
    let mut client = watch(api, "twice", session).await;
    let turn = api
        .submit(session, "busy-phase")
        .await
        .expect("taken")
        .turn_id;
    reach(&mut client, &[EventType::ToolCalled]).await;
    api.cancel(turn).await.expect("an answer");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let path = |turn| format!("/turns/{turn}/cancel?wait=true");
    let second = api.post(&path(turn), json!({"reason": "again"})).await;
    let second = second.expect("an answer");
    assert_eq!(second.status, 200);
    assert_eq!(
        second.json()["terminal"]["payload"]["reason"],
        "user_cancel"
    );
    // A turn that has ended by itself stays as it is, and its ending is returned.
    let done = api
        .submit(session, "quick-phase")
        .await
        .expect("taken")
        .turn_id;
    let row = api.ended(done).await.expect("an end");
    let late = api.post(&path(done), json!({})).await.expect("an answer");
    assert_eq!((late.status, late.json()), (200, row));
    let unknown = path(TurnId(turnwire_event::Ulid(7)));
    let unknown = api.post(&unknown, json!({})).await.expect("an answer");
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "turn_not_found")
    );
    let odd = format!("/turns/{turn}/cancel?wait=maybe");
    assert_eq!(
        api.post(&odd, json!({})).await.expect("an answer").status,
        422
    );
    let warned = api.events(session).await.expect("the log");
    let warned = warned
        .iter()
        .any(|event| event.text.contains("redundant_cancel"));
    assert!(warned, "a stop of what has ended leaves a warning");
    load::check_history(api, &[session]).await;
}
