//! A person decides on the whole input of a tool, and the tool runs with that input and no other.

use serde_json::{Value, json};
use turnwire_e2e::approvals::{ApprovalFixture, resumed_turn};
use turnwire_e2e::engine::of;
use turnwire_event::content::sha256_hex;
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage};

/// A note whose end is far behind the summary.
fn padded(end: &str) -> String {
    format!("groceries{}{end}", " ".repeat(60_000))
}

//
#[tokio::test]
async fn approval_has_the_whole_input_and_runs_it_byte_for_byte() {
    let mut approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    let note = padded("; rm -rf ~ \u{202e}\u{2028}\n\"\\");
    let call = MessagePart::call("call_note", "note", &json!({"note": note}));
    approvals.setup.fake.push(ModelMessage::new([call]));
    approvals.says("Done.");
    let (turn, open) = approvals.paused("Write it down.").await;
    approvals.setup.engine.server.restart().await;
    let api = &approvals.setup.engine.api;
    let path = format!("/turns/{turn}/approvals/{}", open[0]);
    let item = api.get(&path).await.expect("an answer").json();
    let input = item["input_json"].as_str().expect("the whole input");
    assert_eq!(input, json!({"note": note}).to_string());
    let digest = sha256_hex(input.as_bytes());
    assert_eq!(item["input_sha256"], json!(digest));
    assert_eq!(item["input_bytes"], json!(input.len()));
    // The list and the event have a summary, and say that it is one.
    let path = format!("/turns/{turn}/approvals");
    let list = api.get(&path).await.expect("an answer").json();
    let listed = &list["approvals"][0];
    assert_eq!(listed["input_json"], Value::Null);
    assert_eq!(listed["input_sha256"], json!(digest));
    assert!(listed["input_summary"].as_str().expect("text").len() < 1_000);
    let events = approvals.setup.engine.events(turn).await;
    let requested = of(&events, "approval.requested").next().expect("a request");
    assert_eq!(requested["payload"]["input_truncated"], json!(true));
    assert_eq!(requested["payload"]["input_bytes"], json!(input.len()));
    assert_eq!(requested["payload"]["input_sha256"], json!(digest));
    // A yes to something else is refused, and nothing runs.
    let answer = |digest: &str| json!({"approval_id": open[0], "decision": "approve", "input_sha256": digest});
    let other = sha256_hex(json!({"note": "groceries"}).to_string().as_bytes());
    let refused = approvals.post(turn, answer(&other)).await;
    let refused = refused.expect("an answer");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (409, "approval_input_mismatch")
    );
    for invalid in ["", "5f", &digest.to_uppercase()] {
        let refused = approvals.post(turn, answer(invalid)).await;
        assert_eq!(refused.expect("an answer").code(), "invalid_request");
    }
    assert_eq!(approvals.notes(), [""; 0]);
    assert_eq!(approvals.open(turn).await, open);
    let next = resumed_turn(&approvals.post(turn, answer(&digest)).await.expect("one"));
    approvals.ended(next).await;
    assert_eq!(approvals.notes(), [json!(note).to_string()]);
    let started = approvals.setup.engine.events(next).await;
    let started = of(&started, "turn.started").next().expect("a start");
    let answered = &started["payload"]["answers"][0];
    assert_eq!(answered["input_sha256"], json!(digest));
    approvals.check_history().await;
}

//
#[tokio::test]
async fn approval_of_another_turn_or_owner_is_not_found() {
    let approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    approvals.wants(&["x"]);
    approvals.says("Done.");
    let (turn, open) = approvals.paused("Once.").await;
    let api = &approvals.setup.engine.api;
    for unknown in ["appr_00000000000000000000000001", "x"] {
        let path = format!("/turns/{turn}/approvals/{unknown}");
        let answer = api.get(&path).await.expect("an answer");
        assert_eq!(answer.code(), "approval_not_found", "{unknown}");
    }
    let eve = approvals.setup.engine.server.api();
    let eve = eve.with("x-turnwire-principal", "eve");
    for id in [open[0].as_str(), "x"] {
        let path = format!("/turns/{turn}/approvals/{id}");
        let answer = eve.get(&path).await.expect("an answer");
        assert_eq!(answer.code(), "turn_not_found", "{id}");
    }
}
