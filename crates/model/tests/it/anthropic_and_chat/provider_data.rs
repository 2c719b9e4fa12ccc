//! Data that compatible Chat Completions servers expect back: reasoning in its field, its details,
//! and server-specific fields of a call. It goes back to the same server only.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role, ToolUseId, Ulid};
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::{EncodeInput, ModelMessage, ModelParams, ModelRequest, VendorDialect};

use crate::anthropic_and_chat::openai_chat::{answer, calls, chunk};
use crate::anthropic_and_chat::support::lines;
use crate::decoded::message::from_deltas;

fn call() -> String {
    calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}]))
}

fn reasoning(field: &str, text: &str) -> String {
    chunk(json!({field: text}))
}

/// The model's message in the next request to `provider`, with a result for every call.
fn sent_message_to(provider: &str, chunks: &[String]) -> Value {
    let (deltas, error) = answer(chunks, "tool_calls");
    assert_eq!(error, None);
    let message = from_deltas("deep", &deltas, 100);
    let results = (0..message.content.len() as u128).map(|n| ContentBlock::ToolResult {
        tool_use_id: ToolUseId(Ulid(100 + n)),
        content: json!("20"),
        is_error: false,
    });
    let results = ModelMessage::new(Role::Tool, results.collect());
    let hi = ModelMessage::new(Role::User, vec![ContentBlock::text("Hi")]);
    let request = ModelRequest {
        model: "deep:m".into(),
        agent: "orchestrator".into(),
        call: 2,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: [hi, message, results].into_iter().map(Arc::new).collect(),
        tools: [].into(),
    };
    let params = ModelParams::default();
    let mut body = OpenAiChatDialect
        .encode(&EncodeInput {
            provider,
            model: "m",
            request: &request,
            params: &params,
        })
        .body;
    body["messages"][1].take()
}

fn sent_message(chunks: &[String]) -> Value {
    sent_message_to("deep", chunks)
}

#[test]
fn reasoning_content_goes_back_with_its_calls() {
    let field = "reasoning_content";
    let with_reasoning = [
        reasoning(field, "Two "),
        reasoning(field, "cities."),
        call(),
    ];
    let emitted = lines(answer(&with_reasoning, "tool_calls"));
    assert_eq!(
        emitted[..3],
        [
            "0 thinking Two ",
            r#"0 keep {"reasoning_content":true}"#,
            "0 thinking cities."
        ]
    );
    assert_eq!(sent_message(&with_reasoning)[field], "Two cities.");
    assert_eq!(sent_message(&with_reasoning)["tool_calls"][0]["id"], "a");
    let at_other_provider = sent_message_to("other", &with_reasoning);
    assert_eq!(at_other_provider.get(field), None);
    assert_eq!(
        at_other_provider["tool_calls"].as_array().map(Vec::len),
        Some(1)
    );
    // Without calls the server that sent it rejects or ignores it.
    let text_only = [reasoning(field, "Hm."), chunk(json!({"content": "Hi."}))];
    assert_eq!(
        sent_message(&text_only),
        json!({"role": "assistant", "content": "Hi."})
    );
}

#[test]
fn reasoning_in_another_field_does_not_go_back() {
    let message = sent_message(&[reasoning("reasoning", "Hm."), call()]);
    assert_eq!(message.get("reasoning_content"), None);
    assert_eq!(message.get("reasoning"), None);
}

#[test]
fn empty_reasoning_content_goes_back_empty() {
    // A server with this field expects it with every call, even without reasoning.
    let message = sent_message(&[reasoning("reasoning_content", ""), call()]);
    assert_eq!(message["reasoning_content"], "");
    let null = chunk(json!({"reasoning_content": null}));
    assert_eq!(sent_message(&[null, call()]).get("reasoning_content"), None);
    let text_only = [
        reasoning("reasoning_content", ""),
        chunk(json!({"content": "a"})),
    ];
    assert_eq!(
        lines(answer(&text_only, "stop")).len(),
        2,
        "nothing is kept"
    );
}

