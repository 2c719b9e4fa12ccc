//! Messages that were cut where a tool's input was to come: a tool of which no input came is not
//! taken for one that has none.

use serde_json::{Value, json};
use turnwire_model::dialect::anthropic::Anthropic;

use crate::chat::support::{lines, steps};

fn tool(index: u64, name: &str) -> Value {
    let block = json!({"type": "tool_use", "id": name, "name": name, "input": {}});
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn input(index: u64, json: &str) -> Value {
    let delta = json!({"type": "input_json_delta", "partial_json": json});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// What a message of these events says, but for what is kept and the stop.
fn told(events: &[Value], reason: &str) -> Vec<String> {
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
        json!({"type": "message_stop"}),
    ];
    let frames: Vec<String> = events.iter().chain(&end).map(Value::to_string).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let mut told = lines(steps(&Anthropic, &frames));
    assert!(told.pop().is_some_and(|stop| stop.starts_with("stop ")));
    told.retain(|line| !line.contains(" keep "));
    told
}

#[test]
fn a_tool_without_input_at_the_limit_is_left_open() {
    for events in [&[tool(0, "a"), stop(0)][..], &[tool(0, "a")]] {
        for reason in ["max_tokens", "model_context_window_exceeded", "refusal"] {
            assert_eq!(told(events, reason), ["0 tool a a"], "{reason}");
        }
        for reason in ["tool_use", "end_turn"] {
            assert_eq!(told(events, reason), ["0 tool a a", "0 end"], "{reason}");
        }
    }
    let empty = [tool(0, "a"), input(0, ""), stop(0)];
    assert_eq!(told(&empty, "max_tokens"), ["0 tool a a"]);
}

#[test]
fn a_tool_that_others_follow_was_whole() {
    let events = [tool(0, "a"), stop(0), tool(1, "b"), stop(1)];
    assert_eq!(
        told(&events, "max_tokens"),
        ["0 tool a a", "0 end", "1 tool b b"]
    );
}

#[test]
fn input_that_was_cut_is_ended_and_does_not_parse() {
    let events = [tool(0, "a"), input(0, "{\"city"), stop(0)];
    assert_eq!(
        told(&events, "max_tokens"),
        ["0 tool a a", "0 input {\"city", "0 end"]
    );
}
