//! What compatible servers of Chat Completions want back: reasoning by the name it came by, its
//! details, and a call's fields of the server's own. It goes back to the same server only.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role, ToolUseId, Ulid};
use turnwire_model::dialect::openai_chat::OpenAiChat;
use turnwire_model::{Dialect, Params, Request, Said};

use crate::chat::openai_chat::{answer, calls, chunk};
use crate::chat::support::lines;
use crate::told::message::heard;

fn call() -> String {
    calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}]))
}

fn reasoning(name: &str, words: &str) -> String {
    chunk(json!({name: words}))
}

/// The model's turn in the next request to `provider`, with a result for every call.
fn sent_to(provider: &str, chunks: &[String]) -> Value {
    let (deltas, error) = answer(chunks, "tool_calls");
    assert_eq!(error, None);
    let said = heard("deep", &deltas, 100);
    let results = (0..said.content.len() as u128).map(|n| ContentBlock::ToolResult {
        tool_use_id: ToolUseId(Ulid(100 + n)),
        content: json!("20"),
        is_error: false,
    });
    let results = Said::new(Role::Tool, results.collect());
    let hi = Said::new(Role::User, vec![ContentBlock::text("Hi")]);
    let request = Request {
        model: "deep:m".into(),
        agent: "orchestrator".into(),
        call: 2,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: [hi, said, results].into_iter().map(Arc::new).collect(),
        tools: [].into(),
    };
    let params = Params::default();
    let mut body = OpenAiChat.encode(provider, "m", &request, &params).body;
    body["messages"][1].take()
}

fn sent(chunks: &[String]) -> Value {
    sent_to("deep", chunks)
}

#[test]
fn reasoning_content_goes_back_with_the_calls_it_led_to() {
    let name = "reasoning_content";
    let thought = [reasoning(name, "Two "), reasoning(name, "cities."), call()];
    let told = lines(answer(&thought, "tool_calls"));
    assert_eq!(
        told[..3],
        [
            "0 thinking Two ",
            r#"0 keep {"reasoning_content":true}"#,
            "0 thinking cities."
        ]
    );
    assert_eq!(sent(&thought)[name], "Two cities.");
    assert_eq!(sent(&thought)["tool_calls"][0]["id"], "a");
    let elsewhere = sent_to("other", &thought);
    assert_eq!(elsewhere.get(name), None);
    assert_eq!(elsewhere["tool_calls"].as_array().map(Vec::len), Some(1));
    // Without calls the server that gave it refuses it, or does not want it.
    let words = [reasoning(name, "Hm."), chunk(json!({"content": "Hi."}))];
    assert_eq!(sent(&words), json!({"role": "assistant", "content": "Hi."}));
}

#[test]
fn reasoning_by_another_name_does_not_go_back() {
    let said = sent(&[reasoning("reasoning", "Hm."), call()]);
    assert_eq!(said.get("reasoning_content"), None);
    assert_eq!(said.get("reasoning"), None);
}

#[test]
fn reasoning_content_that_was_empty_goes_back_empty() {
    // Whoever names the field wants it with every call, though the model may not have thought.
    let said = sent(&[reasoning("reasoning_content", ""), call()]);
    assert_eq!(said["reasoning_content"], "");
    let null = chunk(json!({"reasoning_content": null}));
    assert_eq!(sent(&[null, call()]).get("reasoning_content"), None);
    let words = [
        reasoning("reasoning_content", ""),
        chunk(json!({"content": "a"})),
    ];
    assert_eq!(lines(answer(&words, "stop")).len(), 2, "nothing is kept");
}

#[test]
fn details_of_reasoning_are_put_together_and_go_back_in_their_order() {
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
    let whole = json!([
        {"type": "reasoning.text", "text": "Two cities.", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "e", "id": "rs_a", "index": 1},
    ]);
    assert_eq!(sent(&chunks)["reasoning_details"], whole);
    assert_eq!(sent_to("other", &chunks).get("reasoning_details"), None);
}

#[test]
fn details_without_an_index_are_joined_only_where_they_are_text() {
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
    let told = lines(answer(&chunks, "stop"));
    assert_eq!(told[0], "0 text Hi.");
    assert!(told[1].starts_with("1 keep "), "hidden: {told:?}");
    assert_eq!(
        sent(&chunks),
        json!({
            "role": "assistant",
            "content": "Hi.",
            "reasoning_details": [text("ab"), hidden("c"), hidden("d")],
        })
    );
}

#[test]
fn a_calls_own_fields_go_back_on_it() {
    let extra = json!({"google": {"thought_signature": "s"}});
    let with = |index: u32, fields: Value| {
        let mut call = json!({"index": index, "id": format!("c{index}"), "type": "function",
            "function": {"name": "t", "arguments": "{}"}});
        let call_fields = call.as_object_mut().expect("a call");
        call_fields.extend(fields.as_object().expect("fields").clone());
        calls(json!([call]))
    };
    let chunks = [
        with(0, json!({"extra_content": extra, "empty": null})),
        with(1, json!({})),
    ];
    let function = json!({"name": "t", "arguments": "{}"});
    assert_eq!(
        sent(&chunks)["tool_calls"],
        json!([
            {"id": "c0", "type": "function", "function": function, "extra_content": extra},
            {"id": "c1", "type": "function", "function": function},
        ])
    );
    let elsewhere = sent_to("other", &chunks);
    assert_eq!(elsewhere["tool_calls"][0].get("extra_content"), None);
    // It may come late, and again with every piece.
    let piece = json!([{"index": 0, "extra_content": extra, "function": {"arguments": " "}}]);
    let late = [with(0, json!({})), calls(piece.clone()), calls(piece)];
    assert_eq!(sent(&late)["tool_calls"][0]["extra_content"], extra);
    let told = lines(answer(&late, "tool_calls"));
    let kept = told.iter().filter(|line| line.contains(" keep "));
    assert_eq!(kept.count(), 2, "once with its id, once with the field");
}

#[test]
fn what_is_kept_is_bounded() {
    let huge = "x".repeat(300 << 10);
    let details = json!([{"type": "reasoning.encrypted", "data": huge}]);
    let call = json!([{"index": 0, "id": "a", "extra_content": huge,
        "function": {"name": "t", "arguments": "{}"}}]);
    let chunks = [chunk(json!({"reasoning_details": details})), calls(call)];
    let said = sent(&chunks);
    assert_eq!(said.get("reasoning_details"), None);
    assert_eq!(said["tool_calls"][0].get("extra_content"), None);
    assert_eq!(said["tool_calls"][0]["id"], "a");
    // Half of what only makes sense whole is nothing.
    let half = json!([{"type": "reasoning.text", "text": "x".repeat(100 << 10), "index": 0}]);
    let chunks = vec![chunk(json!({"reasoning_details": half})); 4];
    assert_eq!(lines(answer(&chunks, "stop")).len(), 1);
}
