//! What a quote is filled with, and what is left as it is.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::{ContentBlock, Role, ToolUseId, Ulid};

use super::*;
use crate::request::{Request, Said};

/// A request in which each of `results` was asked for and answered, in this order.
fn request(user: &str, results: &[(&str, Value)]) -> Request {
    let said = |role, content| Arc::new(Said::new(role, content));
    let mut messages = vec![said(Role::User, vec![ContentBlock::text(user)])];
    for (n, (tool, content)) in results.iter().enumerate() {
        let id = ToolUseId(Ulid(n as u128 + 1));
        let asks = ContentBlock::ToolUse {
            id,
            name: (*tool).into(),
            input: json!({}),
        };
        let answers = ContentBlock::ToolResult {
            tool_use_id: id,
            content: content.clone(),
            is_error: false,
        };
        messages.push(said(Role::Assistant, vec![asks]));
        messages.push(said(Role::Tool, vec![answers]));
    }
    Request {
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
fn places_are_filled_once_and_others_are_left() {
    let request = request("say {{user}}", &[("clock", json!("noon"))]);
    let asked = Asked::new(&request);
    assert_eq!(
        fill(
            &asked,
            "{{last_tool_result}} {{locale}}: {{user}}, {{x}} {{",
            100
        ),
        "noon de-AT: say {{user}}, {{x}} {{"
    );
    assert_eq!(fill(&asked, "ä{{user}}{{user}}", 6), "äsay ");
    assert_eq!(
        fill_value(
            &asked,
            &json!({"a": ["{{user}}", 1], "{{user}}": null}),
            100
        ),
        json!({"a": ["say {{user}}", 1], "{{user}}": null})
    );
}

#[test]
fn results_are_quoted_by_tool_and_path_and_what_is_not_there_is_empty() {
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
    let asked = Asked::new(&request);
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
        assert_eq!(fill(&asked, text, 1000), expected, "{text}");
    }
}

#[test]
fn an_input_that_is_one_quote_of_a_result_keeps_the_kind_of_the_value() {
    let request = request("x", &[("search", offers())]);
    let asked = Asked::new(&request);
    let input = json!({
        "titles": "{{result.search.items.*.title}}",
        "total": "{{result.search.total}}",
        "words": "all: {{result.search.total}}",
        "none": "{{result.nobody.items.*.id}}",
        "nothing": "{{result.nobody.id}}",
    });
    assert_eq!(
        fill_value(&asked, &input, 1000),
        json!({"titles": ["Oat", "Rye"], "total": 2, "words": "all: 2", "none": [], "nothing": ""})
    );
}

#[test]
fn a_request_is_quoted_with_all_that_the_model_was_shown() {
    let mut request = request("hello", &[("clock", json!("noon"))]);
    request.system = Some("Be kind.".into());
    let asked = Asked::new(&request);
    let quoted: Value = serde_json::from_str(&fill(&asked, "{{request}}", 10_000)).expect("JSON");
    assert_eq!(quoted["system"], "Be kind.");
    assert_eq!(quoted["messages"][0]["content"][0]["text"], "hello");
    assert_eq!(quoted["messages"][2]["content"][0]["content"], "noon");
}
