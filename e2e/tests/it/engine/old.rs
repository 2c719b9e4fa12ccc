//! Old clients (0.4): what they see of statuses, failures and cancels, and that their leaving at
//! the first error is no failure of the turn (S1-101, S1-137, D-22).

use serde_json::{Value, json};
use turnwire_e2e::chat::{calm, say};
use turnwire_e2e::data_service::{ServiceReply, envelope, envelope_with};
use turnwire_e2e::engine::{Stage, Told, asks, of, only, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::script::ScriptStep;

const SORRY: &str = "That did not work out.";

fn broken(enricher: &str) -> ServiceReply {
    let fields = json!({"status": "error", "reason": "upstream_timeout"});
    ServiceReply::envelope(&envelope_with(enricher, &fields))
}

async fn old(stage: &Stage, message: &str) -> Told {
    let reply = stage.asked(ChatSubmit::new(message).version("0.4")).await;
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
    reply.lacks(&[
        "SUB_AGENT_FAILED",
        "CCS_ENVELOPE_ERROR",
        "PARTIAL_FAN_OUT",
        "\"is_final\":false",
    ]);
    reply.pairs();
    reply
}

/// All that an old client is told of a failure.
fn internal() -> Vec<(Value, Value)> {
    vec![(json!({"code": "INTERNAL_ERROR"}), json!(true))]
}

// S1-137, S1-139, D-22
#[tokio::test]
async fn reference_turn_has_no_status_for_v04_client() {
    let stage = Stage::new(working(asks(&["shop"], "Here."))).await;
    let reply = old(&stage, "offers").await;
    reply.order(&[
        "response_id",
        "thinking",
        "tool_call ask_shop",
        "data_loaded",
        "text",
        "completed",
    ]);
    assert_eq!(reply.errors(), []);
    let events = stage.events(reply.turn).await;
    assert_eq!(of(&events, "status.emitted").count(), 1, "the log has it");
    stage.judge().await;
}

// S1-137, D-22
#[tokio::test]
async fn non_terminal_failure_is_omitted_for_v04_client() {
    let stage = Stage::new(working(asks(&["shop"], SORRY))).await;
    stage.ccs.set("offer_search", broken("offer_search"));
    let reply = old(&stage, "offers").await;
    assert_eq!(
        (reply.errors(), reply.last().event()),
        (vec![], "completed")
    );
    assert_eq!(reply.words(), SORRY);
    drop(stage);
    let script = asks(&["shop", "rewards"], SORRY)
        .call("shop", 1, [ScriptStep::error("provider")])
        .call(
            "rewards",
            1,
            [ScriptStep::tool("points_balance", json!({}))],
        )
        .call("rewards", 2, [ScriptStep::text("SUBRAW")]);
    let stage = Stage::new(script).await;
    let reply = old(&stage, "both").await;
    assert_eq!(
        (reply.errors(), reply.last().event()),
        (vec![], "completed")
    );
    stage.judge().await;
}

// S1-137, D-22
#[tokio::test]
async fn terminal_failure_is_internal_error_for_v04_client() {
    let stage =
        Stage::new(asks(&["shop"], SORRY).call("shop", 1, [ScriptStep::error("provider")])).await;
    let reply = old(&stage, "offers").await;
    assert_eq!(
        (reply.errors(), reply.words().as_str()),
        (internal(), SORRY)
    );
    drop(stage);
    let script = working(asks(&["shop"], SORRY));
    let stage = Stage::with(script, |pack| {
        pack.flag("ai_assistant_axis2_terminal", "true")
    })
    .await;
    stage.ccs.set("offer_search", broken("offer_search"));
    let reply = old(&stage, "offers").await;
    assert_eq!(
        (reply.errors(), reply.words().as_str()),
        (internal(), SORRY)
    );
    stage.judge().await;
}

// S1-137
#[tokio::test]
async fn cancel_is_error_with_code_for_v04_client() {
    let stage = Stage::new(working(asks(&["shop"], "Here."))).await;
    stage.ccs.set(
        "offer_search",
        ServiceReply::envelope(&envelope("offer_search")).after(1_000),
    );
    let question = ChatSubmit::new("offers")
        .session(stage.session)
        .version("0.4");
    let mut stream = say(&stage.api, "old", &question).await;
    stage.reached(stream.turn(), "status.emitted").await;
    stage.api.cancel(stream.turn()).await.expect("an answer");
    let frames = stream.read_to_end().await.expect("an end");
    let last = frames.last().expect("a frame");
    assert_eq!(
        (last.event(), last.field("error")),
        ("error", &json!({"code": "REQUEST_CANCELLED"}))
    );
    assert_eq!(last.field("is_final"), &json!(true));
    stage.judge().await;
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
    let stage = Stage::new(script).await;
    stage.ccs.set("offer_search", broken("offer_search"));
    let question = ChatSubmit::new("offers").session(stage.session).grace_ms(0);
    let mut stream = say(&stage.api, "leaves", &question).await;
    let turn = stream.turn();
    let frames = stream.until("error").await.expect("an error");
    assert_eq!(frames.last().expect("it").field("is_final"), &json!(false));
    drop(stream);
    let row = stage.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "cancelled", "{row}");
    let events = stage.events(turn).await;
    let end = &only(&events, "turn.cancelled")["payload"];
    assert_eq!(end["code"], "REQUEST_CANCELLED");
    only(&events, "dispatch.traced");
    calm(&stage.server);
    stage.judge().await;
}
