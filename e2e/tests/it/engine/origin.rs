//! Turns started by a timer or a message service on behalf of a user. They run as any other turn
//! and have no chat stream (R-32, S1-121, S2-055).

use serde_json::json;
use turnwire_e2e::chat::MetricsSnapshot;
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, PRINCIPAL, only, reference, working};
use turnwire_event::{ResponseId, TurnId};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

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
    let by = metrics.by("turnwire_turn_unwatched_total", "dm_type");
    assert_eq!(
        by.get("other"),
        Some(&1),
        "a name that nobody listed: {by:?}"
    );
    for name in [
        "turnwire_stream_rendering_policy_applied_total",
        "turnwire_dispatch_intents_count",
        "turnwire_stream_writer_overhead_seconds_count",
    ] {
        let by = metrics.by(name, "dm_type");
        assert!(by.contains_key("other"), "{name}: {by:?}");
    }
    engine.check_history().await;
}

/// Starts a turn, which must be accepted.
async fn accepted(engine: &EngineFixture, fields: serde_json::Value) -> TurnId {
    let (status, accepted) = begun(engine, fields).await;
    assert_eq!(status, 202, "{accepted}");
    let turn = accepted["turn_id"].as_str().expect("an id");
    turn.parse().expect("a turn")
}

/// The values of the label `dm_type` of a metric.
async fn counted_kinds(engine: &EngineFixture, name: &str) -> Vec<String> {
    let metrics = MetricsSnapshot::read(&engine.api).await;
    metrics.by(name, "dm_type").into_keys().collect()
}

// S1-133
#[tokio::test]
async fn listed_message_kinds_are_labels_and_others_are_other() {
    let ask = |query: &str| [ScriptStep::tool("ask_shop", json!({"query": query}))];
    let script = ModelScript::new()
        .on_call(ORCHESTRATOR, "^stall", 1, ask("stall"))
        .on_call("shop", "^stall", 1, [ScriptStep::stall()])
        .call(ORCHESTRATOR, 1, ask("oat milk"))
        .call(ORCHESTRATOR, 2, [ScriptStep::text("Here.")]);
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url()).script(&working(script));
    let options = ServerOptions::pack(pack).set("turn", "dm_types", "weekly_digest");
    let mut engine = EngineFixture::on(ccs, options).await;
    for kind in ["weekly_digest", "daily_digest"] {
        let turn = accepted(&engine, json!({"origin": "dm", "dm_type": kind})).await;
        engine.api.ended(turn).await.expect("its end");
    }
    for name in [
        "turnwire_turn_unwatched_total",
        "turnwire_stream_rendering_policy_applied_total",
        "turnwire_dispatch_intents_count",
    ] {
        let kinds = counted_kinds(&engine, name).await;
        assert_eq!(kinds, ["other", "weekly_digest"], "{name}");
    }
    // A turn that a restart cuts off is counted with the kind that is stored with it.
    let fields = json!({"message": "stall", "origin": "dm", "dm_type": "weekly_digest"});
    let turn = accepted(&engine, fields).await;
    engine.reached(turn, "subagent.started").await;
    engine.server.restart().await;
    for name in [
        "turnwire_dispatch_intents_count",
        "turnwire_dispatch_subagent_latency_seconds_count",
    ] {
        assert_eq!(
            counted_kinds(&engine, name).await,
            ["weekly_digest"],
            "{name}"
        );
    }
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
