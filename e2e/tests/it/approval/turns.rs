//! Tools that wait for a person, against the real binary: what was allowed happens once, what was
//! not never does, and every provider is sent a conversation that it takes.

use serde_json::json;
use turnwire_e2e::approvals::{Asking, call, leg};
use turnwire_e2e::chat::{back, events, words};
use turnwire_e2e::engine::{kinds, of};
use turnwire_e2e::models::{thread, word};
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage};

// D-81
#[tokio::test]
async fn approval_runs_tool_once_and_history_is_complete() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let asking = Asking::new(dialect).await;
        let fake = &asking.play.fake;
        let echo = MessagePart::call("call_echo", "say_back", &json!({"text": "echoed"}));
        fake.push(ModelMessage::new([
            MessagePart::text(["I will."]),
            echo,
            call("milk"),
        ]));
        asking.says("It is written down.");
        let (turn, open) = asking.paused("Write it down.").await;
        assert_eq!((open.len(), asking.notes().len()), (1, 0), "{name}");
        let next = asking.yes(turn, &open[0]).await;
        // A chat client follows the leg by its id.
        let stage = &asking.play.stage;
        let mut stream = back(&stage.api, "a follower", next, None).await;
        let frames = stream.read_to_end().await.expect("the whole leg");
        assert_eq!(events(&frames).last(), Some(&"completed"), "{name}");
        assert_eq!(words(&frames), "It is written down.", "{name}");
        assert_eq!(asking.notes(), ["\"milk\""], "{name}");
        let story = kinds(&stage.events(next).await);
        assert_eq!(
            story[..4],
            [
                "turn.started",
                "route.decided",
                "tool.called note",
                "tool.completed note"
            ],
            "{name}"
        );
        let again = asking.yes(turn, &open[0]).await;
        assert_eq!((again, asking.notes().len()), (next, 1), "{name}");
        let calls = fake.calls();
        assert_eq!(calls.len(), 2, "{name}");
        let thread_text = json!(thread(dialect, &calls[1].body)).to_string();
        assert_eq!(
            thread_text.matches("Write it down.").count(),
            1,
            "{name}: {thread_text}"
        );
        assert!(thread_text.contains("echoed"), "{name}: {thread_text}");
        asking.judge().await;
    }
}

#[tokio::test]
async fn rejection_or_new_message_never_runs_tool() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let asking = Asking::new(dialect).await;
        asking.wants(&["milk"]);
        asking.says("Then not.");
        let (turn, open) = asking.paused("Write it down.").await;
        let body = json!({"approval_id": open[0], "decision": "reject", "comment": "No paper."});
        let next = leg(&asking.post(turn, body).await.expect("an answer"));
        asking.ended(next).await;
        let calls = asking.play.fake.calls();
        let rejection_text = "the person said no, and: No paper.";
        assert!(
            calls[1].text.contains(rejection_text),
            "{name}: {}",
            calls[1].text
        );
        let events = asking.play.stage.events(next).await;
        let failed = of(&events, "tool.failed").next().expect("it failed");
        assert_eq!(failed["payload"]["error_class"], "cancelled", "{name}");
        assert_eq!(failed["payload"]["called"], false, "{name}");
        // One of two is allowed, then the person says something else.
        asking.wants(&["bread", "salt"]);
        asking.says("Never mind then.");
        let (turn, open) = asking.paused("Write two down.").await;
        let part = asking.answer(turn, &open[0], "approve").await;
        let part = part.expect("an answer");
        assert_eq!((part.status, &part.json()["remaining"]), (200, &json!(1)));
        let (rejection_text, _) = asking.play.ask("Something else.").await;
        assert_eq!(rejection_text.words(), "Never mind then.", "{name}");
        let calls = asking.play.fake.calls();
        let last = &calls.last().expect("a call").text;
        for rejection_text in ["no one allowed it", "went on with something else"] {
            assert!(last.contains(rejection_text), "{name}: {last}");
        }
        let late = asking.answer(turn, &open[1], "reject").await;
        let late = late.expect("an answer");
        assert_eq!(
            (late.status, late.code().as_str()),
            (409, "approval_resolved")
        );
        assert_eq!(asking.notes(), [""; 0], "{name}");
        asking.judge().await;
    }
}

#[tokio::test]
async fn resumed_turn_that_asks_again_pauses_again() {
    let asking = Asking::new(Dialect::Anthropic).await;
    asking.wants(&["one"]);
    asking.wants(&["two", "three"]);
    asking.says("All three.");
    let (first, open) = asking.paused("Write them down.").await;
    let second = asking.yes(first, &open[0]).await;
    let row = asking.ended(second).await;
    assert_eq!(row["terminal"]["payload"]["status"], "paused");
    assert_eq!(row["resumes"], json!(first));
    assert_eq!(asking.notes(), ["\"one\""]);
    let open = asking.open(second).await;
    let answers = open
        .iter()
        .map(|id| json!({"approval_id": id, "decision": "approve"}));
    let body = json!({"answers": answers.collect::<Vec<_>>()});
    let third = leg(&asking.post(second, body).await.expect("an answer"));
    let row = asking.ended(third).await;
    assert_eq!(row["terminal"]["payload"]["status"], "ok");
    let mut notes = asking.notes();
    notes.sort();
    assert_eq!(notes, ["\"one\"", "\"three\"", "\"two\""]);
    asking.judge().await;
}

