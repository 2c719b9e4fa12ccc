//! Servers of Responses that never say that an item is done, or number places from 1: what an item
//! says goes out as it comes all the same.

use serde_json::{Value, json};
use turnwire_model::dialect::openai_responses::OpenAiResponses;

use crate::told::so_far;

fn text(place: u32, words: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": place, "delta": words})
}

fn thought(place: u32, words: &str) -> Value {
    let kind = "response.reasoning_text.delta";
    json!({"type": kind, "output_index": place, "delta": words})
}

fn message_done(place: u32) -> Value {
    let item = json!({"type": "message", "id": "m", "content": []});
    json!({"type": "response.output_item.done", "output_index": place, "item": item})
}

#[test]
fn items_that_nobody_ends_do_not_hold_up_the_next() {
    let events = [thought(0, "Hm."), text(1, "a"), text(1, "b"), text(2, "c")];
    assert_eq!(
        so_far(&OpenAiResponses, &events),
        ["0 thinking Hm.", "1 text a", "1 text b", "2 text c"]
    );
    let mut late = events.to_vec();
    late.push(message_done(1));
    let kept = r#"1 keep {"id":"m","type":"message"}"#;
    assert_eq!(
        so_far(&OpenAiResponses, &late).last().map(String::as_str),
        Some(kept)
    );
}

#[test]
fn places_that_are_counted_from_1_wait_for_the_second_of_them_only() {
    let events = [text(1, "a"), message_done(1), text(2, "b"), text(2, "c")];
    assert_eq!(
        so_far(&OpenAiResponses, &events[..2]).len(),
        0,
        "0 may still come (S3-065)"
    );
    let kept = r#"0 keep {"id":"m","type":"message"}"#;
    assert_eq!(
        so_far(&OpenAiResponses, &events[..3]),
        ["0 text a", kept, "1 text b"]
    );
    assert_eq!(so_far(&OpenAiResponses, &events)[3..], ["1 text c"]);
}

#[test]
fn an_item_that_has_said_nothing_and_a_gap_are_waited_for() {
    let item = json!({"type": "message", "id": "m", "content": []});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    assert_eq!(so_far(&OpenAiResponses, &[added, text(1, "b")]).len(), 0);
    assert_eq!(
        so_far(&OpenAiResponses, &[text(0, "a"), text(2, "c")]),
        ["0 text a"]
    );
}
