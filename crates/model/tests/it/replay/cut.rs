//! Answers that were cut: a tool that was cancelled has no result, and a message that failed ends
//! anywhere. Nothing goes out that stood for what is missing.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role};
use turnwire_model::Said;

use crate::replay::heard::heard;
use crate::replay::responses::Responses;
use crate::replay::vendor::{Vendor, list};
use crate::replay::{VENDORS, encode};

fn user(text: &str) -> Arc<Said> {
    Arc::new(Said::new(Role::User, vec![ContentBlock::text(text)]))
}

/// The message without the blocks that `is_lost`; what is kept stays with its block.
fn without(said: &Said, is_lost: impl Fn(&ContentBlock) -> bool) -> Arc<Said> {
    let mut left = Said::new(said.role, Vec::new());
    left.kept.by.clone_from(&said.kept.by);
    for (n, block) in (0_u32..).zip(&said.content) {
        if is_lost(block) {
            continue;
        }
        if let Some(kept) = said.kept.blocks.get(&n) {
            let place = left.content.len() as u32;
            left.kept.blocks.insert(place, kept.clone());
        }
        left.content.push(block.clone());
    }
    Arc::new(left)
}

fn is_use(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolUse { .. })
}

fn is_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { text } if !text.is_empty())
}

/// The types of the items of a request.
fn kinds(body: &Value) -> Vec<String> {
    let kind = |item: &Value| match item["role"].as_str() {
        Some(role) => role.to_owned(),
        None => item["type"].as_str().expect("a type").to_owned(),
    };
    list(&body["input"]).iter().map(kind).collect()
}

/// The second turn of the conversation: reasoning, and one call behind it.
fn thought_and_call() -> Said {
    let turn = &Responses.turns()[1];
    heard(&Responses, &Responses.stream(turn), 1)
}

#[test]
fn reasoning_of_a_tool_that_was_cancelled_is_not_sent() {
    for said in [
        Arc::new(thought_and_call()),
        without(&thought_and_call(), is_use),
    ] {
        let body = encode(&Responses, vec![user("Rome?"), said, user("Never mind.")]);
        assert_eq!(kinds(&body), ["user", "user"]);
    }
}

#[test]
fn reasoning_does_not_go_to_what_another_message_says() {
    let answer = heard(&Responses, &Responses.stream(&Responses.turns()[2]), 50);
    let cancelled = without(&thought_and_call(), is_use);
    let body = encode(
        &Responses,
        vec![user("Rome?"), cancelled, Arc::new(answer), user("Thanks.")],
    );
    assert_eq!(kinds(&body), ["user", "assistant", "user"]);
}

#[test]
fn reasoning_of_a_message_that_failed_is_sent_only_with_what_it_led_to() {
    let whole = heard(&Responses, &Responses.stream(&Responses.turns()[0]), 1);
    let sent = |said: Arc<Said>| {
        let body = encode(&Responses, vec![user("Both?"), said, user("Again.")]);
        kinds(&body)
    };
    // It broke behind its words, before the calls.
    let spoken = sent(without(&whole, is_use));
    let expected = ["user", "reasoning", "reasoning", "assistant", "user"];
    assert_eq!(spoken, expected);
    // It broke while it was thinking.
    let lost = |block: &ContentBlock| is_use(block) || is_text(block);
    assert_eq!(sent(without(&whole, lost)), ["user", "user"]);
}

#[test]
fn reasoning_before_a_tool_of_the_vendors_own_is_sent_with_it() {
    let search = json!({"type": "web_search_call", "id": "ws_a", "status": "completed"});
    let mut turn = Responses.turns()[1].clone();
    turn[1] = search;
    let said = heard(&Responses, &Responses.stream(&turn), 1);
    let body = encode(
        &Responses,
        vec![user("Rome?"), Arc::new(said), user("And?")],
    );
    assert_eq!(
        kinds(&body),
        ["user", "reasoning", "web_search_call", "user"]
    );
}

#[test]
fn no_vendor_is_sent_a_turn_of_which_nothing_is_left() {
    for vendor in VENDORS {
        let said = heard(vendor, &vendor.stream(&vendor.turns()[1]), 1);
        let said = without(&said, is_use);
        let body = encode(vendor, vec![user("Rome?"), said, user("Never mind.")]);
        let kept = vendor.turns_in(&body);
        // A thought of Gemini's is a part that can stand alone.
        let expected = usize::from(vendor.name() == "gemini");
        assert_eq!(kept.len(), expected, "{}: {kept:?}", vendor.name());
    }
}
