//! The tool calls of Chat Completions, which servers name carelessly.

use serde_json::json;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_chat::OpenAiChat;

use crate::chat::openai_chat::{NO_USAGE, answer, calls, chunk};
use crate::chat::support::{OPENAI_CHAT, decode, fixture, lines};

fn told(name: &str) -> Vec<String> {
    lines(decode(&OpenAiChat, fixture(OPENAI_CHAT, name)))
}

#[test]
fn s3_066_calls_that_interleave_are_told_apart() {
    assert_eq!(
        told("interleaved"),
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
            "1 input }",
            "2 text Wait.",
            "0 end",
            "1 end",
            "stop ToolUse 1+2=3 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn s3_064_arguments_that_are_not_streamed_come_in_one_piece_or_not_at_all() {
    assert_eq!(
        told("whole_arguments"),
        [
            "begun chatcmpl-One",
            "0 tool get_weather call_a",
            r#"0 keep {"id":"call_a"}"#,
            r#"0 input {"city":"Paris"}"#,
            "1 tool get_time call_b",
            r#"1 keep {"id":"call_b"}"#,
            r#"1 input {"zone":"UTC"}"#,
            "2 tool ping call_c",
            r#"2 keep {"id":"call_c"}"#,
            "0 end",
            "1 end",
            "2 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ],
        "and a reason of `stop` behind calls means that tools are asked for"
    );
}

#[test]
fn words_after_a_call_are_a_new_block() {
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
fn follow_ups_without_index_or_id_find_their_call() {
    let bare = [
        calls(json!([{"id": "a", "function": {"name": "t", "arguments": "{"}}])),
        calls(json!([{"function": {"arguments": "\"x\":"}}])),
        calls(json!([{"index": 7, "function": {"arguments": "1}"}}])),
        calls(json!([{"id": "b", "function": {"name": "u", "arguments": "{}"}}])),
    ];
    assert_eq!(
        lines(answer(&bare, "tool_calls"))[..8],
        [
            "0 tool t a",
            r#"0 keep {"id":"a"}"#,
            "0 input {",
            "0 input \"x\":",
            "0 input 1}",
            "1 tool u b",
            r#"1 keep {"id":"b"}"#,
            "1 input {}",
        ]
    );
    let nameless_at_first = [
        calls(json!([{"index": 1, "function": {"arguments": "{"}}])),
        calls(json!([{"index": 1, "id": 12, "function": {"name": "t"}}])),
        calls(json!([{"index": 1, "function": {"arguments": "}"}}])),
    ];
    assert_eq!(
        lines(answer(&nameless_at_first, "tool_calls"))[..5],
        [
            "0 tool t 12",
            r#"0 keep {"id":"12"}"#,
            "0 input {",
            "0 input }",
            "0 end"
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
fn servers_that_number_every_call_alike_are_understood() {
    let same_index = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
        calls(json!([{"index": 0, "id": "b", "function": {"name": "t", "arguments": "{}"}}])),
    ];
    assert_eq!(lines(answer(&same_index, "stop"))[3], "1 tool t b");
    let no_names_for_calls = [
        calls(json!([{"function": {"name": "t", "arguments": "{}"}}])),
        calls(json!([{"function": {"name": "u", "arguments": "{}"}}])),
    ];
    assert_eq!(
        lines(answer(&no_names_for_calls, "stop"))[..4],
        ["0 tool t -", "0 input {}", "1 tool u -", "1 input {}"]
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
fn a_call_that_names_nothing_is_nothing_unless_it_was_fed() {
    let phantom = [
        calls(json!([{"index": 0}, {}])),
        calls(json!([{"index": 1, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
    ];
    assert_eq!(lines(answer(&phantom, "tool_calls"))[0], "0 tool t a");
    let fed = [calls(
        json!([{"index": 0, "function": {"arguments": "{}"}}]),
    )];
    assert_eq!(
        answer(&fed, "tool_calls").1,
        Some(LlmErrorClass::Provider.into())
    );
}

#[test]
fn the_older_function_call_is_a_call_without_an_id() {
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
fn a_call_that_was_cut_before_its_input_is_left_open() {
    let chunks = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}])),
        calls(json!([{"index": 1, "id": "b", "function": {"name": "u", "arguments": ""}}])),
    ];
    let told = lines(answer(&chunks, "length"));
    assert_eq!(
        told[3..],
        [
            "1 tool u b".to_owned(),
            r#"1 keep {"id":"b"}"#.to_owned(),
            "0 end".to_owned(),
            format!("stop MaxTokens {NO_USAGE}"),
        ]
    );
}

#[test]
fn calls_and_what_they_hold_are_bounded() {
    let many: Vec<String> = (0..2_000)
        .map(|n| calls(json!([{"index": n, "function": {"name": "t", "arguments": "{}"}}])))
        .collect();
    assert_eq!(
        answer(&many, "stop").1,
        Some(LlmErrorClass::Provider.into())
    );
    let nameless =
        vec![calls(json!([{"index": 0, "function": {"arguments": "x".repeat(100_000)}}])); 3];
    assert_eq!(
        answer(&nameless, "stop").1,
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
