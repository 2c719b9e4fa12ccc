//! Tool calls in Chat Completions streams, which servers identify carelessly. Indices, ids and
//! names may be missing, late or repeated.

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;

use crate::anthropic_and_chat::openai_chat::{NO_USAGE, answer, calls, chunk};
use crate::anthropic_and_chat::support::{OPENAI_CHAT, decode, fixture, lines};
use crate::decoded::lines_so_far;

fn emitted(name: &str) -> Vec<String> {
    lines(decode(&OpenAiChatDialect, fixture(OPENAI_CHAT, name)))
}

// S3-066
#[test]
fn chat_interleaved_calls_are_separated() {
    assert_eq!(
        emitted("interleaved"),
        [
            "begun chatcmpl-One",
            "0 tool get_weather call_a",
            r#"0 keep {"id":"call_a"}"#,
            "1 tool get_time call_b",
            r#"1 keep {"id":"call_b"}"#,
            r#"0 input {"city""#,
            r#"1 input {"zone":"#,
            r#"1 input "UTC""#,
            r#"0 input :"Paris"}"#,
            "0 end",
            "1 input }",
            "1 end",
            "2 text Wait.",
            "stop ToolUse 1+2=3 reasoning 0 cached 0",
        ]
    );
}

// S3-064
#[test]
fn chat_unstreamed_arguments_are_one_fragment_or_none() {
    assert_eq!(
        emitted("unstreamed_arguments"),
        [
            "begun chatcmpl-One",
            "0 tool get_weather call_a",
            r#"0 keep {"id":"call_a"}"#,
            r#"0 input {"city":"Paris"}"#,
            "0 end",
            "1 tool get_time call_b",
            r#"1 keep {"id":"call_b"}"#,
            r#"1 input {"zone":"UTC"}"#,
            "1 end",
            "2 tool ping call_c",
            r#"2 keep {"id":"call_c"}"#,
            "2 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ],
        "and a reason of `stop` behind calls means that tools are asked for"
    );
}

#[test]
fn text_after_a_call_is_a_new_block() {
    let chunks = [
        chunk(json!({"content": "a"})),
        chunk(json!({"content": "b"})),
        calls(json!([{"index": 0, "id": "c", "function": {"name": "t", "arguments": ""}}])),
        chunk(json!({"content": "c"})),
        calls(json!([{"index": 0, "function": {"arguments": "{}"}}])),
    ];
    assert_eq!(
        lines(answer(&chunks, "tool_calls"))[..7],
        [
            "0 text a",
            "0 text b",
            "1 tool t c",
            r#"1 keep {"id":"c"}"#,
            "2 text c",
            "1 input {}",
            "1 end"
        ]
    );
}

#[test]
fn fragment_without_index_or_id_joins_the_last_call() {
    let without_index = [
        calls(json!([{"id": "a", "function": {"name": "t", "arguments": "{"}}])),
        calls(json!([{"function": {"arguments": "\"x\":"}}])),
        calls(json!([{"index": 7, "function": {"arguments": "1}"}}])),
        calls(json!([{"id": "b", "function": {"name": "u", "arguments": "{}"}}])),
    ];
    assert_eq!(
        lines(answer(&without_index, "tool_calls"))[..8],
        [
            "0 tool t a",
            r#"0 keep {"id":"a"}"#,
            "0 input {",
            "0 input \"x\":",
            "0 input 1}",
            "0 end",
            "1 tool u b",
            r#"1 keep {"id":"b"}"#,
        ]
    );
    let late_name = [
        calls(json!([{"index": 1, "function": {"arguments": "{"}}])),
        calls(json!([{"index": 1, "id": 12, "function": {"name": "t"}}])),
        calls(json!([{"index": 1, "function": {"arguments": "}"}}])),
    ];
    assert_eq!(
        lines(answer(&late_name, "tool_calls"))[..5],
        [
            "0 tool t 12",
            r#"0 keep {"id":"12"}"#,
            "0 input {}",
            "0 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ],
        "arguments may come before the name, and ids as numbers"
    );
    let late_id = [
        calls(json!([{"index": 0, "function": {"name": "t", "arguments": "{"}}])),
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "}"}}])),
    ];
    assert_eq!(
        lines(answer(&late_id, "tool_calls"))[..4],
        [
            "0 tool t -",
            "0 input {",
            r#"0 keep {"id":"a"}"#,
            "0 input }"
        ]
    );
}

#[test]
fn calls_with_equal_indices_are_separated_by_id_or_name() {
    let same_index = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
        calls(json!([{"index": 0, "id": "b", "function": {"name": "t", "arguments": "{}"}}])),
    ];
    assert_eq!(lines(answer(&same_index, "stop"))[4], "1 tool t b");
    let without_ids = [
        calls(json!([{"function": {"name": "t", "arguments": "{}"}}])),
        calls(json!([{"function": {"name": "u", "arguments": "{}"}}])),
    ];
    assert_eq!(
        lines(answer(&without_ids, "stop"))[..4],
        ["0 tool t -", "0 input {}", "0 end", "1 tool u -"]
    );
    let repeats_the_name = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t"}}])),
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
    ];
    assert_eq!(lines(answer(&repeats_the_name, "stop"))[0], "0 tool t a");
    let other_index_later = [
        calls(json!([{"index": 1, "id": "a", "function": {"name": "t"}}])),
        calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}])),
    ];
    assert_eq!(lines(answer(&other_index_later, "stop"))[2], "0 input {}");
}

