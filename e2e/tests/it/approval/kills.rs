//! Tools that wait for a person, and a server that is killed in every step: nothing is asked
//! twice, nothing acts twice, and what was answered stays answered.

use serde_json::json;
use turnwire_e2e::approvals::{Asking, leg};
use turnwire_e2e::engine::of;
use turnwire_testkit::provider::Dialect;

// D-81
#[tokio::test]
async fn kill_between_question_and_answers_resumes() {
    let mut asking = Asking::new(Dialect::Responses).await;
    asking.wants(&["milk", "bread", "salt"]);
    asking.says("Two of them.");
    let (turn, open) = asking.paused("Three things.").await;
    asking.play.stage.server.restart().await;
    let part = asking.answer(turn, &open[0], "approve").await;
    assert_eq!(part.expect("an answer").status, 200);
    asking.play.stage.server.restart().await;
    let again = asking.answer(turn, &open[0], "approve").await;
    let again = again.expect("an answer");
    assert_eq!((again.status, &again.json()["remaining"]), (200, &json!(2)));
    let body = json!({"answers": [
        {"approval_id": open[1], "decision": "reject"},
        {"approval_id": open[2], "decision": "approve"},
    ]});
    let next = leg(&asking.post(turn, body).await.expect("an answer"));
    let row = asking.ended(next).await;
    assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
    let mut notes = asking.notes();
    notes.sort();
    assert_eq!(notes, ["\"milk\"", "\"salt\""]);
    asking.judge().await;
}

#[tokio::test]
async fn kill_after_answer_runs_tool_at_most_once() {
    let mut asking = Asking::new(Dialect::Anthropic).await;
    for round in 0..6_u64 {
        let before = asking.notes().len();
        let message = asking.anew(&format!("round {round}")).await;
        let (turn, open) = asking.paused(&message).await;
        let next = asking.yes(turn, &open[0]).await;
        tokio::time::sleep(std::time::Duration::from_millis(round * 8)).await;
        asking.play.stage.server.restart().await;
        let row = asking.ended(next).await;
        let status = &row["terminal"]["payload"]["status"];
        assert!(status == "ok" || status == "failed", "{row}");
        assert_eq!(asking.yes(turn, &open[0]).await, next, "the same leg");
        let acted = asking.notes().len() - before;
        assert!(acted <= 1, "it acted {acted} times");
        let events = asking.play.stage.events(next).await;
        let called = of(&events, "tool.called").count();
        assert!(acted <= called, "nothing acts before its call is durable");
        asking.play.stage.judge().await;
    }
}

#[tokio::test]
async fn kill_during_answer_is_all_or_nothing() {
    let mut asking = Asking::new(Dialect::Gemini).await;
    for round in 0..6_u64 {
        let before = asking.notes().len();
        let message = asking.anew(&format!("round {round}")).await;
        let (turn, open) = asking.paused(&message).await;
        let path = format!("/turns/{turn}/approvals");
        let api = asking.play.stage.api.clone();
        let body = json!({"approval_id": open[0], "decision": "approve"});
        let answering = tokio::spawn(async move { api.post(&path, body).await.ok() });
        tokio::time::sleep(std::time::Duration::from_millis(round)).await;
        asking.play.stage.server.restart().await;
        let response = answering.await.expect("a task");
        // Asked again: the leg that there is, or the one that is opened now.
        let next = asking.yes(turn, &open[0]).await;
        if let Some(response) = response.filter(|response| response.status == 202) {
            assert_eq!(leg(&response), next);
        }
        asking.ended(next).await;
        let acted = asking.notes().len() - before;
        assert!(acted <= 1, "it acted {acted} times");
        let log = asking.play.stage.log(asking.play.stage.session).await;
        let legs = of(&log, "turn.started").filter(|e| e["payload"]["resumes"] == json!(turn));
        assert_eq!(legs.count(), 1);
        asking.play.stage.judge().await;
    }
}
