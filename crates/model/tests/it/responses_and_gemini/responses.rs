//! Decoding Responses streams: items, reasoning, calls and their order. Streams are fixtures or
//! single events; `malformed` has the invalid ones.

mod malformed;

use std::collections::VecDeque;

use serde_json::{Value, json};
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;
use turnwire_model::{SseEvent, VendorDialect as _};

use crate::responses_and_gemini::support::{RESPONSES, decode, fixture, lines, steps};

fn emitted(name: &str) -> Vec<String> {
    lines(decode(
        &OpenAiResponsesDialect,
        [fixture(RESPONSES, name).as_bytes()],
    ))
}

fn event(kind: &str, fields: Value) -> String {
    let mut event = json!({"type": kind});
    for (name, value) in fields.as_object().expect("fields") {
        event[name] = value.clone();
    }
    event.to_string()
}

#[test]
fn recorded_responses_stream_without_indices_is_decoded() {
    let emitted = emitted("recorded_plain");
    assert_eq!(emitted[0], "begun resp_nu6fnAbUX8hRzwBp8OvdbhE4TTREaM64");
    assert_eq!(
        emitted[1..4],
        ["0 text A", "0 text  lighthouse", "0 text  is"]
    );
    let text: String = emitted
        .iter()
        .filter_map(|l| l.strip_prefix("0 text "))
        .collect();
    assert!(
        text.starts_with("A lighthouse is a beacon of hope"),
        "{text}"
    );
    assert!(text.ends_with("to the St. John"), "said once: {text}");
    assert_eq!(
        emitted[emitted.len() - 2..],
        [
            r#"0 keep {"id":"msg_mzSlTdDbQ66PMAGd0lsFu8bed0k8xOna","type":"message"}"#,
            "stop EndTurn 30+30=60 reasoning 0 cached 29",
        ]
    );
}

#[test]
fn responses_conversation_is_decoded() {
    assert_eq!(
        emitted("conversation"),
        [
            "begun resp_one",
            "0 text Ich sehe ",
            "0 text nach: Grö",
            "0 text ße 🚢",
            "0 text …",
            r#"0 keep {"id":"msg_one","type":"message"}"#,
            "1 tool get_weather call_one",
            r#"1 input {"city""#,
            r#"1 input : "Kö"#,
            r#"1 input ln", "unit""#,
            r#"1 input : "celsius"}"#,
            r#"1 keep {"type":"function_call","item_id":"fc_one","id":"call_one"}"#,
            "1 end",
            "stop ToolUse 64+31=95 reasoning 0 cached 24",
        ]
    );
}

#[test]
fn responses_reasoning_has_paragraphs_and_provider_data() {
    let emitted = emitted("reasoning");
    let encrypted = json!({
        "encrypted_content": "gAAAAABencrypted==",
        "id": "rs_a",
        "summary": [
            {"type": "summary_text", "text": "Two cities, so two calls."},
            {"type": "summary_text", "text": "Both at once."},
        ],
        "type": "reasoning",
    });
    let hidden = json!({
        "encrypted_content": "gAAAAABhidden==", "id": "rs_b", "summary": [], "type": "reasoning",
    });
    assert_eq!(
        emitted[..9],
        [
            "begun resp_two",
            "0 thinking Two cities, ",
            "0 thinking so two calls.",
            "0 thinking \n\nBoth at once.",
            &format!("0 keep {encrypted}"),
            &format!("1 keep {hidden}"),
            "2 text I look ",
            "2 text at both.",
            r#"2 keep {"id":"msg_two","phase":"commentary","type":"message"}"#,
        ]
    );
    let provider_data =
        r#"4 keep {"namespace":"travel","type":"function_call","item_id":"fc_b","id":"call_b"}"#;
    assert!(emitted.contains(&provider_data.to_owned()), "{emitted:#?}");
    let stop = "stop ToolUse 120+80=200 reasoning 48 cached 64";
    assert_eq!(emitted.last().map(String::as_str), Some(stop));
}

