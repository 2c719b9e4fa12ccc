//! Encoded requests, and how the operator's parameters change them. Each body is compared as a
//! whole or field by field.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role};
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::{
    EncodeInput, ModelMessage, ModelParams, ModelRequest, ToolSpec, VendorDialect,
};

fn request() -> ModelRequest {
    let tool = |name: &str, description: &str, input_schema: Value| ToolSpec {
        name: name.into(),
        description: description.into(),
        input_schema,
    };
    ModelRequest {
        model: "p:m".into(),
        agent: "orchestrator".into(),
        call: 1,
        attempt: 1,
        locale: "en".into(),
        system: Some("Be kind.".into()),
        messages: vec![Arc::new(ModelMessage::new(
            Role::User,
            vec![ContentBlock::text("Hi")],
        ))],
        tools: [
            tool("a", "Does a.", json!({"type": "object", "properties": {}})),
            tool("b", "", json!({"properties": {}})),
            tool("c", "", Value::Null),
        ]
        .into(),
    }
}

fn body(dialect: &dyn VendorDialect, provider: &str, params: &ModelParams) -> Value {
    dialect
        .encode(&EncodeInput {
            provider,
            model: "m",
            request: &request(),
            params,
        })
        .body
}

fn extra(fields: Value) -> ModelParams {
    let Value::Object(extra) = fields else {
        panic!("extra fields are an object");
    };
    ModelParams {
        extra,
        ..ModelParams::default()
    }
}

