//! The status registry over the life of a pack: an added id is shown and stored after the next
//! start, a deprecated one stays readable, and every flow uses the same registry (S1 1.6).

use rustix::process::Signal;
use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, until};
use turnwire_e2e::engine::{EngineFixture, asks, of, only, working};
use turnwire_e2e::probe::{probe, script, tools};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};

const SHOP: &str = "verticals/shop/agent.yaml";
const REGISTRY: &str = "verticals/shop/status_events.yaml";
const NEW_ID: &str = "comparing_offers";

/// Shop emits `ids`, one after the other.
fn emitting(ids: &[&str]) -> ModelScript {
    let emit = |id: &&str| ScriptStep::tool("look_up", json!({"event_id": id}));
    asks(&["shop"], "Here.")
        .call("shop", 1, ids.iter().map(emit))
        .call("shop", 2, [ScriptStep::text("SUBRAW")])
}

/// The pack with [`NEW_ID`] in shop's registry.
fn with_new_id(pack: TestPack, lifecycle: &str) -> TestPack {
    let entry = format!(
        "- id: {NEW_ID}\n  description: It compares.\n  default_render_key: status.{NEW_ID}\n  \
         default_policy: transform\n  emitter_subagents: [shop]\n  {lifecycle}\n"
    );
    let entries = pack.text(REGISTRY).to_owned() + &entry;
    let words = format!("status.{NEW_ID}: {{message: 'Comparing offers...', phrase: comparing}}\n");
    let words = pack.text("locales/en.yaml").to_owned() + &words;
    pack.put(REGISTRY, &entries).put("locales/en.yaml", &words)
}

/// The ids of the stored statuses, without the default status of a silent sub-agent, which a busy
/// machine may put between.
async fn stored_ids(engine: &EngineFixture) -> Vec<Value> {
    let ids = all_stored_ids(engine).await.into_iter();
    ids.filter(|id| id != "searching_offers").collect()
}

async fn all_stored_ids(engine: &EngineFixture) -> Vec<Value> {
    let path = format!("/sessions/{}/events?types=status.emitted", engine.session);
    let answer = engine.api.get(&path).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let events = answer.json()["events"].clone();
    let events = events.as_array().expect("events").clone();
    assert!(events.iter().all(|event| event["type"] == "status.emitted"));
    let ids = events
        .iter()
        .map(|event| event["payload"]["event_id"].clone());
    ids.collect()
}

// S1-072, S1-078
#[tokio::test]
async fn added_status_is_shown_and_stored_after_the_next_start() {
    let mut engine = EngineFixture::new(emitting(&[NEW_ID])).await;
    let pack = TestPack::market(&engine.ccs.url()).script(&emitting(&[NEW_ID]));
    let reply = engine.ask("offers").await;
    let shown: Vec<String> = reply.statuses().into_iter().map(|(id, _)| id).collect();
    assert!(!shown.contains(&NEW_ID.to_owned()), "{shown:?}");
    // Decision 0013: an id that nobody registered is not stored.
    let refused = json!("unregistered");
    assert_eq!(stored_ids(&engine).await, std::slice::from_ref(&refused));

    let added = with_new_id(pack.clone(), "lifecycle: active").change(
        SHOP,
        "emits: [searching_offers]",
        &format!("emits: [searching_offers, {NEW_ID}]"),
    );
    engine.server.repack(added);
    engine.server.restart().await;
    let reply = engine.ask("offers").await;
    let expected = (NEW_ID.to_owned(), "Comparing offers...".to_owned());
    assert!(
        reply.statuses().contains(&expected),
        "{:?}",
        reply.statuses()
    );
    assert_eq!(stored_ids(&engine).await, [refused.clone(), json!(NEW_ID)]);
    // A client of 0.4 knows no `status` and sees the same turn without it.
    let old = ChatSubmit::new("offers").version("0.4");
    let reply = engine.submit(old).await;
    assert_eq!(
        (reply.count("status"), reply.last().event()),
        (0, "completed")
    );

    // No agent may emit it any more; what is stored is still read.
    let deprecated = with_new_id(pack, "lifecycle: deprecated\n  note: Too many words.");
    engine.server.repack(deprecated);
    engine.server.restart().await;
    let stored = [refused, json!(NEW_ID), json!(NEW_ID)];
    assert_eq!(stored_ids(&engine).await, stored);
    engine.check_history().await;
}

