//! Encoded requests of the Gemini dialect: path, parameters and conversation. Signatures stay on
//! the parts that they came with.

use serde_json::json;
use turnwire_event::ContentBlock;
use turnwire_model::dialect::gemini::GeminiDialect;
use turnwire_model::{EncodeInput, ModelParams, VendorDialect as _};

use super::{assistant, conversation, encode, params, request, result, thinking, tool_use, user};

#[test]
fn first_gemini_request() {
    let encoded = encode(&GeminiDialect, vec![user("Hi")], &ModelParams::default());
    assert_eq!(
        encoded.path,
        "/v1beta/models/big:streamGenerateContent?alt=sse"
    );
    let declaration = json!({
        "name": "get_weather",
        "description": "Weather in a city.",
        "parametersJsonSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    });
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [{"functionDeclarations": [declaration]}],
    });
    assert_eq!(encoded.body, expected);
}

#[test]
fn gemini_generation_config_has_the_parameters() {
    let config = |params: &ModelParams| {
        let mut body = encode(&GeminiDialect, vec![user("Hi")], params).body;
        body["generationConfig"].take()
    };
    let mut params = params();
    let thinking = json!({"includeThoughts": true, "thinkingBudget": 1024});
    let expected = json!({
        "maxOutputTokens": 100, "temperature": 0.5, "thinkingConfig": thinking, "topP": 0.9,
    });
    assert_eq!(config(&params), expected);
    params.thinking_tokens = Some(0);
    assert_eq!(
        config(&params)["thinkingConfig"],
        json!({"thinkingBudget": 0})
    );
    params.effort = Some("low".into());
    let level = json!({"includeThoughts": true, "thinkingLevel": "low"});
    assert_eq!(config(&params)["thinkingConfig"], level);
}

#[test]
fn model_name_is_percent_encoded_in_the_path() {
    let path = |model: &str| {
        let request = request(vec![user("Hi")]);
        GeminiDialect
            .encode(&EncodeInput {
                provider: "there",
                model,
                request: &request,
                params: &ModelParams::default(),
            })
            .path
    };
    let suffix = ":streamGenerateContent?alt=sse";
    assert_eq!(
        path("tunedModels/mine"),
        format!("/v1beta/tunedModels/mine{suffix}")
    );
    assert_eq!(
        path("a?b#c é"),
        format!("/v1beta/models/a%3Fb%23c%20%C3%A9{suffix}")
    );
}

#[test]
fn gemini_conversation_has_every_signature_on_its_part() {
    let code = json!({"executableCode": {"code": "1"}, "thoughtSignature": "s4"});
    let provider_data = [
        (0, json!({"thoughtSignature": "s0"})),
        (1, json!({"thoughtSignature": "s1"})),
        (2, json!({"part": code})),
        (3, json!({"id": "fn_a", "thoughtSignature": "s3"})),
        (5, json!({"thoughtSignature": "s5"})),
    ];
    let message = assistant(
        vec![
            thinking("Hm."),
            ContentBlock::text("I look."),
            ContentBlock::text(""),
            tool_use(1, "Paris"),
            tool_use(2, "Rome"),
        ],
        "there",
        &provider_data,
    );
    let messages = vec![
        user("Weather?"),
        message,
        result(2, json!("20"), false),
        result(1, json!({"reason": "no such city"}), true),
        user("And?"),
    ];
    let call = |city: &str| json!({"name": "get_weather", "args": {"city": city}});
    let mut own_call = call("Paris");
    own_call["id"] = "fn_a".into();
    let model_parts = json!([
        {"text": "Hm.", "thought": true, "thoughtSignature": "s0"},
        {"text": "I look.", "thoughtSignature": "s1"},
        {"executableCode": {"code": "1"}, "thoughtSignature": "s4"},
        {"functionCall": own_call, "thoughtSignature": "s3"},
        {"functionCall": call("Rome")},
        {"text": "", "thoughtSignature": "s5"},
    ]);
    let failure = json!({"error": {"reason": "no such city"}});
    let success = json!({"output": "20"});
    let responses = json!([
        {"functionResponse": {"name": "get_weather", "id": "fn_a", "response": failure}},
        {"functionResponse": {"name": "get_weather", "response": success}},
    ]);
    let expected = json!([
        {"role": "user", "parts": [{"text": "Weather?"}]},
        {"role": "model", "parts": model_parts},
        {"role": "user", "parts": responses},
        {"role": "user", "parts": [{"text": "And?"}]},
    ]);
    assert_eq!(conversation(&GeminiDialect, messages), expected);
}

#[test]
fn older_gemini_models_get_no_placeholder_signature() {
    let request = request(vec![
        user("Hi"),
        assistant(vec![tool_use(1, "Paris")], "elsewhere", &[]),
        result(1, json!("20"), false),
    ]);
    let part = |model: &str| {
        let body = GeminiDialect
            .encode(&EncodeInput {
                provider: "there",
                model,
                request: &request,
                params: &ModelParams::default(),
            })
            .body;
        body["contents"][1]["parts"][0].clone()
    };
    assert_eq!(part("gemini-2.5-flash").get("thoughtSignature"), None);
    assert!(part("gemini-4-argon").get("thoughtSignature").is_some());
}
