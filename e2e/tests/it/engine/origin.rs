//! Turns started by a timer or a message service on behalf of a user. They run as any other turn
//! and have no chat stream (R-32, S1-121, S2-055).

use serde_json::json;
use turnwire_e2e::chat::MetricsSnapshot;
use turnwire_e2e::engine::{EngineFixture, PRINCIPAL, only, reference};
use turnwire_event::{ResponseId, TurnId};

async fn begun(engine: &EngineFixture, fields: serde_json::Value) -> (u16, serde_json::Value) {
    let mut body = json!({"message": "oat milk offers"});
    if let (Some(body), Some(fields)) = (body.as_object_mut(), fields.as_object()) {
        body.extend(fields.clone());
    }
    let path = format!("/sessions/{}/turns", engine.session);
    let answer = engine.api.post(&path, body).await.expect("an answer");
    (answer.status, answer.json())
}

// R-32, S1-121, S2-055
#[tokio::test]
async fn scheduled_turn_runs_without_chat_stream() {
    let engine = EngineFixture::new(reference()).await;
    let (status, accepted) =
        begun(&engine, json!({"origin": "dm", "dm_type": "daily_digest"})).await;
    assert_eq!(status, 202, "{accepted}");
    let turn = accepted["turn_id"].as_str().expect("an id");
    let turn: TurnId = turn.parse().expect("a turn");
    let ended = engine.api.ended(turn).await.expect("its end");
    assert_eq!(ended["kind"], "scheduled", "{ended}");
    let events = engine.events(turn).await;
    let started = &only(&events, "turn.started")["payload"];
    assert_eq!(
        (&started["kind"], &started["origin"], &started["dm_type"]),
        (&json!("scheduled"), &json!("dm"), &json!("daily_digest"))
    );
    assert_eq!(only(&events, "turn.completed")["payload"]["status"], "ok");
    only(&events, "data.loaded");
    let calls = engine.ccs.calls();
    assert!(!calls.is_empty());
    for call in calls {
        assert_eq!(call.request["principal"], PRINCIPAL);
    }
    let path = format!("/chat/{}/stream", ResponseId::from(turn));
    let refused = engine.api.get(&path).await.expect("an answer");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (409, "streaming_disabled")
    );
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let by = metrics.by("turn_unwatched_total", "dm_type");
    assert_eq!(
        by.get("other"),
        Some(&1),
        "a name that nobody listed: {by:?}"
    );
    engine.check_history().await;
}

#[tokio::test]
async fn message_kind_must_be_an_identifier() {
    let engine = EngineFixture::new(reference()).await;
    for bad in ["", "Daily", "1st", "a b", &"a".repeat(33)] {
        let (status, body) = begun(&engine, json!({"origin": "dm", "dm_type": bad})).await;
        assert_eq!((status, &body["field"]), (422, &json!("dm_type")), "{bad}");
    }
    let (status, body) = begun(&engine, json!({"origin": "cron"})).await;
    assert_eq!(status, 422, "{body}");
}
