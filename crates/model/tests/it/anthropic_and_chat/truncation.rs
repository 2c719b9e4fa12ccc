//! Messages truncated before a tool's input: such a tool use is not taken for one without input.
//! Its end is missing from the deltas.

use serde_json::{Value, json};
use turnwire_model::dialect::anthropic::AnthropicDialect;

use crate::anthropic_and_chat::support::{lines, steps};

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

/// The deltas of these events as lines, without provider data and stop.
fn emitted(events: &[Value], reason: &str) -> Vec<String> {
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
        json!({"type": "message_stop"}),
    ];
    let frames: Vec<String> = events.iter().chain(&end).map(Value::to_string).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let mut emitted = lines(steps(&AnthropicDialect, &frames));
    assert!(emitted.pop().is_some_and(|stop| stop.starts_with("stop ")));
    emitted.retain(|line| !line.contains(" keep "));
    emitted
}

#[test]
fn messages_tool_truncated_before_its_input_stays_open() {
    for events in [&[tool(0, "a"), stop(0)][..], &[tool(0, "a")]] {
        for reason in ["max_tokens", "model_context_window_exceeded", "refusal"] {
            assert_eq!(emitted(events, reason), ["0 tool a a"], "{reason}");
        }
        for reason in ["tool_use", "end_turn"] {
            assert_eq!(emitted(events, reason), ["0 tool a a", "0 end"], "{reason}");
        }
    }
    let empty = [tool(0, "a"), input(0, ""), stop(0)];
    assert_eq!(emitted(&empty, "max_tokens"), ["0 tool a a"]);
}

#[test]
fn messages_tool_followed_by_another_is_complete() {
    let events = [tool(0, "a"), stop(0), tool(1, "b"), stop(1)];
    assert_eq!(
        emitted(&events, "max_tokens"),
        ["0 tool a a", "0 end", "1 tool b b"]
    );
}

#[test]
fn messages_truncated_input_is_ended_and_invalid_json() {
    let events = [tool(0, "a"), input(0, "{\"city"), stop(0)];
    assert_eq!(
        emitted(&events, "max_tokens"),
        ["0 tool a a", "0 input {\"city", "0 end"]
    );
}