#[tokio::test]
async fn resumed_turn_can_be_cancelled() {
    let asking = Asking::new(Dialect::Anthropic).await;
    let doze = MessagePart::call("call_doze", "doze", &json!({}));
    asking.play.fake.push(ModelMessage::new([doze]));
    let (turn, open) = asking.paused("Sleep.").await;
    let next = asking.yes(turn, &open[0]).await;
    let stage = &asking.play.stage;
    stage.reached(next, "tool.called").await;
    stage.api.cancel(next).await.expect("an answer");
    let row = asking.ended(next).await;
    assert_eq!(row["state"], "cancelled", "{row}");
    let receipt = row["receipt"].as_array().expect("a receipt");
    assert!(
        receipt.iter().any(|line| line["kind"] == "tool"),
        "{receipt:?}"
    );
    assert_eq!(
        asking.yes(turn, &open[0]).await,
        next,
        "it is not run again"
    );
    asking.says("Good morning.");
    let (told, _) = asking.play.ask("Are you there?").await;
    assert_eq!(told.words(), "Good morning.");
    asking.judge().await;
}

#[tokio::test]
async fn two_concurrent_answers_start_one_resumed_turn() {
    let asking = Asking::new(Dialect::Chat).await;
    for round in 0..3 {
        asking.wants(&["a", "b"]);
        asking.says("Done.");
        let (turn, open) = asking.paused("Both.").await;
        let answers = (0..8).map(|n| asking.answer(turn, &open[n % 2], "approve"));
        let answers = futures_util::future::join_all(answers).await;
        let mut legs = Vec::new();
        for answer in answers {
            let answer = answer.expect("an answer");
            match answer.status {
                202 => legs.push(leg(&answer)),
                status => assert_eq!(status, 200, "{}", answer.body),
            }
        }
        legs.dedup();
        assert_eq!(legs.len(), 1, "one leg");
        asking.ended(legs[0]).await;
        assert_eq!(asking.notes().len(), 2 * (round + 1));
    }
    asking.judge().await;
}

//
#[tokio::test]
async fn unanswerable_approval_gets_a_problem() {
    let asking = Asking::new(Dialect::Anthropic).await;
    asking.wants(&["x"]);
    asking.says("Done.");
    let (turn, open) = asking.paused("Once.").await;
    let unknown = "appr_00000000000000000000000001";
    let yes = json!({"approval_id": open[0], "decision": "approve"});
    for (body, status, code) in [
        (
            json!({"approval_id": unknown, "decision": "approve"}),
            404,
            "approval_not_found",
        ),
        (
            json!({"approval_id": "x", "decision": "approve"}),
            404,
            "approval_not_found",
        ),
        (
            json!({"approval_id": open[0], "decision": "maybe"}),
            422,
            "invalid_request",
        ),
        (json!({"approval_id": open[0]}), 422, "invalid_request"),
        (json!({"answers": []}), 422, "invalid_request"),
        (json!({"answers": [yes], "why": 1}), 422, "unknown_field"),
        (
            json!({"answers": [{"approval_id": open[0], "decision": "approve", "x": 1}]}),
            422,
            "unknown_field",
        ),
    ] {
        let answer = asking.post(turn, body.clone()).await.expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{body}"
        );
    }
    let path = format!("/turns/{turn}/approvals");
    let eve = asking.play.stage.server.api();
    let eve = eve.with("x-turnwire-principal", "eve");
    let answer = eve.post(&path, yes.clone()).await.expect("an answer");
    assert_eq!(answer.code(), "turn_not_found");
    let answer = eve.get(&path).await.expect("an answer");
    assert_eq!(answer.code(), "turn_not_found");
    let next = leg(&asking.post(turn, yes.clone()).await.expect("an answer"));
    let answer = asking.answer(turn, &open[0], "reject").await.expect("one");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (409, "approval_resolved")
    );
    asking.ended(next).await;
    let answer = asking.post(next, yes).await.expect("an answer");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (409, "turn_not_paused")
    );
    // And by the command line.
    asking.wants(&["y"]);
    asking.says("Done too.");
    let (turn, _) = asking.paused("Twice.").await;
    let server = format!("http://{}", asking.play.stage.api.addr());
    let run = tokio::process::Command::new(turnwire_testkit::server::binary())
        .args(["approve", &turn.to_string(), "--server", &server])
        .args(["--principal", turnwire_e2e::engine::PRINCIPAL])
        .output();
    let run = run.await.expect("it runs");
    let stdout = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{run:?}");
    assert!(
        stdout.starts_with("approved appr_") && stdout.contains("goes on"),
        "{stdout}"
    );
    let next = stdout.split_whitespace().rev().nth(2).expect("a turn");
    asking.ended(next.parse().expect("an id")).await;
    assert_eq!(asking.notes(), ["\"x\"", "\"y\""]);
    asking.judge().await;
}
