//! A conversation with thinking, signatures, parallel tools and errors is decoded, stored and
//! encoded again without loss.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, ProviderState, Role, ToolUseId, Ulid};
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::{EncodeInput, ModelMessage, ModelParams, ModelRequest, VendorDialect};

use crate::anthropic_and_chat::support::{ANTHROPIC, OPENAI_CHAT, decode, fixture};
use crate::decoded::message::from_deltas;

fn text_message(role: Role, text: &str) -> ModelMessage {
    ModelMessage::new(role, vec![ContentBlock::text(text)])
}

fn result(id: u128, content: Value, is_error: bool) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: ToolUseId(Ulid(id)),
        content,
        is_error,
    }
}

/// A conversation in which one provider thought and called two tools, and another one answered
/// after that.
fn conversation(first: &str, second: &str) -> ModelRequest {
    let thinking = decode(&AnthropicDialect, fixture(ANTHROPIC, "thinking")).0;
    let chat = decode(&OpenAiChatDialect, fixture(OPENAI_CHAT, "conversation")).0;
    let messages = vec![
        text_message(Role::User, "Weather and time?"),
        from_deltas(first, &thinking, 100),
        ModelMessage::new(Role::Tool, vec![result(104, json!("no clock"), true)]),
        ModelMessage::new(
            Role::Tool,
            vec![result(103, json!({"sky": "clear"}), false)],
        ),
        from_deltas(second, &chat, 200),
        ModelMessage::new(Role::Tool, vec![result(201, json!(""), false)]),
        text_message(Role::User, "And?"),
    ];
    ModelRequest {
        model: "x:m".into(),
        agent: "orchestrator".into(),
        call: 3,
        attempt: 1,
        locale: String::new(),
        system: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
    }
}

fn messages(dialect: &dyn VendorDialect, provider: &str, request: &ModelRequest) -> Value {
    let body = dialect
        .encode(&EncodeInput {
            provider,
            model: "m",
            request,
            params: &ModelParams::default(),
        })
        .body;
    body["messages"].clone()
}

fn tool_use_id(id: u128) -> String {
    ToolUseId(Ulid(id)).to_string()
}

#[test]
fn messages_api_gets_back_only_its_own_provider_data() {
    let request = conversation("anthropic", "openai");
    let chat_tool = tool_use_id(201);
    assert_eq!(
        messages(&AnthropicDialect, "anthropic", &request),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Weather and time?"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Two cities, so two calls.", "signature": "EqQBCkYIBxg=="},
                {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
                {"type": "text", "text": "I look at both."},
                {"type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "toolu_b", "name": "get_time", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_a", "content": "{\"sky\":\"clear\"}"},
                {"type": "tool_result", "tool_use_id": "toolu_b", "content": "no clock", "is_error": true},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Ich sehe nach: Größe 🚢…"},
                {"type": "tool_use", "id": chat_tool, "name": "get_weather",
                 "input": {"city": "Köln", "unit": "celsius"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": chat_tool},
                {"type": "text", "text": "And?"},
            ]},
        ])
    );
}

#[test]
fn messages_api_gets_no_provider_data_of_another_provider() {
    let request = conversation("elsewhere", "openai");
    let (weather, time) = (tool_use_id(103), tool_use_id(104));
    assert_eq!(
        messages(&AnthropicDialect, "anthropic", &request)[1],
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "I look at both."},
            {"type": "tool_use", "id": weather, "name": "get_weather", "input": {"city": "Paris"}},
            {"type": "tool_use", "id": time, "name": "get_time", "input": {}},
        ]})
    );
}

#[test]
fn chat_api_gets_back_its_ids_and_no_thinking() {
    let request = conversation("anthropic", "openai");
    let (weather, time) = (tool_use_id(103), tool_use_id(104));
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        messages(&OpenAiChatDialect, "openai", &request),
        json!([
            {"role": "user", "content": "Weather and time?"},
            {"role": "assistant", "content": "I look at both.", "tool_calls": [
                call(&weather, "get_weather", r#"{"city":"Paris"}"#),
                call(&time, "get_time", "{}"),
            ]},
            {"role": "tool", "tool_call_id": weather, "content": "{\"sky\":\"clear\"}"},
            {"role": "tool", "tool_call_id": time, "content": "{\"error\":\"no clock\"}"},
            {"role": "assistant", "content": "Ich sehe nach: Größe 🚢…", "tool_calls": [
                call("call_one", "get_weather", r#"{"city":"Köln","unit":"celsius"}"#),
            ]},
            {"role": "tool", "tool_call_id": "call_one", "content": ""},
            {"role": "user", "content": "And?"},
        ])
    );
}

#[test]
fn server_tool_blocks_go_back_in_their_position() {
    let server_tool_deltas = decode(&AnthropicDialect, fixture(ANTHROPIC, "server_tool")).0;
    let mut request = conversation("anthropic", "anthropic");
    request.messages = vec![
        Arc::new(text_message(Role::User, "Tide?")),
        Arc::new(from_deltas("anthropic", &server_tool_deltas, 1)),
        Arc::new(text_message(Role::User, "Thanks.")),
    ];
    let own_messages = messages(&AnthropicDialect, "anthropic", &request);
    let kinds = own_messages[1]["content"]
        .as_array()
        .expect("blocks")
        .iter();
    let kinds: Vec<&Value> = kinds.map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "text"]);
    assert_eq!(
        own_messages[1]["content"][0]["input"],
        json!({"query": "tide"})
    );
    let foreign_messages = messages(&AnthropicDialect, "other", &request);
    assert_eq!(
        foreign_messages[1]["content"],
        json!([{"type": "text", "text": "High."}])
    );
}

#[test]
fn unsigned_or_trailing_thinking_is_not_sent() {
    let thinking = |text: &str, signature: Option<&str>| ContentBlock::Thinking {
        text: text.into(),
        signature: signature.map(str::to_owned),
    };
    let answer = |content: Vec<ContentBlock>| ModelMessage {
        provider_data: ProviderState {
            by: "anthropic".into(),
            blocks: BTreeMap::from([(9, json!({"redacted_thinking": "x"}))]),
        },
        ..ModelMessage::new(Role::Assistant, content)
    };
    let mut request = conversation("anthropic", "anthropic");
    request.messages = vec![
        Arc::new(text_message(Role::User, "a")),
        Arc::new(answer(vec![thinking("cut", None), ContentBlock::text("b")])),
        Arc::new(text_message(Role::User, "c")),
        Arc::new(answer(vec![thinking("only", Some("s"))])),
        Arc::new(text_message(Role::User, "d")),
    ];
    assert_eq!(
        messages(&AnthropicDialect, "anthropic", &request),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
        ])
    );
}