// S1-141
#[tokio::test]
async fn every_registered_status_is_stored() {
    let engine = EngineFixture::new(working(asks(&["shop", "rewards", "support"], "All."))).await;
    engine.ask("everything").await;
    let answer = engine.api.get("/status-events").await.expect("an answer");
    let list = answer.json();
    let entries = list["status_events"].as_array().expect("entries").iter();
    let mut registered: Vec<String> = entries.map(|entry| entry["id"].to_string()).collect();
    let stored = all_stored_ids(&engine).await;
    let mut stored: Vec<String> = stored.iter().map(Value::to_string).collect();
    registered.sort();
    stored.sort();
    stored.dedup();
    assert_eq!(stored, registered);
    assert_eq!(stored.len(), 3);
}

// S1-079
#[tokio::test]
async fn turn_without_a_chat_has_the_same_registry() {
    let engine = EngineFixture::new(emitting(&["dm_searching_offers", "searching_offers"])).await;
    for origin in [
        json!({"origin": "scheduled"}),
        json!({"origin": "dm", "dm_type": "daily_digest"}),
    ] {
        let mut body = json!({"message": "offers"});
        let fields = origin.as_object().expect("fields").clone();
        body.as_object_mut().expect("a body").extend(fields);
        let path = format!("/sessions/{}/turns", engine.session);
        let answer = engine.api.post(&path, body).await.expect("an answer");
        assert_eq!(answer.status, 202, "{origin}: {}", answer.body);
        let turn = answer.json()["turn_id"].as_str().expect("an id").parse();
        let turn = turn.expect("a turn");
        engine.api.ended(turn).await.expect("its end");
        let events = engine.events(turn).await;
        assert_eq!(
            only(&events, "turn.started")["payload"]["kind"],
            "scheduled"
        );
        let mut ids: Vec<&Value> = of(&events, "status.emitted")
            .map(|event| &event["payload"]["event_id"])
            .collect();
        // The default status of a silent sub-agent may come a second time.
        ids.sort_by_key(|id| id.to_string());
        ids.dedup();
        assert_eq!(ids, ["searching_offers", "unregistered"], "{origin}");
    }
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(
        metrics.sum("turnwire_status_event_unregistered_id_total"),
        2.0
    );
}

// S1-128
#[tokio::test]
async fn status_ids_refused_at_a_reload_are_counted() {
    const REFUSED: &str = "turnwire_stream_unregistered_event_rejected_total";
    let mut engine = EngineFixture::new(script()).await;
    let refused = |metrics: MetricsSnapshot| metrics.sum(REFUSED);
    engine.ask("offers").await;
    assert_eq!(refused(MetricsSnapshot::read(&engine.api).await), 0.0);
    // One id that nobody registered, and one of another agent.
    let bad = TestPack::market(&engine.ccs.url())
        .script(&script())
        .change(
            SHOP,
            "emits: [searching_offers]",
            "emits: [searching_offers, teleporting_offers, asking_support]",
        );
    engine.server.repack(bad);
    engine.server.signal(Signal::HUP);
    until("the refused pack is counted", || async {
        refused(MetricsSnapshot::read(&engine.api).await) > 0.0
    })
    .await;
    let counted = refused(MetricsSnapshot::read(&engine.api).await);
    assert_eq!(
        counted % 2.0,
        0.0,
        "two for each time it is read: {counted}"
    );
    let reply = engine.ask("offers").await;
    assert_eq!(reply.last().event(), "completed", "the former pack serves");
}

// S2-080
#[tokio::test]
async fn reverted_pack_gives_the_former_tools_and_prompt() {
    let mut engine = EngineFixture::new(script()).await;
    let pack = TestPack::market(&engine.ccs.url()).script(&script());
    let former = probe(&engine).await;
    let smaller = pack
        .clone()
        .change(
            "orchestrator.yaml",
            "[shop, rewards, support]",
            "[shop, rewards]",
        )
        .put("prompts/persona.md", "You are somebody else.\n");
    engine.server.repack(smaller);
    engine.server.restart().await;
    let changed = probe(&engine).await;
    assert!(!tools(&changed).contains(&"ask_support"), "{changed}");
    assert_ne!(changed["system"], former["system"]);
    engine.server.repack(pack);
    engine.server.restart().await;
    let reverted = probe(&engine).await;
    assert_eq!(
        (&reverted["tools"], &reverted["system"]),
        (&former["tools"], &former["system"])
    );
}
