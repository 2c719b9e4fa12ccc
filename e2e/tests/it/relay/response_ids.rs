//! The response id of an upstream: on every frame, as the name of its turn, and untrusted.

use std::process::Command;

use hyper::Method;
use serde_json::{Value, json};
use turnwire_e2e::chat::{back, events, say, until, whole, words};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, ResponseId, TurnId};
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::server::binary;
use turnwire_testkit::upstream::{UpstreamStep as Step, stream};
use turnwire_testkit::watch::{SubscribeOptions, WatchFrame};

use super::{completed, relay, response_id, text};

const REPLACED: &str = "turnwire_relay_response_ids_replaced_total ";

/// The one response id of all frames.
fn response_of(frames: &[Block]) -> String {
    let of = |frame: &Block| frame.field("response_id").as_str().map(str::to_owned);
    let first = frames.first().and_then(of).expect("a response id");
    for frame in frames {
        assert_eq!(of(frame).as_ref(), Some(&first), "{frame:?}");
    }
    first
}

fn own(turn: TurnId) -> String {
    ResponseId::from(turn).to_string()
}

async fn replaced(fixture: &ServerFixture) -> String {
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix(REPLACED));
    count.unwrap_or("0").to_owned()
}

/// An answer that has an id, begins and does not go on.
fn begun(id: &str) -> Vec<Step> {
    vec![
        Step::head(),
        Step::event(&response_id(id)),
        Step::event(&text("Hel")),
        Step::Stall,
    ]
}

async fn said(fixture: &ServerFixture, name: &str) -> (TurnId, Vec<Block>) {
    let question = ChatSubmit::new("hi").session(fixture.session);
    whole(&fixture.api, name, &question).await
}

// S1-034, D-04
#[tokio::test]
async fn every_frame_has_the_id_live_and_replayed() {
    let thinking = json!({"type": "thinking", "content": "hm"});
    let steps = stream(&[
        thinking,
        response_id("resp_abc"),
        text("Hello"),
        completed(),
    ]);
    let (_upstream, fixture) = relay(steps).await;
    let (turn, frames) = said(&fixture, "live").await;
    assert_eq!(response_of(&frames), "resp_abc");
    assert_eq!(
        events(&frames),
        [
            "response_id",
            "episode",
            "thinking",
            "thinking",
            "text",
            "usage",
            "completed"
        ]
    );
    let mut replayed = back(&fixture.api, "replayed", turn, None).await;
    let replayed = replayed.read_to_end().await.expect("an end");
    assert_eq!(response_of(&replayed), "resp_abc");
    let by_id = fixture.api.get("/chat/resp_abc/stream").await;
    let by_turn = fixture.api.get(&format!("/chat/{turn}/stream")).await;
    // The first line is a random time to reconnect after.
    let [by_id, by_turn] = [by_id, by_turn].map(|answer| {
        let body = answer.expect("an answer").body;
        body.split_once('\n').expect("lines").1.to_owned()
    });
    assert_eq!(by_id, by_turn);
    assert!(by_id.contains("\"chunk\":\"Hello\""), "{by_id}");
    for path in ["/turns/resp_abc".to_owned(), format!("/turns/{turn}")] {
        let row = fixture.api.get(&path).await.expect("an answer").json();
        assert_eq!(row["turn_id"], turn.to_string());
        assert_eq!(row["response_id"], "resp_abc");
    }
    for event in fixture.api.events(fixture.session).await.expect("events") {
        let event: Value = serde_json::from_str(&event.text).expect("JSON");
        // The upstream is asked after these.
        let is_before = ["turn.started", "llm.call_started"].map(Value::from);
        if event["turn_id"] == turn.to_string() && !is_before.contains(&event["type"]) {
            assert_eq!(event["response_id"], "resp_abc", "{event}");
        }
    }
    let feedback = json!({"turn_id": "resp_abc", "rating": "up"});
    let path = format!("/sessions/{}/feedback", fixture.session);
    let answer = fixture.api.post(&path, feedback).await.expect("an answer");
    assert_eq!(answer.status, 202, "{}", answer.body);
    let recorded = fixture.logged(|event| match &event.body {
        Body::FeedbackRecorded(feedback) => feedback.turn_id == Some(turn),
        _ => false,
    });
    recorded.await;
    fixture.check_history().await;
}

