//! Messages servers that never stop a block or number blocks from 1: deltas are still emitted as
//! they arrive.

use serde_json::{Value, json};
use turnwire_model::dialect::anthropic::AnthropicDialect;

use crate::decoded::lines_so_far;

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn text(index: u64, text: &str) -> Value {
    let delta = json!({"type": "text_delta", "text": text});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn input(index: u64, json: &str) -> Value {
    let delta = json!({"type": "input_json_delta", "partial_json": json});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[test]
fn unstopped_block_does_not_delay_the_next() {
    let tool = json!({"type": "tool_use", "id": "", "name": "now", "input": {}});
    let events = [
        start(0, json!({"type": "text", "text": ""})),
        text(0, "a"),
        start(1, json!({"type": "text", "text": ""})),
        text(1, "b"),
        start(2, tool),
        input(2, "{}"),
        text(3, "c"),
    ];
    assert_eq!(
        lines_so_far(&AnthropicDialect, &events),
        [
            "0 text a",
            "1 text b",
            "2 tool now -",
            "2 input {}",
            "3 text c"
        ]
    );
}

#[test]
fn blocks_numbered_from_1_wait_only_for_the_second() {
    let events = [text(1, "a"), stop(1), text(2, "b"), text(2, "c"), stop(2)];
    assert_eq!(
        lines_so_far(&AnthropicDialect, &events[..2]).len(),
        0,
        "0 may still come (S3-065)"
    );
    assert_eq!(
        lines_so_far(&AnthropicDialect, &events[..3]),
        ["0 text a", "1 text b"]
    );
    assert_eq!(lines_so_far(&AnthropicDialect, &events)[2..], ["1 text c"]);
}

#[test]
fn empty_block_and_gap_in_indices_are_waited_for() {
    let empty_block = start(0, json!({"type": "text", "text": ""}));
    assert_eq!(
        lines_so_far(&AnthropicDialect, &[empty_block, text(1, "b")]).len(),
        0
    );
    let gap = [text(0, "a"), text(2, "c")];
    assert_eq!(lines_so_far(&AnthropicDialect, &gap), ["0 text a"]);
    let late = [text(0, "a"), text(2, "c"), stop(0), text(1, "b"), stop(1)];
    assert_eq!(
        lines_so_far(&AnthropicDialect, &late),
        ["0 text a", "1 text b", "2 text c"]
    );
}

// S3-065
#[test]
fn calls_out_of_order_are_emitted_in_the_order_of_their_indices() {
    let call = |index: u64, name: &str| {
        let block = json!({"type": "tool_use", "id": name, "name": name, "input": {}});
        [start(index, block), input(index, "{}"), stop(index)]
    };
    let events = [call(1, "u"), call(0, "t")].concat();
    let told = lines_so_far(&AnthropicDialect, &events);
    let starts: Vec<_> = told.iter().filter(|line| line.contains(" tool ")).collect();
    assert_eq!(starts, ["0 tool t t", "1 tool u u"]);
}

/// The server may count from 1: the second block is evidence enough not to hold back the answer.
#[test]
fn block_that_starts_after_two_later_ones_comes_last() {
    let events = [
        text(1, "b"),
        stop(1),
        text(2, "c"),
        stop(2),
        text(0, "a"),
        stop(0),
    ];
    assert_eq!(
        lines_so_far(&AnthropicDialect, &events),
        ["0 text b", "1 text c", "2 text a"]
    );
}
