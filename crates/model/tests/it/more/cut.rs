//! Responses that were cut where a call's arguments were to come: a call of which no arguments came
//! is not taken for one that has none.

use serde_json::{Value, json};
use turnwire_model::dialect::openai_responses::OpenAiResponses;

use crate::more::support::{lines, steps};

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

/// What an answer of these events says, but for its stop.
fn told(events: &[Value], reason: Option<&str>) -> Vec<String> {
    let end = end(reason);
    let frames: Vec<String> = events.iter().chain([&end]).map(Value::to_string).collect();
    let mut told = lines(steps(&OpenAiResponses, &frames));
    assert!(told.pop().is_some_and(|stop| stop.starts_with("stop ")));
    told
}

#[test]
fn a_call_without_arguments_in_an_answer_that_was_cut_is_left_open() {
    for events in [&[added()][..], &[added(), done("incomplete", "")]] {
        for reason in ["max_output_tokens", "content_filter"] {
            let told = told(events, Some(reason));
            assert_eq!(told[0], "0 tool now call_a");
            assert!(!told.contains(&"0 end".to_owned()), "{told:?}");
        }
        let told = told(events, None);
        assert_eq!(told.last().map(String::as_str), Some("0 end"), "{told:?}");
    }
}

#[test]
fn the_same_if_the_answer_comes_only_with_its_end() {
    let item = done("incomplete", "")["item"].take();
    let details = json!({"reason": "max_output_tokens"});
    let response = json!({"status": "incomplete", "incomplete_details": details, "output": [item]});
    let frame = json!({"type": "response.incomplete", "response": response}).to_string();
    let told = lines(steps(&OpenAiResponses, &[frame]));
    assert_eq!(told[0], "0 tool now call_a");
    assert!(!told.contains(&"0 end".to_owned()), "{told:?}");
}

#[test]
fn a_call_that_was_done_and_arguments_that_were_cut_are_ended() {
    let whole = [added(), done("completed", "")];
    let told_whole = told(&whole, Some("max_output_tokens"));
    assert!(told_whole.contains(&"0 end".to_owned()), "{told_whole:?}");
    let half = [added(), arguments("{\"zo")];
    let told_half = told(&half, Some("max_output_tokens"));
    assert_eq!(told_half[1], "0 input {\"zo");
    assert!(told_half.contains(&"0 end".to_owned()), "{told_half:?}");
}

#[test]
fn what_is_kept_of_a_call_is_not_forgotten_at_the_end() {
    let told = told(&[added(), done("incomplete", "")], None);
    let kept = r#"0 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#;
    assert_eq!(told, ["0 tool now call_a", kept, "0 end"]);
}