#[test]
fn responses_cache_written_tokens_are_read_at_the_end() {
    let mut decoder = OpenAiResponsesDialect.decoder();
    let mut out = VecDeque::new();
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cache_write_tokens": 7}});
    let data = event("response.completed", json!({"response": {"usage": usage}}));
    let frame = SseEvent {
        event: None,
        data: &data,
    };
    assert_eq!(decoder.cache_written_tokens(), 0);
    decoder.step(frame, &mut out).expect("an end");
    assert_eq!(decoder.cache_written_tokens(), 7);
}

// S3-066
#[test]
fn responses_interleaved_calls_are_separated() {
    assert_eq!(
        emitted("interleaved"),
        [
            "begun resp_three",
            "0 tool get_weather call_a",
            "1 tool get_weather call_b",
            r#"0 input {"city":"#,
            r#"1 input {"city":"#,
            r#"1 input "Rome"}"#,
            r#"0 input "Paris"}"#,
            r#"1 keep {"type":"function_call","item_id":"fc_b","id":"call_b"}"#,
            "1 end",
            r#"0 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#,
            "0 end",
            "stop ToolUse 10+9=19 reasoning 0 cached 0",
        ]
    );
}

// S3-065
#[test]
fn responses_items_are_emitted_in_index_order() {
    assert_eq!(
        emitted("out_of_order"),
        [
            "begun resp_four",
            "0 text First ",
            "0 text me.",
            "1 text And me.",
            r#"0 keep {"id":"msg_a","type":"message"}"#,
            r#"1 keep {"id":"msg_a","type":"message"}"#,
            "2 tool get_weather call_a",
            r#"2 input {"city":"#,
            r#"2 input "Paris"}"#,
            r#"2 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#,
            "2 end",
            "stop ToolUse 10+9=19 reasoning 0 cached 0",
        ]
    );
}

// S3-064
#[test]
fn responses_unstreamed_items_are_emitted_once() {
    assert_eq!(
        emitted("unstreamed_items"),
        [
            "begun resp_five",
            "0 thinking Short.",
            r#"0 keep {"encrypted_content":"gAAAA==","id":"rs_a","summary":[{"type":"summary_text","text":"Short."}],"type":"reasoning"}"#,
            "1 text All at once.",
            r#"1 keep {"id":"msg_a","type":"message"}"#,
            "2 tool get_weather call_a",
            r#"2 input {"city":"Paris"}"#,
            r#"2 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#,
            "2 end",
            "stop ToolUse 10+9=19 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn responses_answer_only_in_the_final_event_is_decoded() {
    let output = json!([
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Late."}]},
        {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"},
    ]);
    let response = json!({"id": "r", "status": "completed", "output": output});
    let frames = [event("response.completed", json!({"response": response}))];
    assert_eq!(
        lines(steps(&OpenAiResponsesDialect, &frames)),
        [
            "begun r",
            "0 text Late.",
            r#"0 keep {"id":"m","type":"message"}"#,
            "1 tool now c",
            "1 input {}",
            r#"1 keep {"type":"function_call","id":"c"}"#,
            "1 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn responses_hosted_tools_and_refusals_are_decoded() {
    assert_eq!(
        emitted("hosted_tool_and_refusal"),
        [
            "begun resp_six",
            r#"0 keep {"action":{"type":"search","query":"ports"},"id":"ws_a","status":"completed","type":"web_search_call"}"#,
            "1 text I can say this.",
            "2 text But not ",
            "2 text that.",
            r#"1 keep {"id":"msg_a","type":"message"}"#,
            r#"2 keep {"id":"msg_a","type":"message","refusal":true}"#,
            "stop MaxTokens 10+9=19 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn responses_items_without_indices_are_decoded() {
    let emitted = emitted("without_indices");
    let content_lines = emitted.iter().filter(|line| !line.contains("keep"));
    let content_lines: Vec<&str> = content_lines.map(String::as_str).collect();
    assert_eq!(
        content_lines,
        [
            "begun resp_eight",
            "0 thinking The user ",
            "0 thinking wants both.",
            "1 text I ",
            "1 text look.",
            "2 tool get_weather fc_1",
            r#"2 input {"city":"#,
            r#"2 input "Paris"}"#,
            "3 tool get_weather fc_2",
            r#"3 input {"city":"#,
            r#"3 input "Rome"}"#,
            "2 end",
            "3 end",
            "stop ToolUse 30+20=50 reasoning 0 cached 29",
        ]
    );
}
