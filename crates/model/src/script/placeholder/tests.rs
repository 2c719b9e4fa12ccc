//! What placeholders are filled with, and what is left unchanged. Paths into tool results, missing
//! values and typed inputs are covered.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::{ContentBlock, Role, ToolUseId, Ulid};

use super::*;
use crate::request::{ModelMessage, ModelRequest};

/// A request in which each tool of `results` was called, in this order.
fn request(user: &str, results: &[(&str, Value)]) -> ModelRequest {
    let message = |role, content| Arc::new(ModelMessage::new(role, content));
    let mut messages = vec![message(Role::User, vec![ContentBlock::text(user)])];
    for (n, (tool, content)) in results.iter().enumerate() {
        let id = ToolUseId(Ulid(n as u128 + 1));
        let tool_use = ContentBlock::ToolUse {
            id,
            name: (*tool).into(),
            input: json!({}),
        };
        let tool_result = ContentBlock::ToolResult {
            tool_use_id: id,
            content: content.clone(),
            is_error: false,
        };
        messages.push(message(Role::Assistant, vec![tool_use]));
        messages.push(message(Role::Tool, vec![tool_result]));
    }
    ModelRequest {
        model: "scripted:default".into(),
        agent: "orchestrator".into(),
        call: 1,
        attempt: 1,
        locale: "de-AT".into(),
        system: None,
        messages,
        tools: [].into(),
    }
}

fn offers() -> Value {
    json!({"items": [{"title": "Oat", "points": 5}, {"title": "Rye"}], "total": 2})
}

#[test]
fn placeholders_are_filled_once_and_unknown_ones_stay() {
    let request = request("say {{user}}", &[("clock", json!("noon"))]);
    let view = RequestView::new(&request);
    assert_eq!(
        fill(
            &view,
            "{{last_tool_result}} {{locale}}: {{user}}, {{x}} {{",
            100
        ),
        "noon de-AT: say {{user}}, {{x}} {{"
    );
    assert_eq!(fill(&view, "ä{{user}}{{user}}", 6), "äsay ");
    assert_eq!(
        fill_value(&view, &json!({"a": ["{{user}}", 1], "{{user}}": null}), 100),
        json!({"a": ["say {{user}}", 1], "{{user}}": null})
    );
}

#[test]
fn result_placeholder_follows_its_path_or_is_empty() {
    let request = request(
        "x",
        &[
            ("search", json!("stale")),
            ("search", offers()),
            ("ask", json!(r#"{"text":"two \"new\" ones"}"#)),
            ("fail", json!("{not json")),
            ("part", json!({"data": offers(), "caveat": true})),
        ],
    );
    let view = RequestView::new(&request);
    for (text, expected) in [
        ("{{result.ask.text}}", "two \"new\" ones"),
        ("{{result.search.items.1.title}}", "Rye"),
        ("{{result.search.items.*.title}}", "Oat, Rye"),
        ("{{result.search.items.*.points}}", "5"),
        (
            "{{result.search.total}} of {{result.search.items.0}}",
            "2 of {\"title\":\"Oat\",\"points\":5}",
        ),
        ("{{result.fail}}", "{not json"),
        ("{{result.part.data?.items.*.title}}", "Oat, Rye"),
        ("{{result.search.data?.items.*.title}}", "Oat, Rye"),
        (
            "<{{result.nobody}}{{result.search.items.9.title}}{{result.fail.text}}>",
            "<>",
        ),
        (
            "<{{result.search.items.*.nothing}}{{result.nobody.*}}>",
            "<>",
        ),
    ] {
        assert_eq!(fill(&view, text, 1000), expected, "{text}");
    }
}

#[test]
fn sole_result_placeholder_in_an_input_keeps_the_type() {
    let request = request("x", &[("search", offers())]);
    let view = RequestView::new(&request);
    let input = json!({
        "titles": "{{result.search.items.*.title}}",
        "total": "{{result.search.total}}",
        "words": "all: {{result.search.total}}",
        "none": "{{result.nobody.items.*.id}}",
        "nothing": "{{result.nobody.id}}",
    });
    assert_eq!(
        fill_value(&view, &input, 1000),
        json!({"titles": ["Oat", "Rye"], "total": 2, "words": "all: 2", "none": [], "nothing": ""})
    );
}

#[test]
fn request_placeholder_contains_the_whole_request() {
    let mut request = request("hello", &[("clock", json!("noon"))]);
    request.system = Some("Be kind.".into());
    let view = RequestView::new(&request);
    let request_json: Value =
        serde_json::from_str(&fill(&view, "{{request}}", 10_000)).expect("JSON");
    assert_eq!(request_json["system"], "Be kind.");
    assert_eq!(request_json["messages"][0]["content"][0]["text"], "hello");
    assert_eq!(request_json["messages"][2]["content"][0]["content"], "noon");
}
