//! Rendered output of a turn: single components, what the orchestrator sees of them, and statuses
//! in the user's language (S1-054, S1-085, S2-014).

use serde_json::{Value, json};
use turnwire_e2e::engine::{EngineFixture, HIDDEN, asks, reference, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::script::ScriptStep;

// S2-014
#[tokio::test]
async fn orchestrator_gets_narration_and_rendered_items() {
    let script = working(asks(&["shop"], "{{last_tool_result}}"));
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("offers").await;
    let result: Value = serde_json::from_str(&reply.text()).expect("the result as it was given");
    assert_eq!(result["text"], "SUBRAW of shop");
    assert_eq!(
        result["components"],
        json!([{
            "type": "offer_list",
            "ids": ["OFF_1", "OFF_2"],
            "items": [{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2", "title": "Granola"}],
        }])
    );
    assert_eq!(result["outcome"], "success");
    assert_eq!(result["caveat"], Value::Null);
}

// S1-021, S1-085
#[tokio::test]
async fn single_component_is_a_frame_and_a_message() {
    let script = asks(&["shop"], "Here it is.")
        .call("shop", 1, [ScriptStep::tool("search_offers", json!({}))])
        .call(
            "shop",
            2,
            [ScriptStep::tool(
                "render_offer_card",
                json!({"id": "OFF_2"}),
            )],
        )
        .call("shop", 3, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("granola").await;
    reply.assert_order(&[
        "tool_call render_offer_card",
        "component render_offer_card",
        "tool_completed render_offer_card",
        "text",
        "completed",
    ]);
    let component = reply.of("component").next().expect("a component");
    assert_eq!(
        component.field("chunk"),
        &json!({"id": "OFF_2", "title": "Granola"})
    );
    let call = reply
        .of("tool_call")
        .nth(2)
        .expect("three tools")
        .field("tool_call");
    assert_eq!(component.field("tool_call"), call);
    reply.assert_no_data("a card");
    reply.assert_absent(&HIDDEN);
    let messages = engine.messages().await;
    let tool_message = messages
        .iter()
        .find(|m| m["role"] == "tool")
        .expect("a tool message");
    assert_eq!(tool_message["content"][0]["type"], "component");
    assert_eq!(
        tool_message["content"][0]["component"],
        json!({"id": "OFF_2", "title": "Granola"})
    );
    assert_eq!(tool_message["turn_id"], json!(reply.turn));
    engine.check_history().await;
}

// S1-054, S1-081, D-86, S1-141
#[tokio::test]
async fn status_text_is_localised_and_keeps_its_id() {
    let engine = EngineFixture::new(reference()).await;
    let german = "Angebote werden gesucht …";
    for (locale, message) in [
        ("de", german),
        ("de-AT", german),
        ("en", "Searching for offers..."),
        ("fr", "Searching for offers..."),
    ] {
        let reply = engine
            .submit(ChatSubmit::new("offers").field("locale", locale))
            .await;
        assert_eq!(
            reply.statuses(),
            [("searching_offers".to_owned(), message.to_owned())],
            "{locale}"
        );
    }
    drop(engine);
    let forward = |pack: turnwire_testkit::pack::TestPack| {
        let file = "verticals/shop/status_events.yaml";
        pack.change(file, "default_policy: transform", "default_policy: forward")
    };
    let engine = EngineFixture::with(reference(), forward).await;
    let reply = engine
        .submit(ChatSubmit::new("offers").field("locale", "de"))
        .await;
    assert_eq!(
        reply.statuses()[0].1,
        "Searching for offers...",
        "forward is the default language"
    );
    engine.check_history().await;
}
