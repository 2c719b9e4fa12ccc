//! Failures are reported as codes and as text for the user: of one sub-agent, several, all of them,
//! their data services, and the composing model (SC-03, SC-04, D-10, D-11).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged};
use turnwire_e2e::data_service::{ServiceReply, envelope_with};
use turnwire_e2e::engine::{EngineFixture, asks, only};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};

const SORRY: &str = "I wasn't able to look that up right now";

/// The data service fails for an enricher.
fn fails(engine: &EngineFixture, enricher: &str, reason: &str) {
    let partial = json!([{"source": "FIDORA", "critical": true, "reason": reason}]);
    let fields = json!({"status": "error", "reason": reason, "partial": partial});
    engine.ccs.set(
        enricher,
        ServiceReply::envelope(&envelope_with(enricher, &fields)),
    );
}

fn envelope_error(enricher: &str, reason: &str) -> Value {
    json!({"code": "CCS_ENVELOPE_ERROR", "enricher_id": enricher, "reason": reason})
}

fn agent_failed(agent: &str) -> Value {
    json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": agent})
}

/// The shop searches, and talks whatever it found.
fn searching() -> ModelScript {
    asks(&["shop"], SORRY)
        .call(
            "shop",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "oat milk"}),
            )],
        )
        .call("shop", 2, [ScriptStep::text("SUBRAW")])
}

