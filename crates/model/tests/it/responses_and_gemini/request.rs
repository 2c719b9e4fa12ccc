//! Encoded requests of the Responses and Gemini dialects. Provider data, keys and tool names are
//! covered for both; each dialect has its own file.

mod responses;
mod gemini;

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, ProviderState, Role, ToolUseId, Ulid};
use turnwire_model::dialect::gemini::GeminiDialect;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;
use turnwire_model::{
    EncodeInput, EncodedRequest, ModelMessage, ModelParams, ModelRequest, ToolSpec, VendorDialect,
};

fn use_id(n: u128) -> ToolUseId {
    ToolUseId(Ulid(n))
}

fn tool_use(n: u128, city: &str) -> ContentBlock {
    ContentBlock::ToolUse {
        id: use_id(n),
        name: "get_weather".into(),
        input: json!({"city": city}),
    }
}

fn result(n: u128, content: Value, is_error: bool) -> ModelMessage {
    let block = ContentBlock::ToolResult {
        tool_use_id: use_id(n),
        content,
        is_error,
    };
    ModelMessage::new(Role::Tool, vec![block])
}

fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking {
        text: text.into(),
        signature: None,
    }
}

fn assistant(
    content: Vec<ContentBlock>,
    provider: &str,
    provider_data: &[(u32, Value)],
) -> ModelMessage {
    ModelMessage {
        role: Role::Assistant,
        content,
        provider_data: ProviderState {
            by: provider.into(),
            blocks: provider_data.iter().cloned().collect(),
        },
    }
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::new(Role::User, vec![ContentBlock::text(text)])
}

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    let tool = ToolSpec {
        name: "get_weather".into(),
        description: "Weather in a city.".into(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    };
    ModelRequest {
        model: "there:big".into(),
        agent: "orchestrator".into(),
        call: 2,
        attempt: 1,
        locale: "en".into(),
        system: Some("Be brief.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [tool].into(),
    }
}

fn encode(
    dialect: &dyn VendorDialect,
    messages: Vec<ModelMessage>,
    params: &ModelParams,
) -> EncodedRequest {
    dialect.encode(&EncodeInput {
        provider: "there",
        model: "big",
        request: &request(messages),
        params,
    })
}

/// The `input` of a Responses request, or the `contents` of a Gemini request.
fn conversation(dialect: &dyn VendorDialect, messages: Vec<ModelMessage>) -> Value {
    let mut body = encode(dialect, messages, &ModelParams::default()).body;
    let name = if dialect.name() == "gemini" {
        "contents"
    } else {
        "input"
    };
    body[name].take()
}

fn params() -> ModelParams {
    let extra = json!({
        "top_p": 0.9, "stream": false, "store": null, "generationConfig": {"topP": 0.9},
    });
    ModelParams {
        max_tokens: Some(100),
        temperature: Some(0.5),
        thinking_tokens: Some(1024),
        effort: None,
        extra: extra.as_object().expect("fields").clone(),
    }
}

#[test]
fn provider_data_of_another_provider_is_not_sent() {
    let provider_data = [
        (
            0,
            json!({"type": "reasoning", "encrypted_content": "gAAA", "thoughtSignature": "s"}),
        ),
        (
            1,
            json!({"type": "message", "id": "m", "phase": "commentary", "thoughtSignature": "s"}),
        ),
        (
            2,
            json!({"type": "function_call", "id": "theirs", "thoughtSignature": "s"}),
        ),
        (
            3,
            json!({"type": "reasoning", "encrypted_content": "gBBB", "part": {"x": 1}}),
        ),
    ];
    let content = vec![
        thinking("Hm."),
        ContentBlock::text("I look."),
        tool_use(1, "Paris"),
    ];
    let messages = || {
        let message = assistant(content.clone(), "elsewhere", &provider_data);
        vec![user("Hi"), message, result(1, json!("20"), false)]
    };
    let tool_use_id = use_id(1).to_string();
    let responses = conversation(&OpenAiResponsesDialect, messages());
    let content_parts = json!([{"type": "output_text", "text": "I look."}]);
    assert_eq!(
        responses[1],
        json!({"type": "message", "role": "assistant", "content": content_parts})
    );
    assert_eq!(responses[2]["call_id"], json!(tool_use_id));
    assert_eq!(responses[3]["call_id"], json!(tool_use_id));
    assert_eq!(responses.as_array().map(Vec::len), Some(4));

    let gemini = conversation(&GeminiDialect, messages());
    let call = json!({"name": "get_weather", "args": {"city": "Paris"}});
    let no_signature = "skip_thought_signature_validator";
    let call = json!({"functionCall": call, "thoughtSignature": no_signature});
    let parts = json!([{"text": "I look."}, call]);
    assert_eq!(gemini[1], json!({"role": "model", "parts": parts}));
}

#[test]
fn key_is_sent_in_the_header_of_each_vendor() {
    let headers = OpenAiResponsesDialect.headers(Some("k"));
    assert_eq!(headers, [("authorization", "Bearer k".to_owned())]);
    assert_eq!(
        GeminiDialect.headers(Some("k")),
        [("x-goog-api-key", "k".to_owned())]
    );
    assert!(OpenAiResponsesDialect.headers(None).is_empty());
    assert!(GeminiDialect.headers(None).is_empty());
}

#[test]
fn unsigned_gemini_call_gets_the_placeholder_signature() {
    let part = |provider_data: Value| {
        let message = assistant(vec![tool_use(1, "Paris")], "there", &[(0, provider_data)]);
        let messages = vec![user("Hi"), message, result(1, json!("20"), false)];
        conversation(&GeminiDialect, messages)[1]["parts"][0].clone()
    };
    // An older model of the same provider sends call ids and no signatures.
    let unsigned = part(json!({"id": "fn_a"}));
    assert_eq!(
        unsigned["thoughtSignature"],
        "skip_thought_signature_validator"
    );
    assert_eq!(unsigned["functionCall"]["id"], "fn_a");
    let signed = part(json!({"id": "fn_a", "thoughtSignature": "s"}));
    assert_eq!(signed["thoughtSignature"], "s");
}

#[test]
fn invalid_tool_name_is_sanitized_in_requests() {
    let invented = ContentBlock::ToolUse {
        id: use_id(1),
        name: "functions.get weather".into(),
        input: json!({}),
    };
    let messages = || {
        let message = assistant(vec![invented.clone()], "there", &[]);
        vec![user("Hi"), message, result(1, json!("no such tool"), true)]
    };
    let name = "functions_get_weather";
    let responses = conversation(&OpenAiResponsesDialect, messages());
    assert_eq!(responses[1]["name"], name);
    let gemini = conversation(&GeminiDialect, messages());
    assert_eq!(gemini[1]["parts"][0]["functionCall"]["name"], name);
    assert_eq!(gemini[2]["parts"][0]["functionResponse"]["name"], name);
}
