//! Every type of the inner vocabulary on the chat wire, and the table of both vocabularies.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnwire_e2e::chat::{back, events, whole, words};
use turnwire_event::code::{InnerType, STATUS_FRAME};
use turnwire_event::{Body, MessageStatus, ToolUseId, Ulid};
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::upstream::stream;
use turnwire_wire::pc3::FrameKind;

use super::{completed, relay, response_id, text};

fn tool(kind: &str, id: &str, name: &str) -> Value {
    json!({"type": kind, "id": id, "name": name, "tool_type": "mcp"})
}

/// One of each type, in the order of SC-10.
fn one_of_each() -> Vec<Value> {
    vec![
        response_id("resp_abc"),
        json!({"type": "episode", "episode_id": "ep_1"}),
        json!({"type": "thinking", "content": "first "}),
        json!({"type": "reasoning", "content": "then "}),
        text("Hello "),
        tool("tool_call_start", "c1", "search"),
        json!({"type": "tool_result", "id": "c1", "content": "SECRET RESULT"}),
        json!({"type": "tool_call_end", "id": "c1"}),
        json!({"type": "mcp_list_tools_start", "server": "crm"}),
        json!({"type": "mcp_list_tools_completed", "server": "crm", "tool_count": 3}),
        json!({"type": "mcp_session_start", "server": "crm"}),
        json!({"type": "mcp_session_progress", "server": "crm", "progress": 0.5}),
        text("world"),
        json!({"type": "usage", "input_tokens": 7, "output_tokens": 3, "cached_tokens": 2}),
        json!({"type": "support_content", "content": "SECRET NOTE"}),
        completed(),
    ]
}

fn only<'a>(frames: &'a [Block], event: &str) -> &'a Block {
    let mut found = frames.iter().filter(|frame| frame.event() == event);
    let first = found.next().unwrap_or_else(|| panic!("no {event}"));
    assert!(found.next().is_none(), "{event} twice");
    first
}

// SC-10, S1-029, S1-030, S1-032, S1-033, S1-035, S1-036
#[tokio::test]
async fn every_inner_type_has_its_frame_or_none() {
    let (upstream, fixture) = relay(stream(&one_of_each())).await;
    let (turn, frames) = whole(&fixture.api, "one of each", &ChatSubmit::new("hi")).await;
    assert_eq!(
        events(&frames),
        [
            "response_id",
            "episode",
            "thinking",
            "thinking",
            "reasoning",
            "text",
            "tool_call",
            "tool_completed",
            "mcp_list_tools_start",
            "mcp_list_tools_completed",
            "mcp_session_start",
            "mcp_session_progress",
            "text",
            "usage",
            "completed"
        ]
    );
    for frame in &frames {
        assert_eq!(frame.field("response_id"), "resp_abc", "{frame:?}");
    }
    let mut replayed = back(&fixture.api, "replayed", turn, None).await;
    let replayed = replayed.read_to_end().await.expect("an end");
    // What is sent of MCP servers is kept for a short time only.
    let kept = |frames: &[Block]| -> Vec<String> {
        let kept = frames
            .iter()
            .filter(|frame| !frame.event().starts_with("mcp_"));
        kept.map(|frame| frame.frame_text().to_owned()).collect()
    };
    assert_eq!(kept(&replayed), kept(&frames));
    assert_eq!(words(&frames), "Hello world");
    let called = only(&frames, "tool_call").field("tool_call");
    assert_eq!(
        called,
        &json!({"id": "c1", "name": "search", "type": "mcp"})
    );
    assert_eq!(only(&frames, "tool_completed").field("tool_call"), called);
    let usage = only(&frames, "usage");
    for (field, count) in [
        ("input_tokens", 7),
        ("output_tokens", 3),
        ("total_tokens", 10),
    ] {
        assert_eq!(usage.field(field), &json!(count), "{field}");
    }
    let everything = format!("{frames:?}");
    assert!(!everything.contains("SECRET"), "{everything}");
    // The message of the answer is stored like that of a native agent.
    let path = format!(
        "/sessions/{}/messages",
        fixture.api.turn(turn).await.expect("a turn")["session_id"]
            .as_str()
            .expect("an id")
    );
    let messages = fixture.api.get(&path).await.expect("an answer").json();
    let last = messages["messages"]
        .as_array()
        .expect("a list")
        .last()
        .expect("a message");
    assert_eq!(last["status"], json!(MessageStatus::Complete));
    assert_eq!(upstream.requests().len(), 1);
    fixture.check_history().await;
}