// SC-03, S1-095, S2-022, S2-060, S2-083, S2-085, C-27, S1-141, S2-063
#[tokio::test]
async fn failing_data_service_gives_error_and_answer() {
    let engine = EngineFixture::new(searching()).await;
    fails(&engine, "offer_search", "upstream_timeout");
    let reply = engine.ask("oat milk offers").await;
    let expected = envelope_error("offer_search", "upstream_timeout");
    assert_eq!(reply.errors(), [(expected, json!(false))]);
    assert_eq!(
        (reply.text().as_str(), reply.last().event()),
        (SORRY, "completed")
    );
    reply.assert_absent(&["FIDORA", "OFF_1", "SUBRAW", "critical"]);
    reply.assert_valid_answer();
    assert_eq!(engine.ccs.calls().len(), 1, "no second try");
    assert_eq!(engine.axes(reply.turn).await, [(2, false)]);
    let events = engine.events(reply.turn).await;
    let failed = &only(&events, "tool.failed")["payload"];
    assert_eq!(
        (&failed["tool_name"], &failed["error_class"]),
        (&json!("search_offers"), &json!("envelope_error"))
    );
    let completed = &only(&events, "subagent.completed")["payload"];
    assert_eq!(completed["outcome"], "status_error");
    let trace = &only(&events, "dispatch.traced")["payload"];
    assert_eq!(trace["outcomes"][0]["outcome"], "status_error");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let codes = metrics.by("turnwire_stream_error_frame_emitted_total", "code");
    assert_eq!(codes.get("CCS_ENVELOPE_ERROR"), Some(&1));
    let pair = metrics
        .series("turnwire_stream_ccs_error_total")
        .find(|(labels, value)| {
            let has = |name: &str, value: &str| labels.get(name).is_some_and(|v| v == value);
            *value == 1.0 && has("enricher_id", "offer_search") && has("reason", "upstream_timeout")
        });
    assert!(pair.is_some(), "s1_145");
    let axes = metrics.by("turnwire_dispatch_axis_failure_total", "axis");
    assert_eq!(axes.get("2"), Some(&1), "s2_073");
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// S2-040, S2-045
#[tokio::test]
async fn sub_agent_sees_only_unavailable_and_may_use_other_tool() {
    // The script passes the tool result to the other tool, where the test can read it.
    let script = asks(&["shop"], "Here is something else.")
        .call(
            "shop",
            1,
            [ScriptStep::tool("search_offers", json!({"query": "x"}))],
        )
        .call(
            "shop",
            2,
            [ScriptStep::tool(
                "points_balance",
                json!({"told": "{{last_tool_result}}"}),
            )],
        )
        .call("shop", 3, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::with(script, TestPack::with_shared_points).await;
    fails(&engine, "offer_search", "upstream_timeout");
    let reply = engine.ask("oat milk offers").await;
    assert_eq!(
        (reply.count("error"), reply.last().event()),
        (1, "completed")
    );
    let enrichers: Vec<String> = engine.ccs.calls().into_iter().map(|c| c.enricher).collect();
    assert_eq!(enrichers, ["offer_search", "points"]);
    let params = engine.ccs.params("points")[0].to_string();
    assert!(params.contains("data unavailable"), "{params}");
    for word in ["OFF_1", "FIDORA", "upstream"] {
        assert!(!params.contains(word), "{word} in {params}");
    }
    engine.check_history().await;
}

// SC-04, S1-094, S2-021, S2-059, S2-085, S1-141
#[tokio::test]
async fn single_failed_sub_agent_ends_turn_after_text() {
    let chief = || asks(&["shop"], SORRY);
    let stalled = |pack: TestPack| {
        let file = "verticals/shop/agent.yaml";
        let text = format!("{}timeout_ms: 500\n", pack.text(file));
        pack.put(file, &text)
    };
    let half = [ScriptStep::text("SUBRAW"), ScriptStep::error("transport")];
    for (name, script, class) in [
        (
            "broken",
            chief().call("shop", 1, [ScriptStep::error("provider")]),
            "model",
        ),
        ("cut", chief().call("shop", 1, half), "model"),
        (
            "stalled",
            chief().call("shop", 1, [ScriptStep::stall()]),
            "timeout",
        ),
        (
            "busy",
            chief().call("shop", 1, [ScriptStep::tool("nap", json!({"ms": 60_000}))]),
            "timeout",
        ),
    ] {
        let engine = EngineFixture::with(script, |pack| {
            stalled(pack.function("shop", "nap", "sleep"))
        })
        .await;
        let reply = engine.ask("oat milk offers").await;
        assert_eq!(
            reply.errors(),
            [(agent_failed("shop"), json!(true))],
            "{name}"
        );
        reply.assert_order(&[
            "tool_call ask_shop",
            "tool_completed ask_shop",
            "text",
            "error",
        ]);
        assert_eq!(reply.text(), SORRY, "{name}");
        reply.assert_absent(&["SUBRAW"]);
        reply.assert_valid_answer();
        assert_eq!(engine.axes(reply.turn).await, [(1, true)], "{name}");
        let events = engine.events(reply.turn).await;
        let failed = &only(&events, "subagent.failed")["payload"];
        assert_eq!(failed["error_class"], class, "{name}");
        let end = &only(&events, "turn.completed")["payload"];
        assert_eq!(
            (&end["status"], &end["error"]),
            (&json!("failed"), &agent_failed("shop")),
            "{name}"
        );
        assert!(
            reply.elapsed < Duration::from_secs(20),
            "{name}: {:?}",
            reply.elapsed
        );
        engine.check_history().await;
    }
}

// S1-092, S1-096, S2-061, S2-083, S2-085, S1-141
#[tokio::test]
async fn three_sub_agents_fail_empty_and_answer_independently() {
    let script = asks(
        &["shop", "rewards", "support"],
        "Support says: {{result.ask_support.text}}. The rest I could not get.",
    )
    .call("shop", 1, [ScriptStep::error("provider")])
    .call(
        "rewards",
        1,
        [ScriptStep::tool("points_balance", json!({}))],
    )
    .call("rewards", 2, [ScriptStep::text("SUBRAW of rewards")])
    .call(
        "support",
        1,
        [ScriptStep::tool("support_answer", json!({}))],
    )
    .call("support", 2, [ScriptStep::text("wait a day")]);
    let engine = EngineFixture::new(script).await;
    fails(&engine, "points", "unauthorized");
    let reply = engine.ask("everything").await;
    assert_eq!(
        reply.text(),
        "Support says: wait a day. The rest I could not get."
    );
    let errors = reply.errors();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors.iter().all(|(_, last)| last == &json!(false)));
    let (all, each) = errors.split_last().expect("errors");
    let one = |error: Value| each.iter().any(|(known, _)| *known == error);
    assert!(
        one(agent_failed("shop")) && one(envelope_error("points", "unauthorized")),
        "{each:?}"
    );
    assert_eq!(all.0["code"], "PARTIAL_FAN_OUT");
    let mut failed = all.0["failed"].as_array().expect("records").clone();
    failed.sort_by_key(|record| record["code"].to_string());
    assert_eq!(
        failed,
        [
            envelope_error("points", "unauthorized"),
            agent_failed("shop")
        ]
    );
    assert_eq!(
        (reply.count("completed"), reply.last().event()),
        (1, "completed")
    );
    reply.assert_valid_answer();
    let mut counted = engine.axes(reply.turn).await;
    counted.sort_unstable();
    assert_eq!(counted, [(1, false), (2, false), (3, false)]);
    let events = engine.events(reply.turn).await;
    assert_eq!(
        only(&events, "turn.completed")["payload"]["status"],
        "degraded"
    );
    let trace = &only(&events, "dispatch.traced")["payload"];
    let outcome = |id: &str| {
        let outcome = trace["outcomes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|o| o["sub_agent_id"] == id);
        outcome.map(|o| o["outcome"].clone()).unwrap_or_default()
    };
    assert_eq!(
        [outcome("shop"), outcome("rewards"), outcome("support")],
        ["failure", "status_error", "success"]
    );
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let counted = metrics.by("turnwire_dispatch_axis_failure_total", "axis");
    assert_eq!(
        (counted.get("1"), counted.get("2"), counted.get("3")),
        (Some(&1), Some(&1), Some(&1))
    );
    engine.check_history().await;
}

// S1-096, D-11
#[tokio::test]
async fn all_sub_agents_failing_degrades_turn_with_text() {
    let script = asks(&["shop", "rewards"], SORRY)
        .call("shop", 1, [ScriptStep::error("provider")])
        .call("rewards", 1, [ScriptStep::error("timeout")]);
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("offers and points").await;
    assert_eq!(
        (reply.text().as_str(), reply.last().event()),
        (SORRY, "completed")
    );
    let codes: Vec<Value> = reply
        .errors()
        .into_iter()
        .map(|(error, _)| error["code"].clone())
        .collect();
    assert_eq!(
        codes,
        ["SUB_AGENT_FAILED", "SUB_AGENT_FAILED", "PARTIAL_FAN_OUT"]
    );
    reply.assert_valid_answer();
    let events = engine.events(reply.turn).await;
    assert_eq!(
        only(&events, "turn.completed")["payload"]["status"],
        "degraded"
    );
    assert_eq!(
        only(&events, "plan.step_completed")["payload"]["status"],
        "failed"
    );
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(
        metrics.sum("turnwire_dispatch_fanout_success_ratio_sum"),
        0.0
    );
    engine.check_history().await;
}