#[test]
fn unnamed_call_is_ignored_unless_it_has_arguments() {
    let empty_call = [
        calls(json!([{"index": 0}, {}])),
        calls(json!([{"index": 1, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
    ];
    assert_eq!(lines(answer(&empty_call, "tool_calls"))[0], "0 tool t a");
    let unnamed_with_arguments = [calls(
        json!([{"index": 0, "function": {"arguments": "{}"}}]),
    )];
    assert_eq!(
        answer(&unnamed_with_arguments, "tool_calls").1,
        Some(LlmErrorClass::Provider.into())
    );
}

#[test]
fn legacy_function_call_is_a_call_without_id() {
    let chunks = [
        chunk(json!({"function_call": {"name": "t", "arguments": ""}})),
        chunk(json!({"function_call": {"arguments": "{}"}})),
    ];
    assert_eq!(
        lines(answer(&chunks, "function_call"))[..3],
        ["0 tool t -", "0 input {}", "0 end"]
    );
}

#[test]
fn chat_call_truncated_before_its_input_stays_open() {
    let chunks = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
        calls(json!([{"index": 1, "id": "b", "function": {"name": "u", "arguments": ""}}])),
    ];
    let emitted = lines(answer(&chunks, "length"));
    assert_eq!(
        emitted[3..],
        [
            "0 end".to_owned(),
            "1 tool u b".to_owned(),
            r#"1 keep {"id":"b"}"#.to_owned(),
            format!("stop MaxTokens {NO_USAGE}"),
        ]
    );
}

#[test]
fn calls_and_their_buffers_are_bounded() {
    let many_calls: Vec<String> = (0..2_000)
        .map(|n| calls(json!([{"index": n, "function": {"name": "t", "arguments": "{}"}}])))
        .collect();
    assert_eq!(
        answer(&many_calls, "stop").1,
        Some(LlmErrorClass::Provider.into())
    );
    let unnamed_arguments =
        vec![calls(json!([{"index": 0, "function": {"arguments": "x".repeat(100_000)}}])); 3];
    assert_eq!(
        answer(&unnamed_arguments, "stop").1,
        Some(LlmErrorClass::Provider.into())
    );
    let long_name = vec![
        calls(
            json!([{"index": 0, "function": {"name": "x".repeat(100_000)}}, {"index": 0, "function": {"name": "y"}}])
        );
        3
    ];
    assert_eq!(
        answer(&long_name, "stop").1,
        Some(LlmErrorClass::Provider.into())
    );
}

// S3-065
#[test]
fn chat_calls_are_emitted_in_the_order_of_their_indices() {
    let second = |arguments: &str| {
        calls(json!([{"index": 1, "id": "b", "function": {"name": "u", "arguments": arguments}}]))
    };
    let chunks = [
        second("{\"x\":"),
        calls(json!([{"index": 1, "function": {"arguments": "2}"}}])),
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": ""}}])),
        calls(json!([{"index": 0, "function": {"arguments": "{}"}}])),
    ];
    let expected = [
        "0 tool t a",
        r#"0 keep {"id":"a"}"#,
        "1 tool u b",
        r#"1 keep {"id":"b"}"#,
        r#"1 input {"x":2}"#,
        "0 input {}",
        "0 end",
        "1 end",
    ];
    assert_eq!(lines(answer(&chunks, "tool_calls"))[..8], expected);
}

// S3-065
#[test]
fn calls_numbered_from_1_wait_only_for_the_second() {
    let call = |index: u64, name: &str| {
        let function = json!({"name": name, "arguments": "{}"});
        calls(json!([{"index": index, "id": name, "function": function}]))
    };
    let chunks = [call(1, "a"), call(2, "b")];
    let told = |chunks: &[String]| {
        let events: Vec<Value> = chunks
            .iter()
            .map(|chunk| serde_json::from_str(chunk).expect("JSON"))
            .collect();
        lines_so_far(&OpenAiChatDialect, &events)
    };
    assert_eq!(told(&chunks[..1]).len(), 0, "0 may still come");
    assert_eq!(
        told(&chunks)[..3],
        ["0 tool a a", r#"0 keep {"id":"a"}"#, "0 input {}"]
    );
}

#[test]
fn call_ends_when_something_else_follows_its_complete_arguments() {
    let first = |arguments: &str| {
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": arguments}}]))
    };
    let late = calls(json!([{"index": 0, "function": {"arguments": "\n"}}]));
    let chunks = [first("{}"), chunk(json!({"content": "Wait."})), late];
    assert_eq!(
        lines(answer(&chunks, "tool_calls"))[2..5],
        ["0 input {}", "0 end", "1 text Wait."]
    );
    let more = calls(json!([{"index": 0, "function": {"arguments": "{\"x\":1}"}}]));
    let chunks = [first("{}"), chunk(json!({"content": "Wait."})), more];
    let (_, error) = answer(&chunks, "tool_calls");
    assert!(error.is_some(), "arguments after the end of their call");
    let open = [first("{"), chunk(json!({"content": "Wait."}))];
    let open = lines(answer(&open, "tool_calls"));
    assert_eq!(open[3..5], ["1 text Wait.", "0 end"], "not yet complete");
}
