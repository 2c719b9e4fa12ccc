//! Messages in the middle of a tool loop that another provider began: a turn that asks for tools
//! and does not begin with thinking cannot be followed by thinking with a budget.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Kept, Role, ToolUseId, Ulid};
use turnwire_model::dialect::anthropic::Anthropic;
use turnwire_model::{Dialect, Params, Request, Said};

fn user(text: &str) -> Said {
    Said::new(Role::User, vec![ContentBlock::text(text)])
}

fn thinking() -> ContentBlock {
    ContentBlock::Thinking {
        text: "Hm.".into(),
        signature: Some("seal".into()),
    }
}

fn asks(n: u128) -> ContentBlock {
    ContentBlock::ToolUse {
        id: ToolUseId(Ulid(n)),
        name: "get_weather".into(),
        input: json!({}),
    }
}

fn result(n: u128) -> Said {
    let block = ContentBlock::ToolResult {
        tool_use_id: ToolUseId(Ulid(n)),
        content: json!("20"),
        is_error: false,
    };
    Said::new(Role::Tool, vec![block])
}

fn said(by: &str, content: Vec<ContentBlock>) -> Said {
    Said {
        kept: Kept {
            by: by.into(),
            blocks: [(9, json!({"id": "none"}))].into(),
        },
        ..Said::new(Role::Assistant, content)
    }
}

fn with_budget() -> Params {
    Params {
        thinking_tokens: Some(2000),
        temperature: Some(0.5),
        ..Params::default()
    }
}

fn body(messages: Vec<Said>, params: &Params) -> Value {
    let request = Request {
        model: "anthropic:m".into(),
        agent: "orchestrator".into(),
        call: 2,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
    };
    Anthropic.encode("anthropic", "m", &request, params).body
}

#[test]
fn a_tool_loop_that_another_began_goes_on_without_a_budget() {
    let foreign = || said("openai", vec![thinking(), asks(1)]);
    let loop_of = |last: Said| vec![user("Weather?"), last, result(1)];
    let sent = body(loop_of(foreign()), &with_budget());
    assert_eq!(sent.get("thinking"), None);
    assert_eq!(sent.get("temperature"), None, "the version stays the same");
    assert!(Anthropic.headers_for(&with_budget()).is_empty());
    let mut hurried = loop_of(foreign());
    hurried.push(user("Hurry."));
    assert_eq!(body(hurried, &with_budget()).get("thinking"), None);
    // One's own begins with thinking.
    let own = loop_of(said("anthropic", vec![thinking(), asks(1)]));
    assert_eq!(body(own, &with_budget())["thinking"]["budget_tokens"], 2000);
    let adaptive = Params {
        effort: Some("low".into()),
        ..Params::default()
    };
    let sent = body(loop_of(foreign()), &adaptive);
    assert_eq!(sent["thinking"]["type"], "adaptive", "which asks for none");
}

#[test]
fn the_next_turn_thinks_again() {
    let messages = vec![
        user("Weather?"),
        said("openai", vec![asks(1)]),
        result(1),
        said("openai", vec![ContentBlock::text("20 degrees.")]),
        user("And tomorrow?"),
    ];
    let sent = body(messages, &with_budget());
    assert_eq!(sent["thinking"]["budget_tokens"], 2000);
}

#[test]
fn thinking_that_is_not_at_the_begin_is_left_out_with_the_budget() {
    let messages = vec![
        user("Weather?"),
        said("openai", vec![ContentBlock::text("I look.")]),
        said("anthropic", vec![thinking(), asks(1)]),
        result(1),
    ];
    let sent = body(messages, &with_budget());
    assert_eq!(sent.get("thinking"), None);
    let kinds = sent["messages"][1]["content"].as_array().expect("blocks");
    let kinds: Vec<&Value> = kinds.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use"]);
}