// S1-034, D-04
#[tokio::test]
async fn turn_is_stopped_by_the_id_by_its_owner_only() {
    for over_the_session_wire in [false, true] {
        let steps = begun("run:7");
        let (_upstream, fixture) = relay(steps).await;
        let mut client = fixture.watch("canceller", SubscribeOptions::live()).await;
        let question = ChatSubmit::new("hi").session(fixture.session);
        let mut stream = say(&fixture.api, "stopped", &question).await;
        let mut frames = stream.until("text").await.expect("a beginning");
        let eve = fixture.api.clone().with("x-turnwire-principal", "eve");
        let answer = eve.post("/turns/run:7/cancel", json!({})).await;
        assert_eq!(answer.expect("an answer").status, 404);
        for path in ["/turns/run:7", "/chat/run:7/stream", "/turns/run:8"] {
            let answer = eve.get(path).await.expect("an answer");
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (404, "turn_not_found")
            );
        }
        if over_the_session_wire {
            let unknown = json!({"type": "cancel", "turn_id": "run:8"});
            client.send(&unknown).await.expect("sent");
            let refusal = loop {
                if let WatchFrame::Frame(frame) = client.next().await.expect("a frame")
                    && frame["type"]
                        .as_str()
                        .is_some_and(|kind| kind.starts_with("cancel_"))
                {
                    break frame;
                }
            };
            assert_eq!(
                (&refusal["code"], &refusal["turn_id"]),
                (&json!("turn_not_found"), &json!("run:8"))
            );
            let frame = json!({"type": "cancel", "turn_id": "run:7"});
            client.send(&frame).await.expect("sent");
        } else {
            let answer = fixture.api.post("/turns/run:7/cancel", json!({})).await;
            assert_eq!(answer.expect("an answer").status, 202);
        }
        frames.extend(stream.read_to_end().await.expect("an end"));
        assert_eq!(response_of(&frames), "run:7");
        assert_eq!(frames.last().map(Block::event), Some("cancelled"));
        fixture.check_history().await;
    }
}

// S1-034, D-04
#[tokio::test]
async fn id_in_use_of_another_form_or_of_this_server_is_replaced() {
    let (upstream, fixture) = relay(stream(&[text("one"), completed()])).await;
    let answer = |id: &str| {
        upstream.answer_next(stream(&[response_id(id), text("one"), completed()]));
    };
    answer("resp_abc");
    let (first, frames) = said(&fixture, "first").await;
    assert_eq!(response_of(&frames), "resp_abc");
    assert_eq!(replaced(&fixture).await, "0");
    let bad = [
        "resp_abc".to_owned(),
        first.to_string(),
        own(first),
        "a b".into(),
        "../turns".into(),
        "x\",\"y\":\"".into(),
        "r".repeat(129),
        String::new(),
    ];
    for sent in [json!(5), json!({}), Value::Null] {
        let id = json!({"type": "response_id", "response_id": sent});
        upstream.answer_next(stream(&[id, text("one"), completed()]));
        let (turn, frames) = said(&fixture, "no text").await;
        assert_eq!(response_of(&frames), own(turn), "{sent}");
        assert_eq!(frames.last().map(Block::event), Some("completed"));
    }
    for (count, id) in (4..).zip(&bad) {
        answer(id);
        let (turn, frames) = said(&fixture, id).await;
        assert_eq!(response_of(&frames), own(turn), "{id}");
        assert_eq!(events(&frames).last(), Some(&"completed"));
        assert_eq!(replaced(&fixture).await, count.to_string(), "{id}");
    }
    // Of the same id, another owner has a turn of their own.
    answer("resp_abc");
    let eve = fixture.api.clone().with("x-turnwire-principal", "eve");
    let (eves, frames) = whole(&eve, "eve", &ChatSubmit::new("hi")).await;
    assert_eq!(response_of(&frames), "resp_abc");
    for (api, turn) in [(&eve, eves), (&fixture.api, first)] {
        let row = api.get("/turns/resp_abc").await.expect("an answer").json();
        assert_eq!(row["turn_id"], turn.to_string());
    }
    assert_eq!(replaced(&fixture).await, (3 + bad.len()).to_string());
}

// S1-034, D-04
#[tokio::test]
async fn two_turns_at_once_do_not_share_an_id() {
    let steps = begun("resp_abc");
    let (_upstream, fixture) = relay(steps).await;
    let question = ChatSubmit::new("hi");
    let mut responses = Vec::new();
    let mut streams = Vec::new();
    for name in ["one", "two"] {
        let mut stream = say(&fixture.api, name, &question).await;
        let frames = stream.until("text").await.expect("a beginning");
        responses.push((response_of(&frames), stream.turn()));
        streams.push(stream);
    }
    assert_eq!(responses[0].0, "resp_abc");
    assert_eq!(responses[1].0, own(responses[1].1));
    assert_eq!(replaced(&fixture).await, "1");
}

// D-04
#[tokio::test]
async fn id_that_comes_late_is_not_waited_for() {
    let steps = vec![
        Step::head(),
        Step::event(&text("Hel")),
        Step::wait(600),
        Step::event(&response_id("resp_late")),
        Step::event(&text("lo")),
        Step::event(&completed()),
    ];
    let (_upstream, fixture) = relay(steps).await;
    let (turn, frames) = said(&fixture, "late").await;
    assert_eq!(
        (response_of(&frames), words(&frames)),
        (own(turn), "Hello".into())
    );
    let answer = fixture.api.get("/turns/resp_late").await;
    assert_eq!(answer.expect("an answer").status, 404);
    assert_eq!(replaced(&fixture).await, "1");
    // More than is held back at once needs no waiting either.
    let long = "a".repeat(100_000);
    for said_before in [&[][..], &[text("x")]] {
        let late = [text(&long), response_id("resp_late"), completed()];
        let steps = stream(&[said_before, &late].concat());
        let (_upstream, fixture) = relay(steps).await;
        let (turn, frames) = said(&fixture, "long").await;
        let expected = format!("{}{long}", "x".repeat(said_before.len()));
        assert_eq!(response_of(&frames), own(turn));
        assert!(words(&frames) == expected);
        fixture.check_history().await;
    }
}

