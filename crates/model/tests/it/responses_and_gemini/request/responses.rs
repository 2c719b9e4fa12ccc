//! Encoded requests of the Responses dialect: parameters, conversation and provider data. Ids are
//! sent only for stored items.

use serde_json::json;
use turnwire_event::ContentBlock;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;
use turnwire_model::{ModelMessage, ModelParams};

use super::{assistant, conversation, encode, params, result, thinking, tool_use, use_id, user};

#[test]
fn first_responses_request() {
    let encoded = encode(
        &OpenAiResponsesDialect,
        vec![user("Hi")],
        &ModelParams::default(),
    );
    assert_eq!(encoded.path, "/responses");
    let tool = json!({
        "type": "function",
        "name": "get_weather",
        "description": "Weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": false,
    });
    let content = json!([{"type": "input_text", "text": "Hi"}]);
    let expected = json!({
        "model": "big",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": content}],
        "tools": [tool],
        "stream": true,
        "store": false,
    });
    assert_eq!(encoded.body, expected);
}

#[test]
fn responses_request_has_the_parameters() {
    let mut params = params();
    let body = encode(&OpenAiResponsesDialect, vec![user("Hi")], &params).body;
    assert_eq!(body["max_output_tokens"], 100);
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(body["top_p"], 0.9);
    assert_eq!(body["stream"], true, "the answer is always a stream");
    assert_eq!(body.get("store"), None, "a null takes a field out");
    assert_eq!(body.get("reasoning"), None, "the vendor thinks by effort");
    assert_eq!(
        body.get("include"),
        None,
        "models that do not reason refuse it"
    );
    params.effort = Some("low".into());
    let body = encode(&OpenAiResponsesDialect, vec![user("Hi")], &params).body;
    assert_eq!(
        body["reasoning"],
        json!({"effort": "low", "summary": "auto"})
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
}

/// A message with every kind of provider data.
fn message_with_provider_data() -> ModelMessage {
    let encrypted = json!({
        "type": "reasoning", "id": "rs_a", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "Hm."}],
    });
    let hidden =
        json!({"type": "reasoning", "id": "rs_b", "encrypted_content": "gBBB", "summary": []});
    let search = json!({"type": "web_search_call", "id": "ws_a", "status": "completed"});
    let provider_data = [
        (0, encrypted),
        (1, hidden),
        (
            2,
            json!({"type": "message", "id": "msg_a", "phase": "commentary"}),
        ),
        (
            3,
            json!({"type": "message", "id": "msg_a", "refusal": true}),
        ),
        (4, json!({"type": "message", "id": "msg_b"})),
        (
            5,
            json!({"type": "function_call", "item_id": "fc_a", "id": "call_a", "namespace": "x"}),
        ),
        (7, search),
    ];
    assistant(
        vec![
            thinking("Hm."),
            ContentBlock::text(""),
            ContentBlock::text("I look."),
            ContentBlock::text("Not there."),
            ContentBlock::text("Now."),
            tool_use(1, "Paris"),
            tool_use(2, "Rome"),
        ],
        "there",
        &provider_data,
    )
}

#[test]
fn responses_conversation_has_its_provider_data() {
    let messages = vec![
        user("Weather?"),
        message_with_provider_data(),
        result(2, json!({"degrees": 20}), false),
        result(1, json!("no such city"), true),
        user("And?"),
    ];
    let user_item = |text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"type": "message", "role": "user", "content": content})
    };
    let answer = |text: &str| json!({"type": "output_text", "text": text});
    let refusal = json!({"type": "refusal", "refusal": "Not there."});
    let tool_use_id = use_id(2).to_string();
    let expected = json!([
        user_item("Weather?"),
        {
            "type": "reasoning", "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "Hm."}],
        },
        {"type": "reasoning", "encrypted_content": "gBBB", "summary": []},
        {
            "type": "message", "role": "assistant", "phase": "commentary",
            "content": [answer("I look."), refusal],
        },
        {"type": "message", "role": "assistant", "content": [answer("Now.")]},
        {
            "type": "function_call", "call_id": "call_a", "name": "get_weather",
            "arguments": r#"{"city":"Paris"}"#, "namespace": "x",
        },
        {
            "type": "function_call", "call_id": tool_use_id, "name": "get_weather",
            "arguments": r#"{"city":"Rome"}"#,
        },
        {"type": "web_search_call", "id": "ws_a", "status": "completed"},
        {
            "type": "function_call_output", "call_id": "call_a",
            "output": r#"{"error":"no such city"}"#,
        },
        {"type": "function_call_output", "call_id": tool_use_id, "output": r#"{"degrees":20}"#},
        user_item("And?"),
    ]);
    assert_eq!(conversation(&OpenAiResponsesDialect, messages), expected);
}

#[test]
fn stored_responses_items_are_sent_with_their_ids() {
    let provider_data = [
        (0, json!({"type": "reasoning", "id": "rs_a", "summary": []})),
        (1, json!({"type": "message", "id": "msg_a"})),
        (
            2,
            json!({"type": "function_call", "item_id": "fc_a", "id": "call_a"}),
        ),
    ];
    let content = vec![
        ContentBlock::text(""),
        ContentBlock::text("Now."),
        tool_use(1, "Paris"),
    ];
    let messages = || {
        let message = assistant(content.clone(), "there", &provider_data);
        vec![user("Hi"), message, result(1, json!("20"), false)]
    };
    let mut params = ModelParams::default();
    params.extra.insert("store".into(), true.into());
    let stored = encode(&OpenAiResponsesDialect, messages(), &params).body;
    assert_eq!(stored["store"], true);
    let item = |n: usize| &stored["input"][n];
    assert_eq!(
        *item(1),
        json!({"type": "reasoning", "id": "rs_a", "summary": []})
    );
    assert_eq!([&item(2)["id"], &item(2)["status"]], ["msg_a", "completed"]);
    assert_eq!([&item(3)["id"], &item(3)["call_id"]], ["fc_a", "call_a"]);

    // Without storage the reasoning has nothing readable.
    let unstored = conversation(&OpenAiResponsesDialect, messages());
    assert_eq!(unstored[1]["type"], "message");
    let ids = unstored.as_array().expect("items").iter();
    assert_eq!(ids.filter(|item| item.get("id").is_some()).count(), 0);
}
