//! Responses servers that never mark an item as done or number items from 1: deltas are still
//! emitted as they arrive.

use serde_json::{Value, json};
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;

use crate::decoded::lines_so_far;

fn text(index: u32, text_piece: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": index, "delta": text_piece})
}

fn reasoning(index: u32, text_piece: &str) -> Value {
    let kind = "response.reasoning_text.delta";
    json!({"type": kind, "output_index": index, "delta": text_piece})
}

fn message_done(index: u32) -> Value {
    let item = json!({"type": "message", "id": "m", "content": []});
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

#[test]
fn unfinished_item_does_not_delay_the_next() {
    let events = [
        reasoning(0, "Hm."),
        text(1, "a"),
        text(1, "b"),
        text(2, "c"),
    ];
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &events),
        ["0 thinking Hm.", "1 text a", "1 text b", "2 text c"]
    );
    let mut with_late_done = events.to_vec();
    with_late_done.push(message_done(1));
    let provider_data = r#"1 keep {"id":"m","type":"message"}"#;
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &with_late_done)
            .last()
            .map(String::as_str),
        Some(provider_data)
    );
}

#[test]
fn items_numbered_from_1_wait_only_for_the_second() {
    let events = [text(1, "a"), message_done(1), text(2, "b"), text(2, "c")];
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &events[..2]).len(),
        0,
        "0 may still come (S3-065)"
    );
    let provider_data = r#"0 keep {"id":"m","type":"message"}"#;
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &events[..3]),
        ["0 text a", provider_data, "1 text b"]
    );
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &events)[3..],
        ["1 text c"]
    );
}

#[test]
fn empty_item_and_gap_in_indices_are_waited_for() {
    let item = json!({"type": "message", "id": "m", "content": []});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &[added, text(1, "b")]).len(),
        0
    );
    assert_eq!(
        lines_so_far(&OpenAiResponsesDialect, &[text(0, "a"), text(2, "c")]),
        ["0 text a"]
    );
}

// S3-065
#[test]
fn calls_out_of_order_are_emitted_in_the_order_of_their_indices() {
    let call = |index: u32, name: &str| {
        let item = json!({"type": "function_call", "id": name, "call_id": name, "name": name});
        let mut done = item.clone();
        done["arguments"] = "{}".into();
        let arguments = "response.function_call_arguments.delta";
        [
            json!({"type": "response.output_item.added", "output_index": index, "item": item}),
            json!({"type": arguments, "output_index": index, "item_id": name, "delta": "{}"}),
            json!({"type": "response.output_item.done", "output_index": index, "item": done}),
        ]
    };
    let events = [call(1, "u"), call(0, "t")].concat();
    let told = lines_so_far(&OpenAiResponsesDialect, &events);
    let starts: Vec<_> = told.iter().filter(|line| line.contains(" tool ")).collect();
    assert_eq!(starts, ["0 tool t t", "1 tool u u"]);
}
