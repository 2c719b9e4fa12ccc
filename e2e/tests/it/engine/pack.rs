//! Packs on a running server: invalid packs are refused at start, a turn keeps its bound versions,
//! changed files are loaded or reported, and a vertical is a folder (SC-08, SC-11).

use std::process::{Command, Output};

use serde_json::{Value, json};
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, of, only};
use turnwire_e2e::probe::{asked, probe, script, tools};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer, binary};

/// Runs `turnwire` with these words.
fn turnwire(words: &[&str]) -> Output {
    let done = Command::new(binary()).args(words).output();
    done.expect("the command runs")
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// A pack that must not start, by `serve` and by `check`, with these words in the answer.
async fn refused(name: &str, pack: TestPack, words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("pack");
    pack.write(&dir).expect("written");
    let done = turnwire(&["check", &dir.display().to_string()]);
    let check = said(&done);
    assert_eq!(done.status.code(), Some(1), "{name}: {check}");
    let start = TestServer::try_start(ServerOptions::pack(pack), Journal::new()).await;
    let start = start.err().unwrap_or_else(|| panic!("{name}: it started"));
    assert!(
        start.status.is_some_and(|status| !status.success()),
        "{name}: {start}"
    );
    for word in words {
        assert!(
            check.contains(word),
            "{name}: check does not name {word}: {check}"
        );
        assert!(
            start.stderr.contains(word),
            "{name}: serve does not name {word}: {}",
            start.stderr
        );
    }
}

// SC-08, S1-067, S1-068, S1-070, S1-113
#[tokio::test]
async fn invalid_pack_prevents_start_and_names_the_mistake() {
    let ccs = FakeDataService::start().await;
    let engine = || TestPack::market(&ccs.url()).script(&script());
    let shop = "verticals/shop/agent.yaml";
    let emits = |id: &str| {
        engine().change(
            shop,
            "emits: [searching_offers]",
            &format!("emits: [searching_offers, {id}]"),
        )
    };
    refused(
        "unknown id",
        emits("teleporting_offers"),
        &["teleporting_offers", "shop", shop],
    )
    .await;
    refused(
        "another's id",
        emits("asking_support"),
        &["asking_support", "shop"],
    )
    .await;
    refused(
        "no on_cancel",
        engine().change(shop, "on_cancel: discard\n", ""),
        &["on_cancel", shop],
    )
    .await;
    let twice = engine()
        .text("verticals/shop/status_events.yaml")
        .to_owned();
    let twice = engine().put("platform/status_events.yaml", &twice);
    let files = [
        "searching_offers",
        "platform/status_events.yaml",
        "verticals/shop/status_events.yaml",
    ];
    refused("twice", twice, &files).await;
    refused(
        "a model that nothing serves",
        engine().change(shop, "model: default", "model: 'nowhere:none'"),
        &["unknown provider `nowhere`", shop],
    )
    .await;
    refused(
        "no words",
        engine().put("locales/en.yaml", "status.asking_support: x\n"),
        &["status.searching_offers"],
    )
    .await;
    // All mistakes at once.
    let many = emits("teleporting_offers")
        .change(
            "orchestrator.yaml",
            "sub_agents: [shop",
            "sub_agents: [nobody, shop",
        )
        .change("tools.yaml", "enricher_id: points", "enricher_id: pionts");
    refused("many", many, &["teleporting_offers", "nobody", "pionts"]).await;
    assert_eq!(ccs.calls().len(), 0);
}

// S1-135
#[tokio::test]
async fn removed_status_prevents_the_next_start() {
    let mut engine = EngineFixture::new(script()).await;
    engine.ask("offers").await;
    let pack = TestPack::market(&engine.ccs.url()).script(&script());
    let pack = pack.put("verticals/shop/status_events.yaml", "[]\n");
    engine.server.kill().await;
    engine.server.repack(pack);
    let start = engine.server.run().await;
    let start = start.expect_err("it must not start");
    assert!(
        start.stderr.contains("searching_offers"),
        "{}",
        start.stderr
    );
}

// SC-11, S2-002, S2-003, S2-004, S2-028
#[tokio::test]
async fn model_sees_exactly_the_agents_and_the_cap() {
    let engine = EngineFixture::with(script(), |pack| {
        pack.put("prompts/persona.md", "Ask at most {{cap}} at once.\n")
            .change(
                "verticals/shop/agent.yaml",
                "Knows everything about shop.",
                "'Offers: \"quoted\", **and** verbatim.'",
            )
    })
    .await;
    let request = probe(&engine).await;
    let mut names = tools(&request);
    names.sort_unstable();
    assert_eq!(
        names,
        ["ask_rewards", "ask_shop", "ask_support", "llm_feedback"]
    );
    let described = |name: &str| {
        let tools = request["tools"].as_array().expect("tools");
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .map(|tool| tool["description"].clone())
    };
    assert_eq!(
        described("ask_shop"),
        Some(json!("Offers: \"quoted\", **and** verbatim."))
    );
    assert_eq!(
        described("ask_rewards"),
        Some(json!("Knows everything about rewards."))
    );
    let system = request["system"].as_str().expect("a prompt");
    assert!(system.contains("Ask at most 3 at once."), "{system}");
}

// S2-019
#[tokio::test]
async fn sub_agent_sees_its_tools_and_no_other_agent() {
    let script = ModelScript::new()
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("done")])
        .call(
            "shop",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "{{request}}"}),
            )],
        )
        .call("shop", 2, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::new(script).await;
    engine.ask("offers").await;
    let request = engine.ccs.params("offer_search")[0]["query"].clone();
    let request = asked(request.as_str().expect("the request"));
    let names = tools(&request);
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(
        names.contains(&"search_offers") && names.iter().all(|name| !name.starts_with("ask_")),
        "{names:?}"
    );
    assert!(
        request["system"]
            .as_str()
            .is_some_and(|s| s.contains("You work for")),
        "{request}"
    );
}

