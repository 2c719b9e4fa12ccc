//! Failures of the composing model: a template answers in the user's language (S1-098..100), and a
//! flag makes a failing data service end the turn (S1-102).

use serde_json::{Value, json};
use turnwire_e2e::data_service::{ServiceReply, envelope_with};
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, asks, only, working};
use turnwire_testkit::chat::ChatSubmit;
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

// S1-098, S1-099, S1-100
#[tokio::test]
async fn template_answers_when_composing_model_fails() {
    let one = |class: &str| {
        working(ModelScript::new())
            .call(
                ORCHESTRATOR,
                1,
                [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
            )
            .call(ORCHESTRATOR, 2, [ScriptStep::error(class)])
    };
    for (class, code) in [
        ("provider", "MODEL_UNAVAILABLE"),
        ("rate_limited", "RATE_LIMIT_ERROR"),
    ] {
        let engine = EngineFixture::new(one(class)).await;
        let mut texts = Vec::new();
        for locale in ["en", "de", "es"] {
            let reply = engine
                .submit(ChatSubmit::new("offers").field("locale", locale))
                .await;
            assert_eq!(
                reply.errors(),
                [(json!({"code": code}), json!(true))],
                "{locale}"
            );
            reply.assert_order(&["data_loaded", "text", "error"]);
            reply.assert_valid_answer();
            texts.push(reply.text());
        }
        texts.dedup();
        assert_eq!(texts.len(), 3, "one sentence a language: {texts:?}");
        engine.check_history().await;
    }
}

// S1-099
#[tokio::test]
async fn refused_first_call_ends_with_code_after_text() {
    let script = ModelScript::new().call(ORCHESTRATOR, 1, [ScriptStep::error("rate_limited")]);
    let engine = EngineFixture::new(script).await;
    let reply = engine
        .submit(ChatSubmit::new("offers").field("locale", "de"))
        .await;
    assert_eq!(
        reply.errors(),
        [(json!({"code": "RATE_LIMIT_ERROR"}), json!(true))]
    );
    reply.assert_valid_answer();
    let events = engine.events(reply.turn).await;
    assert_eq!(
        only(&events, "dispatch.traced")["payload"]["intent_count"],
        0
    );
    engine.check_history().await;
}

// S2-059
#[tokio::test]
async fn failed_sub_agent_and_composition_still_answer() {
    let script = ModelScript::new()
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::error("provider")])
        .call("shop", 1, [ScriptStep::error("provider")]);
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("offers").await;
    let errors = reply.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].1, json!(true));
    reply.assert_valid_answer();
    engine.check_history().await;
}

// S1-102
#[tokio::test]
async fn flag_turns_data_service_failure_into_turn_end() {
    let script = working(asks(&["shop"], SORRY));
    let engine = EngineFixture::with(script, |pack| {
        pack.flag("ai_assistant_axis2_terminal", "true")
    })
    .await;
    fails(&engine, "offer_search", "upstream_unavailable");
    let reply = engine.ask("offers").await;
    let expected = envelope_error("offer_search", "upstream_unavailable");
    assert_eq!(reply.errors(), [(expected, json!(true))]);
    reply.assert_order(&["tool_completed ask_shop", "text", "error"]);
    assert_eq!(
        (reply.text().as_str(), reply.count("completed")),
        (SORRY, 0)
    );
    reply.assert_valid_answer();
    assert_eq!(engine.axes(reply.turn).await, [(2, true)]);
    engine.check_history().await;
}
