//! Several sub-agents in parallel: their statuses may be batched, calls above the cap are not run,
//! and one failure does not affect the others (SC-02, SC-14, S2 2.3).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged};
use turnwire_e2e::data_service::{ServiceReply, envelope};
use turnwire_e2e::engine::{ChatReply, EngineFixture, ORCHESTRATOR, asks, of, only, working};
use turnwire_testkit::script::{ModelScript, ScriptStep};

const BOTH: &str = "{{result.ask_shop.text}} and {{result.ask_rewards.text}}";

/// The data service takes so long for an enricher.
fn takes(engine: &EngineFixture, enricher: &str, ms: u64) {
    engine.ccs.set(
        enricher,
        ServiceReply::envelope(&envelope(enricher)).after(ms),
    );
}

/// How far apart the requests came.
fn spread(engine: &EngineFixture) -> Duration {
    let times: Vec<_> = engine.ccs.calls().iter().map(|call| call.arrived).collect();
    let (first, last) = (times.iter().min(), times.iter().max());
    last.expect("a call")
        .duration_since(*first.expect("a call"))
}

/// The trace of a turn.
async fn traced(engine: &EngineFixture, reply: &ChatReply) -> Value {
    let events = engine.events(reply.turn).await;
    only(&events, "dispatch.traced")["payload"].clone()
}