#[test]
fn reasoning_details_are_merged_and_go_back_in_order() {
    let details = |reasoning: &str, details: Value| {
        chunk(json!({"reasoning": reasoning, "reasoning_details": details}))
    };
    let text = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0});
    let seal = json!({"type": "reasoning.text", "signature": "s", "text": null, "index": 0});
    let hidden = json!({"type": "reasoning.encrypted", "data": "e", "id": "rs_a", "index": 1});
    let chunks = [
        details("Two ", json!([text("Two ")])),
        details("cities.", json!([text("cities.")])),
        details("", json!([seal])),
        details("", json!([hidden])),
        call(),
    ];
    let merged = json!([
        {"type": "reasoning.text", "text": "Two cities.", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "e", "id": "rs_a", "index": 1},
    ]);
    assert_eq!(sent_message(&chunks)["reasoning_details"], merged);
    assert_eq!(
        sent_message_to("other", &chunks).get("reasoning_details"),
        None
    );
}

#[test]
fn reasoning_details_without_index_merge_only_as_text() {
    let details = |details: Value| chunk(json!({"reasoning_details": details}));
    let hidden = |data: &str| json!({"type": "reasoning.encrypted", "data": data});
    let text = |text: &str| json!({"type": "reasoning.text", "text": text});
    let chunks = [
        details(json!([text("a"), text("b")])),
        details(json!([hidden("c")])),
        details(json!([hidden("d"), 7, null])),
        details(json!("odd")),
        chunk(json!({"content": "Hi."})),
    ];
    let emitted = lines(answer(&chunks, "stop"));
    assert_eq!(emitted[0], "0 text Hi.");
    assert!(emitted[1].starts_with("1 keep "), "hidden: {emitted:?}");
    assert_eq!(
        sent_message(&chunks),
        json!({
            "role": "assistant",
            "content": "Hi.",
            "reasoning_details": [text("ab"), hidden("c"), hidden("d")],
        })
    );
}

#[test]
fn server_specific_call_fields_go_back_with_the_call() {
    let extra = json!({"google": {"thought_signature": "s"}});
    let call_with = |index: u32, fields: Value| {
        let mut call = json!({"index": index, "id": format!("c{index}"), "type": "function",
            "function": {"name": "t", "arguments": "{}"}});
        let call_fields = call.as_object_mut().expect("a call");
        call_fields.extend(fields.as_object().expect("fields").clone());
        calls(json!([call]))
    };
    let chunks = [
        call_with(0, json!({"extra_content": extra, "empty": null})),
        call_with(1, json!({})),
    ];
    let function = json!({"name": "t", "arguments": "{}"});
    assert_eq!(
        sent_message(&chunks)["tool_calls"],
        json!([
            {"id": "c0", "type": "function", "function": function, "extra_content": extra},
            {"id": "c1", "type": "function", "function": function},
        ])
    );
    let at_other_provider = sent_message_to("other", &chunks);
    assert_eq!(
        at_other_provider["tool_calls"][0].get("extra_content"),
        None
    );
    // The field may arrive late, and again with every fragment.
    let piece = json!([{"index": 0, "extra_content": extra, "function": {"arguments": " "}}]);
    let late_chunks = [call_with(0, json!({})), calls(piece.clone()), calls(piece)];
    assert_eq!(
        sent_message(&late_chunks)["tool_calls"][0]["extra_content"],
        extra
    );
    let emitted = lines(answer(&late_chunks, "tool_calls"));
    let keep_lines = emitted.iter().filter(|line| line.contains(" keep "));
    assert_eq!(
        keep_lines.count(),
        2,
        "once with its id, once with the field"
    );
}

#[test]
fn size_of_provider_data_is_bounded() {
    let huge = "x".repeat(300 << 10);
    let details = json!([{"type": "reasoning.encrypted", "data": huge}]);
    let call = json!([{"index": 0, "id": "a", "extra_content": huge,
        "function": {"name": "t", "arguments": "{}"}}]);
    let chunks = [chunk(json!({"reasoning_details": details})), calls(call)];
    let message = sent_message(&chunks);
    assert_eq!(message.get("reasoning_details"), None);
    assert_eq!(message["tool_calls"][0].get("extra_content"), None);
    assert_eq!(message["tool_calls"][0]["id"], "a");
    // Incomplete details are dropped entirely.
    let incomplete = json!([{"type": "reasoning.text", "text": "x".repeat(100 << 10), "index": 0}]);
    let chunks = vec![chunk(json!({"reasoning_details": incomplete})); 4];
    assert_eq!(lines(answer(&chunks, "stop")).len(), 1);
}
