//! Responses truncated before a call's arguments: such a call is not taken for one without
//! arguments.

use serde_json::{Value, json};
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;

use crate::responses_and_gemini::support::{lines, steps};

fn item(kind: &str, status: &str, arguments: &str) -> Value {
    let item = json!({
        "type": "function_call", "id": "fc_a", "call_id": "call_a", "name": "now",
        "status": status, "arguments": arguments,
    });
    json!({"type": kind, "output_index": 0, "item": item})
}

fn added() -> Value {
    item("response.output_item.added", "in_progress", "")
}

fn done(status: &str, arguments: &str) -> Value {
    item("response.output_item.done", status, arguments)
}

fn arguments(delta: &str) -> Value {
    let kind = "response.function_call_arguments.delta";
    json!({"type": kind, "output_index": 0, "delta": delta})
}

fn end(reason: Option<&str>) -> Value {
    match reason {
        Some(reason) => {
            let details = json!({"reason": reason});
            let response = json!({"status": "incomplete", "incomplete_details": details});
            json!({"type": "response.incomplete", "response": response})
        }
        None => json!({"type": "response.completed", "response": {"status": "completed"}}),
    }
}

/// The deltas of these events as lines, without the stop.
fn emitted(events: &[Value], reason: Option<&str>) -> Vec<String> {
    let end = end(reason);
    let frames: Vec<String> = events.iter().chain([&end]).map(Value::to_string).collect();
    let mut emitted = lines(steps(&OpenAiResponsesDialect, &frames));
    assert!(emitted.pop().is_some_and(|stop| stop.starts_with("stop ")));
    emitted
}

#[test]
fn responses_call_truncated_before_its_input_stays_open() {
    for events in [&[added()][..], &[added(), done("incomplete", "")]] {
        for reason in ["max_output_tokens", "content_filter"] {
            let emitted = emitted(events, Some(reason));
            assert_eq!(emitted[0], "0 tool now call_a");
            assert!(!emitted.contains(&"0 end".to_owned()), "{emitted:?}");
        }
        let emitted = emitted(events, None);
        assert_eq!(
            emitted.last().map(String::as_str),
            Some("0 end"),
            "{emitted:?}"
        );
    }
}

#[test]
fn unstreamed_call_without_arguments_stays_open() {
    let item = done("incomplete", "")["item"].take();
    let details = json!({"reason": "max_output_tokens"});
    let response = json!({"status": "incomplete", "incomplete_details": details, "output": [item]});
    let frame = json!({"type": "response.incomplete", "response": response}).to_string();
    let emitted = lines(steps(&OpenAiResponsesDialect, &[frame]));
    assert_eq!(emitted[0], "0 tool now call_a");
    assert!(!emitted.contains(&"0 end".to_owned()), "{emitted:?}");
}

#[test]
fn completed_call_and_truncated_arguments_are_ended() {
    let complete_call = [added(), done("completed", "")];
    let complete_lines = emitted(&complete_call, Some("max_output_tokens"));
    assert!(
        complete_lines.contains(&"0 end".to_owned()),
        "{complete_lines:?}"
    );
    let partial_call = [added(), arguments("{\"zo")];
    let partial_lines = emitted(&partial_call, Some("max_output_tokens"));
    assert_eq!(partial_lines[1], "0 input {\"zo");
    assert!(
        partial_lines.contains(&"0 end".to_owned()),
        "{partial_lines:?}"
    );
}

#[test]
fn provider_data_of_a_call_is_emitted_at_the_end() {
    let emitted = emitted(&[added(), done("incomplete", "")], None);
    let provider_data = r#"0 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#;
    assert_eq!(emitted, ["0 tool now call_a", provider_data, "0 end"]);
}