// serial: two sub-agents of one second each within 1.9 s
// S2-023, S2-024, S2-032, S2-083
#[tokio::test]
async fn two_one_second_sub_agents_take_one_second() {
    let engine = EngineFixture::new(working(asks(&["shop", "rewards"], BOTH))).await;
    takes(&engine, "offer_search", 1_000);
    takes(&engine, "points", 1_000);
    let reply = engine.ask("offers and points").await;
    println!(
        "two sub-agents of 1 s at once: the turn took {:?}",
        reply.elapsed
    );
    assert!(reply.elapsed >= Duration::from_secs(1));
    assert!(
        reply.elapsed < Duration::from_millis(1_900),
        "{:?}",
        reply.elapsed
    );
    assert_eq!(engine.ccs.calls().len(), 2);
    assert!(
        spread(&engine) < Duration::from_millis(300),
        "{:?}",
        spread(&engine)
    );
    assert_eq!(
        reply.text(),
        "SUBRAW of shop and SUBRAW of rewards",
        "s2_087: composed of both"
    );
    reply.assert_tools_paired();
    let events = engine.events(reply.turn).await;
    let at = |kind: &str, agent: &str| {
        let index = events
            .iter()
            .position(|e| e["type"] == kind && e["payload"]["sub_agent_id"] == agent);
        index.unwrap_or_else(|| panic!("no {kind} of {agent}"))
    };
    for (one, other) in [("shop", "rewards"), ("rewards", "shop")] {
        assert!(
            at("subagent.started", one) < at("subagent.completed", other),
            "they overlap"
        );
    }
    let step = &only(&events, "plan.step_started")["payload"];
    assert_eq!(step["expected_subagents"], json!(["shop", "rewards"]));
    assert_eq!((&step["cap"], &step["dropped"]), (&json!(3), &json!([])));
    let id = format!("turn-{}-1", reply.turn);
    assert_eq!(step["plan_step_id"], json!(id), "d_78");
    assert_eq!(
        only(&events, "plan.step_completed")["payload"]["status"],
        "success"
    );
    let trace = traced(&engine, &reply).await;
    assert_eq!(
        (&trace["intent_count"], &trace["cap_behavior"]),
        (&json!(2), &json!("within"))
    );
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(
        metrics.sum("turnwire_dispatch_fanout_success_ratio_count"),
        1.0
    );
    assert_eq!(
        metrics
            .by(
                "turnwire_dispatch_subagent_latency_seconds_count",
                "sub_agent_id"
            )
            .len(),
        2,
        "s2_069"
    );
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// serial: three sub-agents at once within 1.1 s
// S2-026, S2-034
#[tokio::test]
async fn three_at_the_cap_run_and_are_reported() {
    let answer = format!("{BOTH} and {{{{result.ask_support.text}}}}");
    let engine = EngineFixture::new(working(asks(&["shop", "rewards", "support"], &answer))).await;
    for enricher in ["offer_search", "points", "answers"] {
        takes(&engine, enricher, 400);
    }
    let reply = engine.ask("everything").await;
    println!(
        "three sub-agents of 0.4 s at once: the turn took {:?}",
        reply.elapsed
    );
    assert!(
        reply.elapsed < Duration::from_millis(1_100),
        "{:?}",
        reply.elapsed
    );
    assert!(
        spread(&engine) < Duration::from_millis(300),
        "{:?}",
        spread(&engine)
    );
    for agent in ["shop", "rewards", "support"] {
        assert!(
            reply.text().contains(&format!("SUBRAW of {agent}")),
            "{}",
            reply.text()
        );
    }
    let trace = traced(&engine, &reply).await;
    assert_eq!(
        (&trace["intent_count"], &trace["cap_behavior"]),
        (&json!(3), &json!("at"))
    );
    assert_eq!(trace["dropped"], json!([]));
    assert_eq!(trace["outcomes"].as_array().map(Vec::len), Some(3));
    assert_eq!(reply.count("status"), 3);
    engine.check_history().await;
}

// S2-025
#[tokio::test]
async fn answer_waits_for_slow_sub_agent_and_uses_both() {
    let engine = EngineFixture::new(working(asks(&["shop", "rewards"], BOTH))).await;
    takes(&engine, "offer_search", 50);
    takes(&engine, "points", 900);
    let reply = engine.ask("offers and points").await;
    assert_eq!(reply.text(), "SUBRAW of shop and SUBRAW of rewards");
    reply.assert_order(&[
        "tool_completed ask_shop",
        "tool_completed points_balance",
        "tool_completed ask_rewards",
        "text",
    ]);
    let events = engine.events(reply.turn).await;
    let ends: Vec<&Value> = of(&events, "subagent.completed")
        .map(|e| &e["payload"]["sub_agent_id"])
        .collect();
    assert_eq!(ends, ["shop", "rewards"]);
    let latency = of(&events, "subagent.completed")
        .map(|e| e["payload"]["latency_ms"].as_u64().expect("a number"));
    let latency: Vec<u64> = latency.collect();
    assert!(latency[0] < 700 && latency[1] >= 900, "{latency:?}");
    engine.check_history().await;
}

// SC-14, S2-027, S2-029, S2-085, I-16
#[tokio::test]
async fn sub_agents_over_the_cap_get_a_result_without_running() {
    let third = "{{result.ask_support}} / {{result.ask_shop.text}} / {{result.ask_rewards.text}}";
    let script = working(asks(&["shop", "rewards", "support"], third));
    let engine =
        EngineFixture::with(script, |pack| pack.change("pack.yaml", "cap: 3", "cap: 2")).await;
    let reply = engine.ask("everything").await;
    assert!(reply.text().starts_with("not executed"), "{}", reply.text());
    assert!(
        reply.text().ends_with("SUBRAW of shop / SUBRAW of rewards"),
        "{}",
        reply.text()
    );
    let enrichers: Vec<String> = engine
        .ccs
        .calls()
        .into_iter()
        .map(|call| call.enricher)
        .collect();
    assert!(!enrichers.contains(&"answers".to_owned()), "{enrichers:?}");
    let events = engine.events(reply.turn).await;
    assert_eq!(of(&events, "subagent.started").count(), 2);
    let support = |e: &&Value| e["payload"]["tool_name"] == "ask_support";
    assert_eq!(of(&events, "tool.called").filter(support).count(), 0);
    reply.assert_tools_paired();
    assert!(
        !reply
            .labels()
            .iter()
            .any(|label| label.contains("ask_support")),
        "no orphan on the wire"
    );
    let trace = &only(&events, "dispatch.traced")["payload"];
    assert_eq!(
        (&trace["intent_count"], &trace["cap"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(
        (&trace["cap_behavior"], &trace["dropped"]),
        (&json!("over"), &json!(["support"]))
    );
    let step = &only(&events, "plan.step_started")["payload"];
    assert_eq!(step["dropped"], json!(["support"]));
    assert_eq!(reply.last().event(), "completed");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(metrics.sum("turnwire_dispatch_cap_exceeded_total"), 1.0);
    engine.check_history().await;
}

// S2-030, S2-031, S2-089
#[tokio::test]
async fn fatal_sub_agent_failure_leaves_siblings_running() {
    let script = asks(
        &["shop", "rewards"],
        "I have your points: {{result.ask_rewards.text}}. The offers I could not get.",
    )
    .call(
        "shop",
        1,
        [ScriptStep::tool(
            "boom",
            json!({"fatal": true, "message": "MARKER"}),
        )],
    )
    .call("shop", 2, [ScriptStep::text("SUBRAW of shop")])
    .call(
        "rewards",
        1,
        [ScriptStep::tool("points_balance", json!({}))],
    )
    .call("rewards", 2, [ScriptStep::text("1240")]);
    let engine = EngineFixture::with(script, |pack| pack.function("shop", "boom", "fail")).await;
    takes(&engine, "points", 300);
    let reply = engine.ask("offers and points").await;
    assert_eq!(
        reply.text(),
        "I have your points: 1240. The offers I could not get."
    );
    reply.assert_absent(&["MARKER", "SUBRAW"]);
    reply.assert_tools_paired();
    let failed = json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"});
    let all = json!({"code": "PARTIAL_FAN_OUT", "failed": [failed]});
    assert_eq!(
        reply.errors(),
        [(failed, json!(false)), (all, json!(false))]
    );
    // The failure is reported at once, not after the sibling.
    reply.assert_order(&[
        "tool_completed ask_shop",
        "error",
        "tool_completed ask_rewards",
        "error",
        "text",
        "completed",
    ]);
    let events = engine.events(reply.turn).await;
    let failed = &only(&events, "subagent.failed")["payload"];
    assert_eq!(
        (&failed["sub_agent_id"], &failed["error_class"]),
        (&json!("shop"), &json!("tool"))
    );
    assert_eq!(
        only(&events, "subagent.completed")["payload"]["outcome"],
        "success"
    );
    assert_eq!(
        only(&events, "plan.step_completed")["payload"]["status"],
        "partial_failure"
    );
    assert_eq!(
        only(&events, "turn.completed")["payload"]["status"],
        "degraded"
    );
    engine.check_history().await;
}

// S2-089
#[tokio::test]
async fn recoverable_tool_failure_returns_to_its_model() {
    let script = asks(&["shop"], "{{result.ask_shop.text}}")
        .call(
            "shop",
            1,
            [ScriptStep::tool("boom", json!({"message": "not today"}))],
        )
        .call(
            "shop",
            2,
            [ScriptStep::text("was told: {{last_tool_result}}")],
        );
    let engine = EngineFixture::with(script, |pack| pack.function("shop", "boom", "fail")).await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.text(), "was told: not today");
    assert_eq!(
        (reply.errors(), reply.last().event()),
        (vec![], "completed")
    );
    let events = engine.events(reply.turn).await;
    assert_eq!(
        only(&events, "subagent.completed")["payload"]["outcome"],
        "success"
    );
    assert_eq!(
        only(&events, "tool.failed")["payload"]["error_class"],
        "internal"
    );
    engine.check_history().await;
}

// S2-009, S2-020, D-26
#[tokio::test]
async fn model_alone_chooses_the_sub_agents() {
    let script = ModelScript::new()
        .on_call(
            ORCHESTRATOR,
            "^nobody",
            1,
            [ScriptStep::text("I know that myself.")],
        )
        .on_call(
            ORCHESTRATOR,
            "^points",
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
        )
        .on_call(
            ORCHESTRATOR,
            "^twice",
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
        )
        .on_call(
            ORCHESTRATOR,
            "^twice",
            2,
            [ScriptStep::tool("ask_rewards", json!({"query": "x"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("Done.")])
        .call(ORCHESTRATOR, 3, [ScriptStep::text("Done.")]);
    let engine = EngineFixture::new(working(script)).await;
    // The intents are those of the response with the most: one response asked for one at a time.
    for (message, agents, steps, intents) in [
        ("nobody", vec![], 0, 0),
        ("points", vec!["shop"], 1, 1),
        ("twice", vec!["shop", "rewards"], 2, 1),
    ] {
        let reply = engine.ask(message).await;
        let events = engine.events(reply.turn).await;
        let trace = &only(&events, "dispatch.traced")["payload"];
        assert_eq!(trace["sub_agents_invoked"], json!(agents), "{message}");
        assert_eq!(trace["intent_count"], json!(intents), "{message}");
        assert_eq!(trace["cap_behavior"], "within");
        assert_eq!(of(&events, "plan.step_started").count(), steps, "{message}");
        assert_eq!(reply.last().event(), "completed");
    }
    engine.check_history().await;
}
