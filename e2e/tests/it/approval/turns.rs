//! Tools that need approval, with the real binary: approved tools run once, rejected ones never,
//! and every provider gets a valid conversation.

use serde_json::json;
use turnwire_e2e::approvals::{ApprovalFixture, call, resumed_turn};
use turnwire_e2e::chat::{back, events, words};
use turnwire_e2e::engine::{kinds, of};
use turnwire_e2e::models::{thread, word};
use turnwire_event::content::sha256_hex;
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage};

// D-81
#[tokio::test]
async fn approval_runs_tool_once_and_history_is_complete() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let approvals = ApprovalFixture::new(dialect).await;
        let fake = &approvals.setup.fake;
        let echo = MessagePart::call("call_echo", "say_back", &json!({"text": "echoed"}));
        fake.push(ModelMessage::new([
            MessagePart::text(["I will."]),
            echo,
            call("milk"),
        ]));
        approvals.says("It is written down.");
        let (turn, open) = approvals.paused("Write it down.").await;
        assert_eq!((open.len(), approvals.notes().len()), (1, 0), "{name}");
        let next = approvals.yes(turn, &open[0]).await;
        // A chat client follows the leg by its id.
        let engine = &approvals.setup.engine;
        let mut stream = back(&engine.api, "a follower", next, None).await;
        let frames = stream.read_to_end().await.expect("the whole leg");
        assert_eq!(events(&frames).last(), Some(&"completed"), "{name}");
        assert_eq!(words(&frames), "It is written down.", "{name}");
        assert_eq!(approvals.notes(), ["\"milk\""], "{name}");
        let story = kinds(&engine.events(next).await);
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
        let again = approvals.yes(turn, &open[0]).await;
        assert_eq!((again, approvals.notes().len()), (next, 1), "{name}");
        let calls = fake.calls();
        assert_eq!(calls.len(), 2, "{name}");
        let thread_text = json!(thread(dialect, &calls[1].body)).to_string();
        assert_eq!(
            thread_text.matches("Write it down.").count(),
            1,
            "{name}: {thread_text}"
        );
        assert!(thread_text.contains("echoed"), "{name}: {thread_text}");
        approvals.check_history().await;
    }
}

#[tokio::test]
async fn rejection_or_new_message_never_runs_tool() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let approvals = ApprovalFixture::new(dialect).await;
        approvals.wants(&["milk"]);
        approvals.says("Then not.");
        let (turn, open) = approvals.paused("Write it down.").await;
        let body = json!({"approval_id": open[0], "decision": "reject", "comment": "No paper."});
        let next = resumed_turn(&approvals.post(turn, body).await.expect("an answer"));
        approvals.ended(next).await;
        let calls = approvals.setup.fake.calls();
        let rejection_text = "the person said no, and: No paper.";
        assert!(
            calls[1].text.contains(rejection_text),
            "{name}: {}",
            calls[1].text
        );
        let events = approvals.setup.engine.events(next).await;
        let failed = of(&events, "tool.failed").next().expect("it failed");
        assert_eq!(failed["payload"]["error_class"], "cancelled", "{name}");
        assert_eq!(failed["payload"]["called"], false, "{name}");
        // One of two is allowed, then the person says something else.
        approvals.wants(&["bread", "salt"]);
        approvals.says("Never mind then.");
        let (turn, open) = approvals.paused("Write two down.").await;
        let part = approvals.answer(turn, &open[0], "approve").await;
        let part = part.expect("an answer");
        assert_eq!((part.status, &part.json()["remaining"]), (200, &json!(1)));
        let (rejection_text, _) = approvals.setup.ask("Something else.").await;
        assert_eq!(rejection_text.text(), "Never mind then.", "{name}");
        let calls = approvals.setup.fake.calls();
        let last = &calls.last().expect("a call").text;
        for rejection_text in ["no one allowed it", "went on with something else"] {
            assert!(last.contains(rejection_text), "{name}: {last}");
        }
        let late = approvals.answer(turn, &open[1], "reject").await;
        let late = late.expect("an answer");
        assert_eq!(
            (late.status, late.code().as_str()),
            (409, "approval_resolved")
        );
        assert_eq!(approvals.notes(), [""; 0], "{name}");
        approvals.check_history().await;
    }
}

