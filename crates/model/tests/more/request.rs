//! Requests, word for word.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Kept, Role, ToolUseId, Ulid};
use turnwire_model::dialect::gemini::Gemini;
use turnwire_model::dialect::openai_responses::OpenAiResponses;
use turnwire_model::{Dialect, Encoded, Params, Request, Said, ToolSpec};

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

fn result(n: u128, content: Value, is_error: bool) -> Said {
    let block = ContentBlock::ToolResult {
        tool_use_id: use_id(n),
        content,
        is_error,
    };
    Said::new(Role::Tool, vec![block])
}

fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking {
        text: text.into(),
        signature: None,
    }
}

fn assistant(content: Vec<ContentBlock>, by: &str, kept: &[(u32, Value)]) -> Said {
    Said {
        role: Role::Assistant,
        content,
        kept: Kept {
            by: by.into(),
            blocks: kept.iter().cloned().collect(),
        },
    }
}

fn user(text: &str) -> Said {
    Said::new(Role::User, vec![ContentBlock::text(text)])
}

fn request(messages: Vec<Said>) -> Request {
    let tool = ToolSpec {
        name: "get_weather".into(),
        description: "Weather in a city.".into(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    };
    Request {
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

fn encode(dialect: &dyn Dialect, messages: Vec<Said>, params: &Params) -> Encoded {
    dialect.encode("there", "big", &request(messages), params)
}

/// The input of Responses, or the contents of Gemini.
fn conversation(dialect: &dyn Dialect, messages: Vec<Said>) -> Value {
    let mut body = encode(dialect, messages, &Params::default()).body;
    let name = if dialect.name() == "gemini" {
        "contents"
    } else {
        "input"
    };
    body[name].take()
}

fn params() -> Params {
    let extra = json!({
        "top_p": 0.9, "stream": false, "store": null, "generationConfig": {"topP": 0.9},
    });
    Params {
        max_tokens: Some(100),
        temperature: Some(0.5),
        thinking_tokens: Some(1024),
        effort: None,
        extra: extra.as_object().expect("fields").clone(),
    }
}

#[test]
fn a_first_request_in_responses() {
    let encoded = encode(&OpenAiResponses, vec![user("Hi")], &Params::default());
    assert_eq!(encoded.path, "/responses");
    let tool = json!({
        "type": "function",
        "name": "get_weather",
        "description": "Weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": false,
    });
    let words = json!([{"type": "input_text", "text": "Hi"}]);
    let expected = json!({
        "model": "big",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": words}],
        "tools": [tool],
        "stream": true,
        "store": false,
    });
    assert_eq!(encoded.body, expected);
}

#[test]
fn wishes_in_responses() {
    let mut params = params();
    let body = encode(&OpenAiResponses, vec![user("Hi")], &params).body;
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
    let body = encode(&OpenAiResponses, vec![user("Hi")], &params).body;
    assert_eq!(
        body["reasoning"],
        json!({"effort": "low", "summary": "auto"})
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
}

#[test]
fn a_conversation_in_responses_with_what_the_vendor_wants_back() {
    let sealed = json!({
        "type": "reasoning", "id": "rs_a", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "Hm."}],
    });
    let hidden =
        json!({"type": "reasoning", "id": "rs_b", "encrypted_content": "gBBB", "summary": []});
    let search = json!({"type": "web_search_call", "id": "ws_a", "status": "completed"});
    let kept = [
        (0, sealed),
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
    let said = assistant(
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
        &kept,
    );
    let messages = vec![
        user("Weather?"),
        said,
        result(2, json!({"degrees": 20}), false),
        result(1, json!("no such city"), true),
        user("And?"),
    ];
    let heard = |text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"type": "message", "role": "user", "content": content})
    };
    let answer = |text: &str| json!({"type": "output_text", "text": text});
    let refusal = json!({"type": "refusal", "refusal": "Not there."});
    let ours = use_id(2).to_string();
    let expected = json!([
        heard("Weather?"),
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
            "type": "function_call", "call_id": ours, "name": "get_weather",
            "arguments": r#"{"city":"Rome"}"#,
        },
        {"type": "web_search_call", "id": "ws_a", "status": "completed"},
        {
            "type": "function_call_output", "call_id": "call_a",
            "output": r#"{"error":"no such city"}"#,
        },
        {"type": "function_call_output", "call_id": ours, "output": r#"{"degrees":20}"#},
        heard("And?"),
    ]);
    assert_eq!(conversation(&OpenAiResponses, messages), expected);
}

#[test]
fn stored_items_are_sent_with_their_ids() {
    let kept = [
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
        let said = assistant(content.clone(), "there", &kept);
        vec![user("Hi"), said, result(1, json!("20"), false)]
    };
    let mut params = Params::default();
    params.extra.insert("store".into(), true.into());
    let stored = encode(&OpenAiResponses, messages(), &params).body;
    assert_eq!(stored["store"], true);
    let item = |n: usize| &stored["input"][n];
    assert_eq!(
        *item(1),
        json!({"type": "reasoning", "id": "rs_a", "summary": []})
    );
    assert_eq!([&item(2)["id"], &item(2)["status"]], ["msg_a", "completed"]);
    assert_eq!([&item(3)["id"], &item(3)["call_id"]], ["fc_a", "call_a"]);

    // Without, there is nothing in that reasoning that anybody could read.
    let unstored = conversation(&OpenAiResponses, messages());
    assert_eq!(unstored[1]["type"], "message");
    let ids = unstored.as_array().expect("items").iter();
    assert_eq!(ids.filter(|item| item.get("id").is_some()).count(), 0);
}

