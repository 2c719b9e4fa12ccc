//! A pack that changes on a running server: turns in flight keep their bound versions, an invalid
//! change is reported and not loaded, and a new vertical needs only files (SC-11, S2-001, S2-010).

use rustix::process::Signal;
use serde_json::{Value, json};
use turnwire_e2e::chat::{say, until};
use turnwire_e2e::data_service::{ServiceReply, envelope};
use turnwire_e2e::engine::{EngineFixture, only};
use turnwire_e2e::probe::{asked, probe, script, tools};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;

/// A pack without support, and with other words for shop.
fn smaller(engine: &EngineFixture) -> TestPack {
    TestPack::market(&engine.ccs.url())
        .script(&script())
        .change(
            "orchestrator.yaml",
            "[shop, rewards, support]",
            "[shop, rewards]",
        )
        .change(
            "verticals/shop/agent.yaml",
            "Knows everything about shop.",
            "Knows the new shop.",
        )
}

/// Starts a turn that waits for its data, changes the pack meanwhile, waits until new turns see
/// the change, and gives what the second call of the old turn was shown.
async fn changed(engine: &mut EngineFixture, signal: Option<Signal>) -> Value {
    engine.ccs.set(
        "offer_search",
        ServiceReply::envelope(&envelope("offer_search")).after(4_000),
    );
    let api = engine.api.clone();
    let question = ChatSubmit::new("offers").session(engine.session);
    let mut stream = say(&api, "in flight", &question).await;
    until("the data service is asked", || async {
        !engine.ccs.calls().is_empty()
    })
    .await;
    let smaller = smaller(engine);
    engine.server.repack(smaller);
    if let Some(signal) = signal {
        engine.server.signal(signal);
    }
    until("the change is taken", || async {
        let request = probe(engine).await;
        !tools(&request).contains(&"ask_support")
            && request.to_string().contains("Knows the new shop.")
    })
    .await;
    assert!(
        engine.ccs.calls()[0].answered.is_none(),
        "the old turn is still at work"
    );
    let frames = stream.read_to_end().await.expect("an end");
    asked(&turnwire_e2e::chat::words(&frames))
}

// SC-11, S2-001
#[tokio::test]
async fn running_turn_keeps_its_tools_when_files_change() {
    let mut engine = EngineFixture::new(script()).await;
    let old = changed(&mut engine, None).await;
    assert!(tools(&old).contains(&"ask_support"), "{old}");
    assert!(
        old.to_string().contains("Knows everything about shop."),
        "{old}"
    );
    let new = probe(&engine).await;
    assert!(!tools(&new).contains(&"ask_support"), "s2_080");
    engine.check_history().await;
}

// SC-11, S2-001
#[tokio::test]
async fn hangup_reloads_at_once_and_broken_pack_is_rejected() {
    let mut engine = EngineFixture::new(script()).await;
    let old = changed(&mut engine, Some(Signal::HUP)).await;
    assert!(tools(&old).contains(&"ask_support"), "{old}");
    let before = probe(&engine).await;
    let broken = smaller(&engine).change(
        "verticals/shop/agent.yaml",
        "on_cancel: discard",
        "on_cancle: discard",
    );
    let seen = engine.server.stderr().len();
    engine.server.repack(broken);
    engine.server.signal(Signal::HUP);
    until("the mistake is told", || async {
        let stderr = engine.server.stderr();
        let new = stderr.get(seen..).unwrap_or_default();
        new.contains("verticals/shop/agent.yaml") && new.contains("on_cancle")
    })
    .await;
    let after = probe(&engine).await;
    assert_eq!(tools(&after), tools(&before), "it goes on with what it had");
    let mended = TestPack::market(&engine.ccs.url()).script(&script());
    engine.server.repack(mended);
    engine.server.signal(Signal::HUP);
    until("the mended pack is taken", || async {
        tools(&probe(&engine).await).contains(&"ask_support")
    })
    .await;
    engine.check_history().await;
}

const GARDEN: &str = "\
id: garden
version: '1'
kind: sub_agent
description: Knows plants.
model: default
prompt_blocks: [worker]
tools: []
emits: []
on_cancel: discard
";

// S2-010
#[tokio::test]
async fn new_vertical_needs_files_and_no_restart() {
    let mut engine = EngineFixture::new(script()).await;
    let pack = TestPack::market(&engine.ccs.url())
        .script(&script())
        .put("verticals/garden/agent.yaml", &GARDEN.replace("tools: []", "tools: [now]"))
        .change("tools.yaml", "tools:\n", "tools:\n  - {name: now, connector: direct, function: clock, description: Tells the time.}\n")
        .change("orchestrator.yaml", "[shop, rewards, support]", "[shop, rewards, support, garden]");
    engine.server.repack(pack);
    engine.server.signal(Signal::HUP);
    until("the garden is there", || async {
        tools(&probe(&engine).await).contains(&"ask_garden")
    })
    .await;
    let reply = engine.ask("garden").await;
    reply.assert_order(&[
        "tool_call ask_garden",
        "tool_call now",
        "tool_completed now",
        "tool_completed ask_garden",
        "text",
        "completed",
    ]);
    let events = engine.events(reply.turn).await;
    assert_eq!(
        only(&events, "dispatch.traced")["payload"]["sub_agents_invoked"],
        json!(["garden"])
    );
    engine.check_history().await;
}