// S1-144, S1-030
#[tokio::test]
async fn note_of_an_upstream_is_kept_and_on_no_wire() {
    let note = json!({"type": "support_content", "content": "SECRET NOTE", "sub_agent_id": "shop"});
    let (_upstream, fixture) = relay(stream(&[text("ok"), note, completed()])).await;
    let events = fixture.turn("hi").await;
    assert!(!format!("{events:?}").contains("SECRET"));
    let log = fixture.log().await;
    assert!(!format!("{log:?}").contains("SECRET"));
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let counted = metrics.lines().find(|line| {
        line.starts_with("turnwire_stream_rendering_policy_applied_total{")
            && line.contains("support_content")
            && line.contains("suppress")
    });
    assert!(
        counted.is_some_and(|line| line.ends_with(" 1")),
        "{counted:?}"
    );
    fixture.check_history().await;
}

// S1-036, D-18, S1-088
#[tokio::test]
async fn result_of_a_render_tool_is_shown() {
    let items = json!([{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2", "title": "Granola"}]);
    let (_upstream, fixture) = relay(stream(&[
        tool("tool_call_start", "c1", "render_offer_list"),
        json!({"type": "tool_result", "id": "c1", "content": {"items": items}}),
        tool("tool_call_end", "c1", "render_offer_list"),
        tool("tool_call_start", "c2", "render_card"),
        json!({"type": "tool_result", "id": "c2", "content": "{\"component\": {\"type\": \"card\"}}"}),
        tool("tool_call_end", "c2", "render_card"),
        text("Here they are."),
        completed(),
    ]))
    .await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "rendered", &question).await;
    let loaded = &only(&frames, "data_loaded").field("data").clone();
    assert_eq!(loaded["type"], "offer_list");
    assert_eq!(loaded["items"], items);
    assert_eq!(
        loaded["key"],
        json!({"ids": [{"id": "OFF_1"}, {"id": "OFF_2"}]})
    );
    assert_eq!(
        only(&frames, "data_loading").field("data")["id"],
        loaded["id"]
    );
    let component = only(&frames, "component");
    assert_eq!(component.field("chunk"), &json!({"type": "card"}));
    let called = json!({"id": "c2", "name": "render_card", "type": "render"});
    assert_eq!(component.field("tool_call"), &called);
    fixture.check_history().await;
}

// SC-10, FR-15, S1-028
#[tokio::test]
async fn id_of_a_tool_names_one_tool_of_the_answer() {
    let own = ToolUseId(Ulid(7)).to_string();
    let long = "c".repeat(129);
    // One id twice, one of another form, one of this server; the last is not ended.
    let ids = ["c1", "c1", "a b", &long, &own, "c2"];
    let mut events = Vec::new();
    for id in ids {
        events.push(tool("tool_call_start", id, "search"));
        events.push(tool("tool_call_end", id, "search"));
    }
    events.pop();
    events.push(completed());
    let (_upstream, fixture) = relay(stream(&events)).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "tools", &question).await;
    let id = |frame: &Block| frame.field("tool_call")["id"].as_str().map(str::to_owned);
    let of = |event: &str| -> Vec<String> {
        let frames = frames.iter().filter(|frame| frame.event() == event);
        frames.filter_map(id).collect()
    };
    let called = of("tool_call");
    assert_eq!(of("tool_completed"), called);
    assert_eq!((called[0].as_str(), called[5].as_str()), ("c1", "c2"));
    for id in &called[1..5] {
        assert!(id.parse::<ToolUseId>().is_ok() && *id != own, "{id}");
    }
    fixture.check_history().await;
}

// S1-037, S1-038
#[test]
fn both_vocabularies_are_in_one_table() {
    let inner: BTreeSet<&str> = InnerType::ALL
        .iter()
        .flat_map(|inner| inner.outward().frames())
        .chain([STATUS_FRAME])
        .collect();
    let outer: BTreeSet<&str> = FrameKind::ALL
        .iter()
        .map(|kind| kind.event_type())
        .collect();
    assert_eq!(inner, outer);
}

// S1-039
#[tokio::test]
async fn degraded_answer_says_so_and_goes_on() {
    let failure = json!({
        "type": "error", "is_final": false,
        "error": {"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop", "message": "null pointer at db-7"},
    });
    let (_upstream, fixture) = relay(stream(&[failure, text("Some of it."), completed()])).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "degraded", &question).await;
    let error = only(&frames, "error");
    assert_eq!(
        (error.field("error"), error.field("is_final")),
        (
            &json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"}),
            &json!(false)
        )
    );
    assert_eq!(frames.last().map(Block::event), Some("completed"));
    assert!(!format!("{frames:?}").contains("db-7"));
    let log = fixture.log().await;
    let degraded = log.iter().any(|event| {
        matches!(&event.body, Body::TurnCompleted(end) if end.status == turnwire_event::code::TurnStatus::Degraded)
    });
    assert!(degraded);
    fixture.check_history().await;
}