#[test]
fn what_another_provider_gave_is_not_sent() {
    let kept = [
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
        let said = assistant(content.clone(), "elsewhere", &kept);
        vec![user("Hi"), said, result(1, json!("20"), false)]
    };
    let ours = use_id(1).to_string();
    let responses = conversation(&OpenAiResponses, messages());
    let words = json!([{"type": "output_text", "text": "I look."}]);
    assert_eq!(
        responses[1],
        json!({"type": "message", "role": "assistant", "content": words})
    );
    assert_eq!(responses[2]["call_id"], json!(ours));
    assert_eq!(responses[3]["call_id"], json!(ours));
    assert_eq!(responses.as_array().map(Vec::len), Some(4));

    let gemini = conversation(&Gemini, messages());
    let call = json!({"name": "get_weather", "args": {"city": "Paris"}});
    let foreign = "skip_thought_signature_validator";
    let call = json!({"functionCall": call, "thoughtSignature": foreign});
    let parts = json!([{"text": "I look."}, call]);
    assert_eq!(gemini[1], json!({"role": "model", "parts": parts}));
}

#[test]
fn a_first_request_in_gemini() {
    let encoded = encode(&Gemini, vec![user("Hi")], &Params::default());
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
fn wishes_in_gemini() {
    let config = |params: &Params| {
        let mut body = encode(&Gemini, vec![user("Hi")], params).body;
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
fn a_models_name_cannot_lead_elsewhere() {
    let path = |model: &str| {
        let request = request(vec![user("Hi")]);
        Gemini
            .encode("there", model, &request, &Params::default())
            .path
    };
    let rest = ":streamGenerateContent?alt=sse";
    assert_eq!(
        path("tunedModels/mine"),
        format!("/v1beta/tunedModels/mine{rest}")
    );
    assert_eq!(
        path("a?b#c é"),
        format!("/v1beta/models/a%3Fb%23c%20%C3%A9{rest}")
    );
}

#[test]
fn a_conversation_in_gemini_with_every_seal_on_its_part() {
    let code = json!({"executableCode": {"code": "1"}, "thoughtSignature": "s4"});
    let kept = [
        (0, json!({"thoughtSignature": "s0"})),
        (1, json!({"thoughtSignature": "s1"})),
        (2, json!({"part": code})),
        (3, json!({"id": "fn_a", "thoughtSignature": "s3"})),
        (5, json!({"thoughtSignature": "s5"})),
    ];
    let said = assistant(
        vec![
            thinking("Hm."),
            ContentBlock::text("I look."),
            ContentBlock::text(""),
            tool_use(1, "Paris"),
            tool_use(2, "Rome"),
        ],
        "there",
        &kept,
    );
    let messages = vec![
        user("Weather?"),
        said,
        result(2, json!("20"), false),
        result(1, json!({"reason": "no such city"}), true),
        user("And?"),
    ];
    let call = |city: &str| json!({"name": "get_weather", "args": {"city": city}});
    let mut own = call("Paris");
    own["id"] = "fn_a".into();
    let spoken = json!([
        {"text": "Hm.", "thought": true, "thoughtSignature": "s0"},
        {"text": "I look.", "thoughtSignature": "s1"},
        {"executableCode": {"code": "1"}, "thoughtSignature": "s4"},
        {"functionCall": own, "thoughtSignature": "s3"},
        {"functionCall": call("Rome")},
        {"text": "", "thoughtSignature": "s5"},
    ]);
    let failed = json!({"error": {"reason": "no such city"}});
    let went_well = json!({"output": "20"});
    let responses = json!([
        {"functionResponse": {"name": "get_weather", "id": "fn_a", "response": failed}},
        {"functionResponse": {"name": "get_weather", "response": went_well}},
    ]);
    let expected = json!([
        {"role": "user", "parts": [{"text": "Weather?"}]},
        {"role": "model", "parts": spoken},
        {"role": "user", "parts": responses},
        {"role": "user", "parts": [{"text": "And?"}]},
    ]);
    assert_eq!(conversation(&Gemini, messages), expected);
}

#[test]
fn old_models_are_sent_no_seal_that_they_did_not_give() {
    let request = request(vec![
        user("Hi"),
        assistant(vec![tool_use(1, "Paris")], "elsewhere", &[]),
        result(1, json!("20"), false),
    ]);
    let part = |model: &str| {
        let body = Gemini
            .encode("there", model, &request, &Params::default())
            .body;
        body["contents"][1]["parts"][0].clone()
    };
    assert_eq!(part("gemini-2.5-flash").get("thoughtSignature"), None);
    assert!(part("gemini-4-argon").get("thoughtSignature").is_some());
}

#[test]
fn keys_stand_in_the_headers_of_each_vendor() {
    let headers = OpenAiResponses.headers(Some("k"));
    assert_eq!(headers, [("authorization", "Bearer k".to_owned())]);
    assert_eq!(
        Gemini.headers(Some("k")),
        [("x-goog-api-key", "k".to_owned())]
    );
    assert!(OpenAiResponses.headers(None).is_empty());
    assert!(Gemini.headers(None).is_empty());
}
