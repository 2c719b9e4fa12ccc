//! The Messages API in a tool loop that another provider started: a turn that calls tools and does
//! not start with thinking cannot be followed by thinking with a budget.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, ProviderState, Role, ToolUseId, Ulid};
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::{EncodeInput, ModelMessage, ModelParams, ModelRequest, VendorDialect};

fn user(text: &str) -> ModelMessage {
    ModelMessage::new(Role::User, vec![ContentBlock::text(text)])
}

fn thinking() -> ContentBlock {
    ContentBlock::Thinking {
        text: "Hm.".into(),
        signature: Some("signature".into()),
    }
}

fn tool_use(n: u128) -> ContentBlock {
    ContentBlock::ToolUse {
        id: ToolUseId(Ulid(n)),
        name: "get_weather".into(),
        input: json!({}),
    }
}

fn result(n: u128) -> ModelMessage {
    let block = ContentBlock::ToolResult {
        tool_use_id: ToolUseId(Ulid(n)),
        content: json!("20"),
        is_error: false,
    };
    ModelMessage::new(Role::Tool, vec![block])
}

fn answer_of(by: &str, content: Vec<ContentBlock>) -> ModelMessage {
    ModelMessage {
        provider_data: ProviderState {
            by: by.into(),
            blocks: [(9, json!({"id": "none"}))].into(),
        },
        ..ModelMessage::new(Role::Assistant, content)
    }
}

fn with_budget() -> ModelParams {
    ModelParams {
        thinking_tokens: Some(2000),
        temperature: Some(0.5),
        ..ModelParams::default()
    }
}

fn body(messages: Vec<ModelMessage>, params: &ModelParams) -> Value {
    let request = ModelRequest {
        model: "anthropic:m".into(),
        agent: "orchestrator".into(),
        call: 2,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
    };
    AnthropicDialect
        .encode(&EncodeInput {
            provider: "anthropic",
            model: "m",
            request: &request,
            params,
        })
        .body
}

#[test]
fn foreign_tool_loop_continues_without_thinking_budget() {
    let foreign_answer = || answer_of("openai", vec![thinking(), tool_use(1)]);
    let tool_loop = |last: ModelMessage| vec![user("Weather?"), last, result(1)];
    let request_body = body(tool_loop(foreign_answer()), &with_budget());
    assert_eq!(request_body.get("thinking"), None);
    assert_eq!(
        request_body.get("temperature"),
        None,
        "the version stays the same"
    );
    assert!(AnthropicDialect.headers_for(&with_budget()).is_empty());
    let mut with_user_text = tool_loop(foreign_answer());
    with_user_text.push(user("Hurry."));
    assert_eq!(body(with_user_text, &with_budget()).get("thinking"), None);
    // A turn of the provider itself starts with thinking.
    let own_loop = tool_loop(answer_of("anthropic", vec![thinking(), tool_use(1)]));
    assert_eq!(
        body(own_loop, &with_budget())["thinking"]["budget_tokens"],
        2000
    );
    let adaptive = ModelParams {
        effort: Some("low".into()),
        ..ModelParams::default()
    };
    let request_body = body(tool_loop(foreign_answer()), &adaptive);
    assert_eq!(
        request_body["thinking"]["type"], "adaptive",
        "adaptive thinking needs none"
    );
}

#[test]
fn next_turn_has_the_thinking_budget_again() {
    let messages = vec![
        user("Weather?"),
        answer_of("openai", vec![tool_use(1)]),
        result(1),
        answer_of("openai", vec![ContentBlock::text("20 degrees.")]),
        user("And tomorrow?"),
    ];
    let request_body = body(messages, &with_budget());
    assert_eq!(request_body["thinking"]["budget_tokens"], 2000);
}

#[test]
fn thinking_after_text_is_dropped_with_the_budget() {
    let messages = vec![
        user("Weather?"),
        answer_of("openai", vec![ContentBlock::text("I look.")]),
        answer_of("anthropic", vec![thinking(), tool_use(1)]),
        result(1),
    ];
    let request_body = body(messages, &with_budget());
    assert_eq!(request_body.get("thinking"), None);
    let kinds = request_body["messages"][1]["content"]
        .as_array()
        .expect("blocks");
    let kinds: Vec<&Value> = kinds.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use"]);
}
