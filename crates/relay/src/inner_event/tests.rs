//! Tests of the parser of inner events.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(event: &Value) -> Result<InnerEvent, MalformedEvent> {
    parse(&event.to_string(), &TypeMap::new())
}

// S1-032
#[test]
fn nested_and_flat_fields_mean_the_same() {
    let flat = json!({"type": "tool_call_start", "id": "c1", "name": "search", "tool_type": "mcp"});
    let nested = json!({"type": "tool_call_start", "tool_call": {"id": "c1", "name": "search", "type": "mcp"}});
    assert_eq!(read(&flat), read(&nested));
    assert_eq!(
        read(&flat),
        Ok(InnerEvent::ToolCallStart {
            id: "c1".into(),
            name: "search".into(),
            tool_type: ToolType::Mcp,
        })
    );
    let flat = json!({"type": "error", "code": "RATE_LIMIT_ERROR"});
    let nested = json!({"type": "error", "error": {"code": "RATE_LIMIT_ERROR"}, "is_final": true});
    assert_eq!(read(&flat), read(&nested));
    let flat = json!({"type": "usage", "input_tokens": 2, "output_tokens": 3});
    let nested = json!({"type": "usage", "usage": {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}});
    assert_eq!(read(&flat), read(&nested));
}

#[test]
fn only_the_fields_that_an_event_needs_are_read() {
    // A dump of a model with optional fields, and fields of other events.
    let text = json!({
        "type": "text", "content": "x", "is_error": null, "id": 7, "usage": [], "tool_call": "no",
        "error": null, "chunk": 7, "delta": {"a": 1}, "name": {}, "is_final": "maybe",
    });
    assert_eq!(read(&text), Ok(InnerEvent::Text("x".into())));
    let weather = json!({"type": "weather", "id": 7, "content": [1]});
    assert_eq!(read(&weather), Ok(InnerEvent::Unknown));
    // A message of a tool has an id of its own.
    let result = json!({"type": "tool_result", "id": "m1", "tool_call_id": "c1", "content": 1});
    let expected = InnerEvent::ToolResult {
        id: "c1".into(),
        content: json!(1),
    };
    assert_eq!(read(&result), Ok(expected));
    let end = json!({"type": "tool_call_end", "id": "c1", "is_error": null});
    let expected = InnerEvent::ToolCallEnd {
        id: "c1".into(),
        is_error: false,
    };
    assert_eq!(read(&end), Ok(expected));
    let usage = json!({
        "type": "usage", "input_tokens": 2.0, "output_tokens": 3, "cached_tokens": null, "reasoning_tokens": -1,
    });
    let expected = TokenUsage {
        input_tokens: 2,
        output_tokens: 3,
        total_tokens: 5,
        ..TokenUsage::default()
    };
    assert_eq!(read(&usage), Ok(InnerEvent::Usage(expected)));
    let escaped = json!({"type": "text", "content": "a\n\"b\" \u{1f600}"});
    let expected = InnerEvent::Text("a\n\"b\" \u{1f600}".into());
    assert_eq!(read(&escaped), Ok(expected));
}

// S1-093
#[test]
fn free_text_of_a_failure_is_not_read() {
    let told = json!({
        "type": "error",
        "error": {
            "code": "NullPointerException at db-7",
            "sub_agent_id": "shop at db-7",
            "enricher_id": "/srv/secret",
            "reason": "Host db-7 is down",
            "message": "db-7",
        },
    });
    let Ok(InnerEvent::Error { error, is_final }) = read(&told) else {
        panic!("an error")
    };
    assert!(is_final);
    assert_eq!(error, ErrorCode::InternalError.into());
    let kept = json!({"type": "error", "error": {"code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": "upstream_timeout"}});
    let Ok(InnerEvent::Error { error, .. }) = read(&kept) else {
        panic!("an error")
    };
    assert_eq!(
        error,
        TurnError::envelope("offer_search", Reason::UpstreamTimeout)
    );
}

#[test]
fn ids_and_names_are_bounded() {
    let with = |id: &str| json!({"type": "tool_call_end", "id": id});
    assert!(read(&with(&"i".repeat(NAME_BYTES_MAX))).is_ok());
    for bad in ["", &"i".repeat(NAME_BYTES_MAX + 1)] {
        assert_eq!(read(&with(bad)), Err(MalformedEvent));
    }
    let worker =
        json!({"type": "tool_call_start", "id": "c1", "name": "n", "tool_type": "delegate"});
    let Ok(InnerEvent::ToolCallStart { tool_type, .. }) = read(&worker) else {
        panic!("a tool")
    };
    assert_eq!(tool_type, ToolType::Function, "no worker of this server");
    for (name, expected) in [
        ("render_card", ToolType::Render),
        ("ask_shop", ToolType::SubAgent),
        ("search", ToolType::Function),
    ] {
        let start = json!({"type": "tool_call_start", "id": "c1", "name": name});
        let Ok(InnerEvent::ToolCallStart { tool_type, .. }) = read(&start) else {
            panic!("a tool");
        };
        assert_eq!(tool_type, expected, "{name}");
    }
}

#[test]
fn what_is_no_event_is_malformed_and_new_types_are_not() {
    for data in [
        "",
        "Hello",
        "[1]",
        "{}",
        "null",
        "{\"type\":7}",
        "{\"type\":\"text\"}",
        "{\"type\":\"text\",\"content\":7}",
        "{\"event_type\":7}",
    ] {
        assert_eq!(parse(data, &TypeMap::new()), Err(MalformedEvent), "{data}");
    }
    assert_eq!(
        parse("{\"type\":\"weather\"}", &TypeMap::new()),
        Ok(InnerEvent::Unknown)
    );
    assert_eq!(parse(" [DONE] ", &TypeMap::new()), Ok(InnerEvent::Sentinel));
}

proptest! {
    #[test]
    fn no_data_breaks_the_parser(data in "\\PC{0,200}", kind in "[a-z_]{0,20}", content in "\\PC{0,50}") {
        let _ = parse(&data, &TypeMap::new());
        let event = json!({"type": kind, "content": content, "id": content, "usage": content, "error": content});
        let _ = read(&event);
    }
}

// S1-033
#[test]
fn own_names_of_an_upstream_mean_what_the_map_says() {
    let types = TypeMap::from([
        ("token".to_owned(), InnerType::Text),
        ("text".to_owned(), InnerType::Reasoning),
        ("done".to_owned(), InnerType::Completed),
    ]);
    let read = |json: &str| parse(json, &types).expect("an event");
    let token = read(r#"{"type":"token","content":"a"}"#);
    assert_eq!(token, InnerEvent::Text("a".into()));
    let text = read(r#"{"type":"text","content":"b"}"#);
    assert_eq!(text, InnerEvent::Reasoning("b".into()));
    assert_eq!(read(r#"{"type":"done"}"#), InnerEvent::Completed);
    assert_eq!(read(r#"{"type":"completed"}"#), InnerEvent::Completed);
    assert_eq!(read(r#"{"type":"toke"}"#), InnerEvent::Unknown);
}
