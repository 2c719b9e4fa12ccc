//! Responses: each thing a stream can say.

mod odd;

use std::collections::VecDeque;

use serde_json::{Value, json};
use turnwire_model::dialect::openai_responses::OpenAiResponses;
use turnwire_model::{Dialect as _, Frame};

use crate::more::support::{RESPONSES, decode, fixture, lines, steps};

fn told(name: &str) -> Vec<String> {
    lines(decode(
        &OpenAiResponses,
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
fn a_recorded_answer_of_a_server_that_tells_no_places() {
    let told = told("recorded_plain");
    assert_eq!(told[0], "begun resp_nu6fnAbUX8hRzwBp8OvdbhE4TTREaM64");
    assert_eq!(told[1..4], ["0 text A", "0 text  lighthouse", "0 text  is"]);
    let words: String = told
        .iter()
        .filter_map(|l| l.strip_prefix("0 text "))
        .collect();
    assert!(
        words.starts_with("A lighthouse is a beacon of hope"),
        "{words}"
    );
    assert!(words.ends_with("to the St. John"), "said once: {words}");
    assert_eq!(
        told[told.len() - 2..],
        [
            r#"0 keep {"id":"msg_mzSlTdDbQ66PMAGd0lsFu8bed0k8xOna","type":"message"}"#,
            "stop EndTurn 30+30=60 reasoning 0 cached 29",
        ]
    );
}

#[test]
fn the_same_conversation_as_in_the_other_dialects() {
    assert_eq!(
        told("conversation"),
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
fn reasoning_is_shown_in_paragraphs_and_kept_sealed() {
    let told = told("reasoning");
    let sealed = json!({
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
        told[..9],
        [
            "begun resp_two",
            "0 thinking Two cities, ",
            "0 thinking so two calls.",
            "0 thinking \n\nBoth at once.",
            &format!("0 keep {sealed}"),
            &format!("1 keep {hidden}"),
            "2 text I look ",
            "2 text at both.",
            r#"2 keep {"id":"msg_two","phase":"commentary","type":"message"}"#,
        ]
    );
    let kept =
        r#"4 keep {"namespace":"travel","type":"function_call","item_id":"fc_b","id":"call_b"}"#;
    assert!(told.contains(&kept.to_owned()), "{told:#?}");
    let stop = "stop ToolUse 120+80=200 reasoning 48 cached 64";
    assert_eq!(told.last().map(String::as_str), Some(stop));
}

#[test]
fn tokens_written_to_the_cache_are_told_at_the_end() {
    let mut decoder = OpenAiResponses.decoder();
    let mut out = VecDeque::new();
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cache_write_tokens": 7}});
    let data = event("response.completed", json!({"response": {"usage": usage}}));
    let frame = Frame {
        event: None,
        data: &data,
    };
    assert_eq!(decoder.cache_written_tokens(), 0);
    decoder.step(frame, &mut out).expect("an end");
    assert_eq!(decoder.cache_written_tokens(), 7);
}

#[test]
fn s3_066_interleaved_calls_are_told_apart() {
    assert_eq!(
        told("interleaved"),
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

#[test]
fn s3_065_items_go_out_in_the_order_of_their_places() {
    assert_eq!(
        told("out_of_order"),
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

#[test]
fn s3_064_what_is_not_streamed_is_said_whole_and_once() {
    assert_eq!(
        told("whole_items"),
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
fn an_answer_that_comes_only_at_the_end_is_read_there() {
    let output = json!([
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Late."}]},
        {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"},
    ]);
    let response = json!({"id": "r", "status": "completed", "output": output});
    let frames = [event("response.completed", json!({"response": response}))];
    assert_eq!(
        lines(steps(&OpenAiResponses, &frames)),
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
fn items_of_hosted_tools_are_kept_and_refusals_are_words() {
    assert_eq!(
        told("hosted_tool_and_refusal"),
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
fn a_server_that_tells_no_places_and_ends_its_items_last() {
    let told = told("without_places");
    let spoken = told.iter().filter(|line| !line.contains("keep"));
    let spoken: Vec<&str> = spoken.map(String::as_str).collect();
    assert_eq!(
        spoken,
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
