//! Statuses of several sub-agents batched into one sentence, while a flag is on (SC-02).

use serde_json::Value;
use turnwire_e2e::chat::MetricsSnapshot;
use turnwire_e2e::data_service::{ServiceReply, envelope};
use turnwire_e2e::engine::{EngineFixture, asks, json_of, of, working};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::watch::SubscribeOptions;

const FLAG: &str = "ai_assistant_batch_status";

/// The data service takes so long for an enricher.
fn takes(engine: &EngineFixture, enricher: &str, ms: u64) {
    engine.ccs.set(
        enricher,
        ServiceReply::envelope(&envelope(enricher)).after(ms),
    );
}

/// Statuses wait for each other as long as a busy machine may need between them.
fn batched(pack: TestPack) -> TestPack {
    let limits = "fan_out: {cap: 3}\nlimits: {status_window_ms: 1000}";
    let pack = pack.change("pack.yaml", "fan_out: {cap: 3}", limits);
    let ids = "searching_offers: {policy: batch}, looking_up_points_balance: {policy: batch}";
    pack.flag(FLAG, "true")
        .put("overrides.yaml", &format!("{FLAG}: {{{ids}}}\n"))
}

// SC-02, S1-056, S1-057, S1-061, S1-136, S2-033
#[tokio::test]
async fn statuses_are_batched_while_the_flag_is_on() {
    let script = working(asks(&["shop", "rewards"], "Both."));
    let mut engine = EngineFixture::with(script.clone(), batched).await;
    for enricher in ["offer_search", "points"] {
        takes(&engine, enricher, 600);
    }
    let mut full = engine.watch("full", SubscribeOptions::live()).await;
    let reply = engine.ask("offers and points").await;
    let seen = json_of(&full.turn(reply.turn).await.expect("the turn"));
    let status: Vec<&Value> = reply.of("status").map(|f| f.field("data")).collect();
    assert_eq!(status.len(), 1, "{status:?}");
    let mut ids: Vec<&str> = status[0]["event_ids"]
        .as_array()
        .expect("ids")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(status[0]["event_id"], ids[0], "d_12");
    ids.sort_unstable();
    assert_eq!(ids, ["looking_up_points_balance", "searching_offers"]);
    let message = status[0]["message"].as_str().expect("a sentence");
    let lower = message.to_lowercase();
    assert!(
        lower.contains("searching for offers") && lower.contains("looking up your points"),
        "{message}"
    );
    assert!(
        lower.contains(" and ") && message.ends_with('…'),
        "{message}"
    );
    assert!(message.starts_with(char::is_uppercase), "{message}");
    assert_eq!(of(&seen, "status.emitted").count(), 2, "{seen:?}");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(
        metrics
            .by("turnwire_stream_rendering_policy_applied_total", "policy")
            .get("batch"),
        Some(&2)
    );
    engine.check_history().await;
    // The flag goes, the server comes back, and so does the default.
    let plain = TestPack::market(&engine.ccs.url()).script(&script);
    engine.server.repack(plain);
    engine.server.restart().await;
    let mut full = engine.watch("full again", SubscribeOptions::live()).await;
    let reply = engine.ask("offers and points").await;
    let seen = json_of(&full.turn(reply.turn).await.expect("the turn"));
    let emitted: Vec<&Value> = of(&seen, "status.emitted")
        .map(|e| &e["payload"]["event_id"])
        .collect();
    assert_eq!(emitted.len(), 2);
    let status_ids: Vec<String> = reply.statuses().into_iter().map(|(id, _)| id).collect();
    assert_eq!(
        status_ids,
        emitted
            .iter()
            .filter_map(|id| id.as_str())
            .collect::<Vec<_>>()
    );
    engine.check_history().await;
}

// S1-057
#[tokio::test]
async fn batched_status_is_in_the_users_language() {
    let engine = EngineFixture::with(working(asks(&["shop", "rewards"], "Beides.")), batched).await;
    for enricher in ["offer_search", "points"] {
        takes(&engine, enricher, 600);
    }
    let question = turnwire_testkit::chat::ChatSubmit::new("beides").field("locale", "de");
    let reply = engine.submit(question).await;
    let statuses = reply.statuses();
    assert_eq!(statuses.len(), 1, "{statuses:?}");
    let message = &statuses[0].1;
    assert!(
        message.contains("Angebote werden gesucht") && message.contains(" und "),
        "{message}"
    );
    assert!(message.contains("unkte werden nachgesehen"), "{message}");
}
