//! Ownership of data: the session's principal is sent with every request and must be in every
//! response, which is checked before any other field (SC-15, S2 2.5).

use serde_json::{Value, json};
use turnwire_e2e::chat::MetricsSnapshot;
use turnwire_e2e::data_service::{ServiceReply, envelope_with};
use turnwire_e2e::engine::{EngineFixture, asks, only, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::ScriptStep;

const SORRY: &str = "I could not get that for you.";
const MISMATCH: &str = "turnwire_ps6_envelope_principal_mismatch_total";

fn for_another() -> ServiceReply {
    ServiceReply::envelope(&envelope_with(
        "offer_search",
        &json!({"principal": "user-99"}),
    ))
}

/// One mismatch is counted and logged as a matter of security, and not even the log has the data.
async fn alarmed(engine: &EngineFixture) {
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(
        metrics.by(MISMATCH, "consumer").get("consumer-agent"),
        Some(&1)
    );
    let log = engine.server.stderr();
    let alarms: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("security"))
        .collect();
    assert_eq!(alarms.len(), 1, "{log}");
    assert!(alarms[0].contains("ERROR"), "{}", alarms[0]);
    assert!(
        !log.contains("OFF_1") && !log.contains("Granola"),
        "nor does the log have it"
    );
}

// SC-15, S2-050, S2-051, D-30, S2-085, I-06
#[tokio::test]
async fn data_of_another_principal_is_dropped_and_alarmed() {
    // The sub-agent's model repeats its tool results as parameters of its next tool, and the
    // orchestrator's model in its text.
    let script = asks(&["shop"], "{{last_tool_result}}")
        .call(
            "shop",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "oat milk"}),
            )],
        )
        .call(
            "shop",
            2,
            [ScriptStep::tool(
                "points_balance",
                json!({"told": "{{request}}"}),
            )],
        )
        .call("shop", 3, [ScriptStep::text("it was: {{request}}")]);
    let engine = EngineFixture::with(script, TestPack::with_shared_points).await;
    engine.ccs.set("offer_search", for_another());
    let reply = engine.ask("oat milk offers").await;
    let error = json!({"code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": "unauthorized"});
    assert_eq!(reply.errors(), [(error, json!(false))]);
    assert_eq!(reply.last().event(), "completed");
    assert!(!reply.text().is_empty());
    reply.assert_absent(&["OFF_1", "Oat milk", "user-99", "mismatch"]);
    let calls = engine.ccs.calls();
    let count = calls
        .iter()
        .filter(|call| call.enricher == "offer_search")
        .count();
    assert_eq!(count, 1, "no second try");
    let params = engine.ccs.params("points")[0].to_string();
    assert!(params.contains("data unavailable"), "{params}");
    for marker in ["OFF_1", "Granola", "user-99"] {
        assert!(
            !params.contains(marker),
            "the model was shown {marker}: {params}"
        );
    }
    let events = engine.events(reply.turn).await;
    let text = json!(events).to_string() + &json!(engine.messages().await).to_string();
    for marker in ["OFF_1", "Granola", "user-99"] {
        assert!(!text.contains(marker), "{marker} is stored: {text}");
    }
    let failed = &only(&events, "tool.failed")["payload"];
    assert_eq!(failed["error_class"], "principal_mismatch");
    alarmed(&engine).await;
    engine.check_history().await;
}

// S2-050
#[tokio::test]
async fn missing_or_malformed_principal_is_a_mismatch() {
    let engine = EngineFixture::new(working(asks(&["shop"], SORRY))).await;
    let principals = [
        Value::Null,
        json!(""),
        json!(42),
        json!("USER-42"),
        json!("user-42 "),
        json!(["user-42"]),
    ];
    for (before, principal) in principals.iter().enumerate() {
        let reply = ServiceReply::envelope(&envelope_with(
            "offer_search",
            &json!({"principal": principal}),
        ));
        engine.ccs.set("offer_search", reply);
        let reply = engine.ask("offers").await;
        assert_eq!(
            reply.errors()[0].0["code"],
            "CCS_ENVELOPE_ERROR",
            "{principal}"
        );
        assert_eq!(reply.text(), SORRY, "{principal}");
        reply.assert_no_data(&principal.to_string());
        reply.assert_absent(&["OFF_1"]);
        assert!(
            reply.errors()[0].0["reason"] != "upstream_timeout",
            "{before}"
        );
    }
    // An error for another principal is not read either: its reason is not reported.
    let fields = json!({"principal": "user-99", "status": "error", "reason": "upstream_partial"});
    engine.ccs.set(
        "offer_search",
        ServiceReply::envelope(&envelope_with("offer_search", &fields)),
    );
    let reply = engine.ask("offers").await;
    assert_eq!(reply.errors()[0].0["reason"], "unauthorized");
    engine.check_history().await;
}

// SC-15, S2-046, S2-047, S2-048, S2-083, I-06
#[tokio::test]
async fn every_data_request_carries_session_principal() {
    let script = asks(&["shop", "rewards", "support"], SORRY)
        .call(
            "shop",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"principal": "user-99", "user_id": "user-99", "query": "x"}),
            )],
        )
        .call("shop", 2, [ScriptStep::text("SUBRAW")])
        .call(
            "rewards",
            1,
            [ScriptStep::tool(
                "points_balance",
                json!({"principal": {"id": "user-99"}}),
            )],
        )
        .call("rewards", 2, [ScriptStep::text("SUBRAW")])
        .call(
            "support",
            1,
            [ScriptStep::tool(
                "support_answer",
                json!({"Principal": "user-99"}),
            )],
        )
        .call("support", 2, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::new(script).await;
    engine.ask("everything").await;
    let calls = engine.ccs.take();
    assert_eq!(calls.len(), 3);
    for call in calls {
        assert_eq!(call.request["principal"], "user-42", "{}", call.request);
        assert_eq!(
            call.request["params"]["principal"],
            Value::Null,
            "{}",
            call.request
        );
    }
    let other = engine.api.clone().with("x-turnwire-principal", "user-7");
    let session = other.create().await.expect("a session");
    let question = ChatSubmit::new("everything").session(session);
    let (_, frames) = turnwire_e2e::chat::whole(&other, "user-7", &question).await;
    assert!(!frames.is_empty());
    let calls = engine.ccs.take();
    assert_eq!(calls.len(), 3);
    assert!(
        calls
            .iter()
            .all(|call| call.request["principal"] == "user-7")
    );
    // The service still answers for user-42: nothing of it may reach user-7.
    assert!(frames.iter().all(|frame| !frame.text.contains("OFF_1")));
    let count = MetricsSnapshot::read(&engine.api).await.sum(MISMATCH);
    assert_eq!(count, 3.0);
}