// S1-034, S1-022
#[tokio::test]
async fn turn_that_ends_before_the_id_has_its_first_frames() {
    let (upstream, fixture) = relay(vec![Step::head(), Step::Stall]).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "stopped", &question).await;
    until("the upstream is asked", || async {
        upstream.requests().len() == 1
    })
    .await;
    let turn = stream.turn();
    fixture.api.cancel(turn).await.expect("an answer");
    let frames = stream.read_to_end().await.expect("an end");
    assert_eq!(response_of(&frames), own(turn));
    assert_eq!(events(&frames), ["response_id", "episode", "cancelled"]);
    fixture.check_history().await;
}

// S1-034
#[tokio::test]
async fn turn_that_a_kill_cut_off_ends_under_the_id() {
    let steps = vec![
        Step::head(),
        Step::event(&response_id("resp_abc")),
        Step::event(&json!({"type": "tool_call_start", "id": "c1", "name": "search"})),
        Step::event(&text("Hel")),
        Step::Stall,
    ];
    let (_upstream, mut fixture) = relay(steps).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "cut", &question).await;
    stream.until("text").await.expect("a beginning");
    fixture.server.kill().await;
    fixture.server.run().await.expect("it comes up again");
    let path = "/turns/resp_abc";
    let row = fixture.api.get(path).await.expect("an answer").json();
    assert_eq!(row["turn_id"], stream.turn().to_string());
    let mut again = back(&fixture.api, "again", stream.turn(), None).await;
    let frames = again.read_to_end().await.expect("an end");
    assert_eq!(response_of(&frames), "resp_abc");
    let names = events(&frames);
    assert_eq!(
        names[names.len() - 3..],
        ["tool_completed", "usage", "error"]
    );
    // The end of the tool names the same one, though the server wrote it after it came up.
    let tools = frames
        .iter()
        .filter(|frame| frame.event().starts_with("tool_"));
    let tools: Vec<&Value> = tools.map(|frame| &frame.field("tool_call")["id"]).collect();
    assert_eq!(tools, ["c1", "c1"]);
    fixture.check_history().await;
}

// S1-034
#[tokio::test]
async fn stream_of_a_deleted_session_ends_under_the_id() {
    let steps = begun("resp_abc");
    let (_upstream, fixture) = relay(steps).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "deleted", &question).await;
    stream.until("text").await.expect("a beginning");
    let path = format!("/sessions/{}", fixture.session);
    let answer = fixture.api.send(Method::DELETE, &path, None).await;
    assert_eq!(answer.expect("an answer").status, 204);
    // The error belongs to no event: it has no id, which the reader reports.
    let error = stream.read_to_end().await.expect_err("no id");
    let error = format!("{error:?}").replace('\\', "");
    assert!(
        error.contains(r#""response_id":"resp_abc","error""#),
        "{error}"
    );
}

// S1-034
#[tokio::test]
async fn streaming_turn_is_replayed_from_the_folder_by_its_id() {
    let steps = begun("resp_abc");
    let (_upstream, fixture) = relay(steps).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "live", &question).await;
    stream.until("text").await.expect("a beginning");
    let (session, home) = (fixture.session.to_string(), fixture.server.home());
    let replay = |turn: &str| {
        let mut command = Command::new(binary());
        command.args([
            "replay", &session, "--wire", "pc3", "--turn", turn, "--home",
        ]);
        let done = command.arg(&home).output().expect("the command runs");
        let texts = [done.stdout, done.stderr];
        texts.map(|bytes| String::from_utf8(bytes).expect("text"))
    };
    until("the text is stored", || async {
        replay("resp_abc")[0].contains("\"chunk\":\"Hel\"")
    })
    .await;
    let [frames, _] = replay("resp_abc");
    let frames: Vec<&str> = frames
        .lines()
        .filter(|line| line.starts_with("data:"))
        .collect();
    assert_eq!(
        frames.len(),
        4,
        "response_id, episode, thinking, text: {frames:?}"
    );
    for frame in frames {
        assert!(frame.contains("\"response_id\":\"resp_abc\""), "{frame}");
    }
    let [nothing, error] = replay("resp_other");
    assert_eq!(nothing, "");
    assert!(
        error.contains("there is no turn resp_other in this session"),
        "{error}"
    );
    let turn = stream.turn();
    fixture.api.cancel(turn).await.expect("an answer");
    stream.read_to_end().await.expect("an end");
    fixture.check_history().await;
}