#[tokio::test]
async fn resumed_turn_that_asks_again_pauses_again() {
    let approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    approvals.wants(&["one"]);
    approvals.wants(&["two", "three"]);
    approvals.says("All three.");
    let (first, open) = approvals.paused("Write them down.").await;
    let second = approvals.yes(first, &open[0]).await;
    let row = approvals.ended(second).await;
    assert_eq!(row["terminal"]["payload"]["status"], "paused");
    assert_eq!(row["resumes"], json!(first));
    assert_eq!(approvals.notes(), ["\"one\""]);
    let open = approvals.open(second).await;
    let answers = open
        .iter()
        .map(|id| json!({"approval_id": id, "decision": "approve"}));
    let body = json!({"answers": answers.collect::<Vec<_>>()});
    let third = resumed_turn(&approvals.post(second, body).await.expect("an answer"));
    let row = approvals.ended(third).await;
    assert_eq!(row["terminal"]["payload"]["status"], "ok");
    let mut notes = approvals.notes();
    notes.sort();
    assert_eq!(notes, ["\"one\"", "\"three\"", "\"two\""]);
    approvals.check_history().await;
}

#[tokio::test]
async fn resumed_turn_can_be_cancelled() {
    let approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    let doze = MessagePart::call("call_doze", "doze", &json!({}));
    approvals.setup.fake.push(ModelMessage::new([doze]));
    let (turn, open) = approvals.paused("Sleep.").await;
    let next = approvals.yes(turn, &open[0]).await;
    let engine = &approvals.setup.engine;
    engine.reached(next, "tool.called").await;
    engine.api.cancel(next).await.expect("an answer");
    let row = approvals.ended(next).await;
    assert_eq!(row["state"], "cancelled", "{row}");
    let receipt = row["receipt"].as_array().expect("a receipt");
    assert!(
        receipt.iter().any(|line| line["kind"] == "tool"),
        "{receipt:?}"
    );
    assert_eq!(
        approvals.yes(turn, &open[0]).await,
        next,
        "it is not run again"
    );
    approvals.says("Good morning.");
    let (reply, _) = approvals.setup.ask("Are you there?").await;
    assert_eq!(reply.text(), "Good morning.");
    approvals.check_history().await;
}

#[tokio::test]
async fn two_concurrent_answers_start_one_resumed_turn() {
    let approvals = ApprovalFixture::new(Dialect::Chat).await;
    for round in 0..3 {
        approvals.wants(&["a", "b"]);
        approvals.says("Done.");
        let (turn, open) = approvals.paused("Both.").await;
        let answers = (0..8).map(|n| approvals.answer(turn, &open[n % 2], "approve"));
        let answers = futures_util::future::join_all(answers).await;
        let mut legs = Vec::new();
        for answer in answers {
            let answer = answer.expect("an answer");
            match answer.status {
                202 => legs.push(resumed_turn(&answer)),
                status => assert_eq!(status, 200, "{}", answer.body),
            }
        }
        legs.dedup();
        assert_eq!(legs.len(), 1, "one leg");
        approvals.ended(legs[0]).await;
        assert_eq!(approvals.notes().len(), 2 * (round + 1));
    }
    approvals.check_history().await;
}

//
#[tokio::test]
async fn unanswerable_approval_gets_a_problem() {
    let approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    approvals.wants(&["x"]);
    approvals.says("Done.");
    let (turn, open) = approvals.paused("Once.").await;
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
        let answer = approvals.post(turn, body.clone()).await.expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{body}"
        );
    }
    let path = format!("/turns/{turn}/approvals");
    let eve = approvals.setup.engine.server.api();
    let eve = eve.with("x-turnwire-principal", "eve");
    let answer = eve.post(&path, yes.clone()).await.expect("an answer");
    assert_eq!(answer.code(), "turn_not_found");
    let answer = eve.get(&path).await.expect("an answer");
    assert_eq!(answer.code(), "turn_not_found");
    let next = resumed_turn(&approvals.post(turn, yes.clone()).await.expect("an answer"));
    let answer = approvals
        .answer(turn, &open[0], "reject")
        .await
        .expect("one");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (409, "approval_resolved")
    );
    approvals.ended(next).await;
    let answer = approvals.post(next, yes).await.expect("an answer");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (409, "turn_not_paused")
    );
    // And by the command line.
    approvals.wants(&["y"]);
    approvals.says("Done too.");
    let (turn, open) = approvals.paused("Twice.").await;
    let digest = sha256_hex(json!({"note": "y"}).to_string().as_bytes());
    let server = format!("http://{}", approvals.setup.engine.api.addr());
    let run = tokio::process::Command::new(turnwire_testkit::server::binary())
        .args(["approve", &turn.to_string(), "--server", &server])
        .args(["--principal", turnwire_e2e::engine::PRINCIPAL])
        .args(["--approval", &open[0], "--input-sha256", &digest])
        .output();
    let run = run.await.expect("it runs");
    let stdout = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{run:?}");
    assert!(
        stdout.starts_with("approved appr_") && stdout.contains("goes on"),
        "{stdout}"
    );
    let next = stdout.split_whitespace().rev().nth(2).expect("a turn");
    approvals.ended(next.parse().expect("an id")).await;
    assert_eq!(approvals.notes(), ["\"x\"", "\"y\""]);
    approvals.check_history().await;
}
