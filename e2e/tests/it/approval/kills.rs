//! Tools that need approval, with a server that is killed at every step: no approval is requested
//! twice, no tool runs twice, and decisions are kept.

use serde_json::json;
use turnwire_e2e::approvals::{ApprovalFixture, resumed_turn};
use turnwire_e2e::chat::back;
use turnwire_e2e::engine::of;
use turnwire_testkit::provider::Dialect;

// D-81
#[tokio::test]
async fn kill_between_question_and_answers_resumes() {
    let mut approvals = ApprovalFixture::new(Dialect::Responses).await;
    approvals.wants(&["milk", "bread", "salt"]);
    approvals.says("Two of them.");
    let (turn, open) = approvals.paused("Three things.").await;
    approvals.setup.engine.server.restart().await;
    // The end of the paused turn has the questions, and the id of the turn that will continue it.
    let row = approvals.ended(turn).await;
    let paused = row["terminal"]["payload"]["paused"].clone();
    let questions = paused["approvals"].as_array().expect("questions");
    let questions: Vec<_> = questions
        .iter()
        .map(|asked| &asked["approval_id"])
        .collect();
    assert_eq!(json!(questions), json!(open));
    let mut stream = back(&approvals.setup.engine.api, "chat", turn, None).await;
    let frames = stream.read_to_end().await.expect("the paused turn");
    let end = frames.last().expect("a frame");
    assert_eq!(end.event(), "completed");
    let told = end.field("paused").clone();
    assert_eq!(told["approvals"], paused["approvals"]);
    let part = approvals.answer(turn, &open[0], "approve").await;
    assert_eq!(part.expect("an answer").status, 200);
    approvals.setup.engine.server.restart().await;
    let again = approvals.answer(turn, &open[0], "approve").await;
    let again = again.expect("an answer");
    assert_eq!((again.status, &again.json()["remaining"]), (200, &json!(2)));
    let body = json!({"answers": [
        {"approval_id": open[1], "decision": "reject"},
        {"approval_id": open[2], "decision": "approve"},
    ]});
    let next = resumed_turn(&approvals.post(turn, body).await.expect("an answer"));
    assert_eq!(paused["next_turn_id"], json!(next));
    assert_eq!(told["next_response_id"], json!(format!("resp_{next}")));
    let row = approvals.ended(next).await;
    assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
    let mut notes = approvals.notes();
    notes.sort();
    assert_eq!(notes, ["\"milk\"", "\"salt\""]);
    approvals.check_history().await;
}

#[tokio::test]
async fn kill_after_answer_runs_tool_at_most_once() {
    let mut approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    for round in 0..6_u64 {
        let before = approvals.notes().len();
        let message = approvals.anew(&format!("round {round}")).await;
        let (turn, open) = approvals.paused(&message).await;
        let next = approvals.yes(turn, &open[0]).await;
        tokio::time::sleep(std::time::Duration::from_millis(round * 8)).await;
        approvals.setup.engine.server.restart().await;
        let row = approvals.ended(next).await;
        let status = &row["terminal"]["payload"]["status"];
        assert!(status == "ok" || status == "failed", "{row}");
        assert_eq!(approvals.yes(turn, &open[0]).await, next, "the same leg");
        let acted = approvals.notes().len() - before;
        assert!(acted <= 1, "it acted {acted} times");
        let events = approvals.setup.engine.events(next).await;
        let called = of(&events, "tool.called").count();
        assert!(acted <= called, "nothing acts before its call is durable");
        approvals.setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn kill_during_answer_is_all_or_nothing() {
    let mut approvals = ApprovalFixture::new(Dialect::Gemini).await;
    for round in 0..6_u64 {
        let before = approvals.notes().len();
        let message = approvals.anew(&format!("round {round}")).await;
        let (turn, open) = approvals.paused(&message).await;
        let path = format!("/turns/{turn}/approvals");
        let api = approvals.setup.engine.api.clone();
        let body = json!({"approval_id": open[0], "decision": "approve"});
        let answering = tokio::spawn(async move { api.post(&path, body).await.ok() });
        tokio::time::sleep(std::time::Duration::from_millis(round)).await;
        approvals.setup.engine.server.restart().await;
        let response = answering.await.expect("a task");
        // Asked again: the leg that there is, or the one that is opened now.
        let next = approvals.yes(turn, &open[0]).await;
        if let Some(response) = response.filter(|response| response.status == 202) {
            assert_eq!(resumed_turn(&response), next);
        }
        approvals.ended(next).await;
        let acted = approvals.notes().len() - before;
        assert!(acted <= 1, "it acted {acted} times");
        let log = approvals
            .setup
            .engine
            .log(approvals.setup.engine.session)
            .await;
        let legs = of(&log, "turn.started").filter(|e| e["payload"]["resumes"] == json!(turn));
        assert_eq!(legs.count(), 1);
        approvals.setup.engine.check_history().await;
    }
}
