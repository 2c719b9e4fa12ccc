//! Misbehaving models: the same sub-agent twice, invalid input, no text, endless tool calls,
//! oversized data. Every turn ends in order.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged, until};
use turnwire_e2e::data_service::{ServiceReply, envelope, envelope_with};
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, asks, of, only, working};
use turnwire_testkit::data_service::FakeDataService;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

// S2-023, D-78
#[tokio::test]
async fn same_sub_agent_called_twice_runs_twice() {
    let script = ModelScript::new()
        .call(
            ORCHESTRATOR,
            1,
            [
                ScriptStep::tool("ask_shop", json!({"query": "oats"})),
                ScriptStep::tool("ask_shop", json!({"query": "rye"})),
            ],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("Both.")]);
    let engine = EngineFixture::new(working(script)).await;
    let reply = engine.ask("oats and rye").await;
    assert_eq!(
        (reply.text().as_str(), reply.last().event()),
        ("Both.", "completed")
    );
    assert_eq!(
        (reply.count("data_loading"), reply.count("data_loaded")),
        (2, 2)
    );
    let ids: Vec<&Value> = reply
        .of("data_loaded")
        .map(|frame| &frame.field("data")["id"])
        .collect();
    assert_ne!(ids[0], ids[1], "s1_082: two places");
    reply.assert_tools_paired();
    let events = engine.events(reply.turn).await;
    let invocations: Vec<&Value> = of(&events, "subagent.started")
        .map(|e| &e["payload"]["invocation_id"])
        .collect();
    assert_eq!(invocations.len(), 2);
    assert_ne!(invocations[0], invocations[1]);
    let step = &only(&events, "plan.step_completed")["payload"];
    assert_eq!(step["slots"].as_array().map(Vec::len), Some(2), "{step}");
    assert_eq!(
        only(&events, "dispatch.traced")["payload"]["intent_count"],
        2
    );
    engine.check_history().await;
}

// S2-011
#[tokio::test]
async fn sub_agent_with_other_input_shape_gets_user_text() {
    for input in [json!({"query": 7}), json!({"question": "rye"})] {
        let script = ModelScript::new()
            .call(
                ORCHESTRATOR,
                1,
                [ScriptStep::tool("ask_shop", input.clone())],
            )
            .call(ORCHESTRATOR, 2, [ScriptStep::text("Done.")])
            .call(
                "shop",
                1,
                [ScriptStep::tool(
                    "search_offers",
                    json!({"query": "{{user}}"}),
                )],
            )
            .call("shop", 2, [ScriptStep::text("SUBRAW")]);
        let engine = EngineFixture::new(script).await;
        let reply = engine.ask("offers").await;
        assert_eq!(reply.last().event(), "completed", "{input}");
        let query = engine.ccs.params("offer_search")[0]["query"].clone();
        let query = query.as_str().expect("a text");
        let (_, value) = input
            .as_object()
            .and_then(|i| i.iter().next())
            .expect("one");
        let value = value.to_string();
        assert!(query.contains(value.trim_matches('"')), "{input}: {query}");
        engine.check_history().await;
    }
}

// S2-059
#[tokio::test]
async fn sub_agent_without_text_has_not_answered() {
    let script = asks(&["shop"], "I have nothing for you.").call(
        "shop",
        1,
        [ScriptStep::stop("end_turn", 0.0)],
    );
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.text(), "I have nothing for you.");
    let failed = json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"});
    assert_eq!(reply.errors(), [(failed, json!(true))]);
    reply.assert_valid_answer();
    engine.check_history().await;
}

#[tokio::test]
async fn endless_sub_agent_is_stopped_and_turn_answers() {
    let script = asks(&["shop"], "That took too long.").on(
        "about shop",
        [ScriptStep::tool("search_offers", json!({"query": "again"}))],
    );
    let engine = EngineFixture::with(script, |pack| {
        let text = format!("{}limits: {{calls_max: 3}}\n", pack.text("pack.yaml"));
        pack.put("pack.yaml", &text)
    })
    .await;
    let reply = engine.ask("offers").await;
    assert!(reply.last().is_terminal());
    assert_eq!(reply.text(), "That took too long.");
    assert!(
        reply.elapsed < Duration::from_secs(30),
        "{:?}",
        reply.elapsed
    );
    let calls = engine.ccs.calls().len();
    assert!((2..=3).contains(&calls), "{calls} calls");
    reply.assert_valid_answer();
    engine.check_history().await;
}

#[tokio::test]
async fn endless_orchestrator_is_stopped() {
    let script = working(ModelScript::new()).on(
        "^offers$",
        [ScriptStep::tool("ask_shop", json!({"query": "again"}))],
    );
    let engine = EngineFixture::with(script, |pack| {
        let text = format!("{}limits: {{calls_max: 4}}\n", pack.text("pack.yaml"));
        pack.put("pack.yaml", &text)
    })
    .await;
    let reply = engine.ask("offers").await;
    assert!(reply.last().is_terminal(), "{:?}", reply.labels());
    let events = engine.events(reply.turn).await;
    let step_count = of(&events, "plan.step_started").count();
    assert!(step_count <= 8, "{step_count} rounds");
    reply.assert_tools_paired();
    engine.check_history().await;
}

// S1-012, D-15
#[tokio::test]
async fn large_data_frame_is_sent_whole_and_counted() {
    let engine = EngineFixture::new(working(asks(&["shop"], "A lot."))).await;
    let title = "Oat milk, very much of it. ".repeat(6_000);
    let items = json!([{"id": "OFF_1", "title": title}, {"id": "OFF_2", "title": title}]);
    let fields = json!({"payload": {"items": items}});
    let reply = ServiceReply::envelope(&envelope_with("offer_search", &fields));
    engine.ccs.set("offer_search", reply);
    let reply = engine.ask("offers").await;
    assert_eq!((reply.text().as_str(), reply.errors()), ("A lot.", vec![]));
    let loaded = reply.of("data_loaded").next().expect("the data");
    assert!(loaded.text.len() > 256 << 10);
    assert_eq!(loaded.field("data")["items"], items);
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(metrics.sum("turnwire_stream_frame_oversize_total"), 1.0);
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

#[tokio::test]
async fn calls_to_data_services_are_shared_by_owners() {
    let script = working(asks(&["shop"], "Here."));
    let ccs = FakeDataService::start().await;
    let answered = ServiceReply::envelope(&envelope("offer_search"));
    // Three are not answered while the test runs.
    let mut replies = vec![answered.clone().after(600_000); 3];
    replies.push(answered);
    ccs.set_all("offer_search", replies);
    let pack = TestPack::market(&ccs.url()).script(&script);
    let options = ServerOptions::pack(pack)
        .set("tool", "service_calls_max", 4)
        .set("tool", "service_calls_per_owner_max", 4);
    let engine = EngineFixture::on(ccs, options).await;
    let greedy = engine.server.api().with("x-turnwire-principal", "greedy");
    for _ in 0..8 {
        let session = greedy.create().await.expect("a session");
        greedy.submit(session, "offers").await.expect("a turn");
    }
    let count = || engine.ccs.params("offer_search").len();
    until("the greedy owner has its share", || async { count() == 3 }).await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.last().event(), "completed");
    assert_eq!(reply.count("data_loaded"), 1);
    assert_eq!(count(), 4, "the greedy owner has three quarters at most");
}
