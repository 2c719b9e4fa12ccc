//! Clients of version 0.4: which statuses, failures and cancels they see, and that their disconnect
//! at the first error does not fail the turn (S1-101, S1-137, D-22).

use serde_json::{Value, json};
use turnwire_e2e::chat::{assert_no_errors_logged, say};
use turnwire_e2e::data_service::{ServiceReply, envelope, envelope_with};
use turnwire_e2e::engine::{ChatReply, EngineFixture, asks, of, only, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::script::ScriptStep;

const SORRY: &str = "That did not work out.";

fn broken(enricher: &str) -> ServiceReply {
    let fields = json!({"status": "error", "reason": "upstream_timeout"});
    ServiceReply::envelope(&envelope_with(enricher, &fields))
}

async fn old(engine: &EngineFixture, message: &str) -> ChatReply {
    let reply = engine.submit(ChatSubmit::new(message).version("0.4")).await;
    assert!(
        reply
            .frames
            .iter()
            .all(|frame| frame.field("version") == "0.4")
    );
    assert_eq!(
        reply.count("status") + reply.count("cancelled"),
        0,
        "{:?}",
        reply.labels()
    );
    reply.assert_absent(&[
        "SUB_AGENT_FAILED",
        "CCS_ENVELOPE_ERROR",
        "PARTIAL_FAN_OUT",
        "\"is_final\":false",
    ]);
    reply.assert_tools_paired();
    reply
}

/// The error frames that an old client receives.
fn internal() -> Vec<(Value, Value)> {
    vec![(json!({"code": "INTERNAL_ERROR"}), json!(true))]
}

// S1-137, S1-139, D-22
#[tokio::test]
async fn reference_turn_has_no_status_for_v04_client() {
    let engine = EngineFixture::new(working(asks(&["shop"], "Here."))).await;
    let reply = old(&engine, "offers").await;
    reply.assert_order(&[
        "response_id",
        "thinking",
        "tool_call ask_shop",
        "data_loaded",
        "text",
        "completed",
    ]);
    assert_eq!(reply.errors(), []);
    let events = engine.events(reply.turn).await;
    assert_eq!(of(&events, "status.emitted").count(), 1, "the log has it");
    engine.check_history().await;
}

// S1-137, D-22
#[tokio::test]
async fn non_terminal_failure_is_omitted_for_v04_client() {
    let engine = EngineFixture::new(working(asks(&["shop"], SORRY))).await;
    engine.ccs.set("offer_search", broken("offer_search"));
    let reply = old(&engine, "offers").await;
    assert_eq!(
        (reply.errors(), reply.last().event()),
        (vec![], "completed")
    );
    assert_eq!(reply.text(), SORRY);
    drop(engine);
    let script = asks(&["shop", "rewards"], SORRY)
        .call("shop", 1, [ScriptStep::error("provider")])
        .call(
            "rewards",
            1,
            [ScriptStep::tool("points_balance", json!({}))],
        )
        .call("rewards", 2, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::new(script).await;
    let reply = old(&engine, "both").await;
    assert_eq!(
        (reply.errors(), reply.last().event()),
        (vec![], "completed")
    );
    engine.check_history().await;
}

// S1-137, D-22
#[tokio::test]
async fn terminal_failure_is_internal_error_for_v04_client() {
    let engine =
        EngineFixture::new(asks(&["shop"], SORRY).call("shop", 1, [ScriptStep::error("provider")]))
            .await;
    let reply = old(&engine, "offers").await;
    assert_eq!((reply.errors(), reply.text().as_str()), (internal(), SORRY));
    drop(engine);
    let script = working(asks(&["shop"], SORRY));
    let engine = EngineFixture::with(script, |pack| {
        pack.flag("ai_assistant_axis2_terminal", "true")
    })
    .await;
    engine.ccs.set("offer_search", broken("offer_search"));
    let reply = old(&engine, "offers").await;
    assert_eq!((reply.errors(), reply.text().as_str()), (internal(), SORRY));
    engine.check_history().await;
}

// S1-137
#[tokio::test]
async fn cancel_is_error_with_code_for_v04_client() {
    let engine = EngineFixture::new(working(asks(&["shop"], "Here."))).await;
    engine.ccs.set(
        "offer_search",
        ServiceReply::envelope(&envelope("offer_search")).after(1_000),
    );
    let question = ChatSubmit::new("offers")
        .session(engine.session)
        .version("0.4");
    let mut stream = say(&engine.api, "old", &question).await;
    engine.reached(stream.turn(), "status.emitted").await;
    engine.api.cancel(stream.turn()).await.expect("an answer");
    let frames = stream.read_to_end().await.expect("an end");
    let last = frames.last().expect("a frame");
    assert_eq!(
        (last.event(), last.field("error")),
        ("error", &json!({"code": "REQUEST_CANCELLED"}))
    );
    assert_eq!(last.field("is_final"), &json!(true));
    engine.check_history().await;
}

// S1-101
#[tokio::test]
async fn leaving_at_non_terminal_error_cancels_the_turn() {
    let script = asks(&["shop"], SORRY)
        .call("shop", 1, [ScriptStep::tool("search_offers", json!({}))])
        .call(
            "shop",
            2,
            [ScriptStep::pause(20_000), ScriptStep::text("SUBRAW")],
        );
    let engine = EngineFixture::new(script).await;
    engine.ccs.set("offer_search", broken("offer_search"));
    let question = ChatSubmit::new("offers")
        .session(engine.session)
        .grace_ms(0);
    let mut stream = say(&engine.api, "leaves", &question).await;
    let turn = stream.turn();
    let frames = stream.until("error").await.expect("an error");
    assert_eq!(frames.last().expect("it").field("is_final"), &json!(false));
    drop(stream);
    let row = engine.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "cancelled", "{row}");
    let events = engine.events(turn).await;
    let end = &only(&events, "turn.cancelled")["payload"];
    assert_eq!(end["code"], "REQUEST_CANCELLED");
    only(&events, "dispatch.traced");
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}