#[test]
fn request_without_parameters() {
    assert_eq!(
        AnthropicDialect
            .encode(&EncodeInput {
                provider: "p",
                model: "m",
                request: &request(),
                params: &ModelParams::default()
            })
            .path,
        "/v1/messages"
    );
    assert_eq!(
        body(&AnthropicDialect, "p", &ModelParams::default()),
        json!({
            "model": "m",
            "max_tokens": 4096,
            "system": "Be kind.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
            "tools": [
                {"name": "a", "description": "Does a.", "input_schema": {"type": "object", "properties": {}}},
                {"name": "b", "input_schema": {"type": "object", "properties": {}}},
                {"name": "c", "input_schema": {"type": "object"}},
            ],
            "stream": true,
        })
    );
    assert_eq!(
        OpenAiChatDialect
            .encode(&EncodeInput {
                provider: "p",
                model: "m",
                request: &request(),
                params: &ModelParams::default()
            })
            .path,
        "/chat/completions"
    );
    assert_eq!(
        body(&OpenAiChatDialect, "p", &ModelParams::default()),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "Hi"},
            ],
            "tools": [
                {"type": "function", "function": {"name": "a", "description": "Does a.", "parameters": {"type": "object", "properties": {}}}},
                {"type": "function", "function": {"name": "b", "parameters": {"properties": {}}}},
                {"type": "function", "function": {"name": "c"}},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn thinking_budget_raises_max_tokens_if_needed() {
    let encoded_fields = |max_tokens, thinking_tokens| {
        let params = ModelParams {
            max_tokens,
            thinking_tokens,
            temperature: Some(0.2),
            ..ModelParams::default()
        };
        let body = body(&AnthropicDialect, "local", &params);
        (
            body["max_tokens"].clone(),
            body["thinking"].clone(),
            body["temperature"].clone(),
        )
    };
    let enabled = |budget: u32| json!({"type": "enabled", "budget_tokens": budget});
    assert_eq!(
        encoded_fields(None, None),
        (json!(4096), Value::Null, json!(0.2))
    );
    assert_eq!(
        encoded_fields(None, Some(2000)),
        (json!(4096), enabled(2000), Value::Null)
    );
    assert_eq!(
        encoded_fields(Some(500), Some(2000)),
        (json!(2500), enabled(2000), Value::Null)
    );
    assert_eq!(
        encoded_fields(Some(2000), Some(2000)),
        (json!(4000), enabled(2000), Value::Null)
    );
    assert_eq!(
        encoded_fields(None, Some(1)),
        (json!(4096), enabled(1024), Value::Null)
    );
    let disabled = json!({"type": "disabled"});
    assert_eq!(
        encoded_fields(None, Some(0)),
        (json!(4096), disabled, json!(0.2))
    );
}

#[test]
fn thinking_by_effort_raises_default_max_tokens() {
    let max_tokens_for = |max_tokens, thinking_tokens| {
        let params = ModelParams {
            max_tokens,
            thinking_tokens,
            effort: Some("low".into()),
            ..ModelParams::default()
        };
        body(&AnthropicDialect, "local", &params)["max_tokens"].clone()
    };
    assert_eq!(max_tokens_for(None, None), 16_384);
    assert_eq!(
        max_tokens_for(Some(500), None),
        500,
        "the operator's word counts"
    );
    assert_eq!(
        max_tokens_for(None, Some(2000)),
        4096,
        "a budget makes its own room"
    );
    assert_eq!(max_tokens_for(None, Some(0)), 4096, "it does not think");
}

#[test]
fn openai_and_compatible_servers_get_their_own_fields() {
    let params = ModelParams {
        max_tokens: Some(100),
        temperature: Some(0.5),
        effort: Some("low".into()),
        ..ModelParams::default()
    };
    let openai_body = body(&OpenAiChatDialect, "openai", &params);
    assert_eq!(openai_body["max_completion_tokens"], 100);
    assert_eq!(openai_body.get("max_tokens"), None);
    assert_eq!(openai_body["reasoning_effort"], "low");
    assert_eq!(openai_body["temperature"], 0.5);
    let local_body = body(&OpenAiChatDialect, "local", &params);
    assert_eq!(local_body["max_tokens"], 100);
    assert_eq!(local_body.get("max_completion_tokens"), None);
    let thinking_body = body(&AnthropicDialect, "local", &params);
    assert_eq!(thinking_body["output_config"], json!({"effort": "low"}));
    assert_eq!(thinking_body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(thinking_body.get("temperature"), None);
}

#[test]
fn sampling_parameters_select_the_older_api_version() {
    let version = |params: &ModelParams| {
        let body = body(&AnthropicDialect, "anthropic", params);
        let fields = ["temperature", "top_p", "top_k"];
        let samples = fields.iter().any(|field| body.get(*field).is_some());
        let headers = AnthropicDialect.headers_for(params);
        assert_eq!(samples, !headers.is_empty(), "{params:?}");
        headers
    };
    let older_version = [("anthropic-version", "2023-06-01".to_owned())];
    let with_temperature = ModelParams {
        temperature: Some(0.5),
        ..ModelParams::default()
    };
    assert_eq!(version(&ModelParams::default()), []);
    assert_eq!(version(&with_temperature), older_version);
    assert_eq!(version(&extra(json!({"top_p": 0.9}))), older_version);
    let thinking_body = ModelParams {
        thinking_tokens: Some(2000),
        ..with_temperature.clone()
    };
    assert_eq!(version(&thinking_body), []);
    let removed = ModelParams {
        extra: extra(json!({"temperature": null})).extra,
        ..with_temperature
    };
    assert_eq!(version(&removed), []);
}

#[test]
fn extra_fields_override_and_null_removes_a_field() {
    let params = extra(json!({
        "top_p": 0.9,
        "max_tokens": 7,
        "tools": null,
        "model": "other",
        "messages": [],
        "stream": false,
    }));
    for (dialect, options) in [
        (&AnthropicDialect as &dyn VendorDialect, Value::Null),
        (&OpenAiChatDialect, json!({"include_usage": true})),
    ] {
        let body = body(dialect, "p", &params);
        assert_eq!(body["top_p"], 0.9);
        assert_eq!(body["max_tokens"], 7);
        assert_eq!(body.get("tools"), None);
        assert_eq!(
            (&body["model"], &body["stream"]),
            (&json!("m"), &json!(true))
        );
        assert_eq!(body["messages"].as_array().map(Vec::is_empty), Some(false));
        assert_eq!(
            body.get("stream_options").cloned().unwrap_or_default(),
            options
        );
    }
}