// S2-002
#[tokio::test]
async fn flagged_sub_agent_exists_only_for_its_cohort() {
    let engine = EngineFixture::with(script(), |pack| {
        let gated = "[shop, rewards, {id: support, flag: ai_assistant_support}]";
        pack.change("orchestrator.yaml", "[shop, rewards, support]", gated)
            .flag("ai_assistant_support", "{principals: [user-7]}")
    })
    .await;
    assert!(!tools(&probe(&engine).await).contains(&"ask_support"));
    // A model that names the tool anyway gets an error; nothing runs.
    let reply = engine.ask("support").await;
    assert_eq!(reply.last().event(), "completed");
    let events = engine.events(reply.turn).await;
    assert_eq!(of(&events, "subagent.started").count(), 0);
    let failed = &only(&events, "tool.failed")["payload"];
    assert_eq!(failed["error_class"], "invalid_input");
    reply.assert_tools_paired();
    let other = engine.api.clone().with("x-turnwire-principal", "user-7");
    let session = other.create().await.expect("a session");
    let (_, frames) =
        turnwire_e2e::chat::whole(&other, "user-7", &ChatSubmit::new("probe").session(session))
            .await;
    let request = asked(&turnwire_e2e::chat::words(&frames));
    assert!(tools(&request).contains(&"ask_support"));
    let cohort =
        |log: Vec<Value>| only(&log, "turn.started")["payload"]["versions"]["cohort"].clone();
    let mine = engine.log(engine.session).await;
    let mine = cohort(
        mine.into_iter()
            .take_while(|e| e["type"] != "turn.completed")
            .collect(),
    );
    let path = format!("/sessions/{session}/events");
    let other_events = other.get(&path).await.expect("an answer").json()["events"].clone();
    let other_events = cohort(other_events.as_array().expect("events").clone());
    assert_ne!(mine, other_events, "d_20");
}

#[tokio::test]
async fn new_pack_passes_check_and_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("my_pack");
    let text = dir.display().to_string();
    let init = turnwire(&["init", &text]);
    assert!(init.status.success(), "{}", said(&init));
    let check = turnwire(&["check", &text]);
    assert_eq!(check.status.code(), Some(0), "{}", said(&check));
    let again = turnwire(&["init", &text]);
    assert!(!again.status.success(), "it does not write over a pack");
    let ccs = FakeDataService::start().await;
    let pack = TestPack::read(&dir).expect("a pack");
    let engine = EngineFixture::on(ccs, ServerOptions::pack(pack)).await;
    let reply = engine.ask("hello").await;
    assert_eq!(reply.last().event(), "completed", "{:?}", reply.labels());
    assert!(!reply.text().is_empty());
    engine.check_history().await;
}
