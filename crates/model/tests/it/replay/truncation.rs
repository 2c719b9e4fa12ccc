//! Truncated answers: a cancelled tool has no result, and a failed message ends anywhere. Reasoning
//! without the item it led to is not sent.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role};
use turnwire_model::ModelMessage;

use crate::replay::decoded_message::decode_message;
use crate::replay::responses::Responses;
use crate::replay::vendor::{Vendor, list};
use crate::replay::{VENDORS, encode};

fn user(text: &str) -> Arc<ModelMessage> {
    Arc::new(ModelMessage::new(
        Role::User,
        vec![ContentBlock::text(text)],
    ))
}

/// The message without the blocks for which `is_lost` holds; provider data stays with its block.
fn without(message: &ModelMessage, is_lost: impl Fn(&ContentBlock) -> bool) -> Arc<ModelMessage> {
    let mut remaining = ModelMessage::new(message.role, Vec::new());
    remaining
        .provider_data
        .by
        .clone_from(&message.provider_data.by);
    for (n, block) in (0_u32..).zip(&message.content) {
        if is_lost(block) {
            continue;
        }
        if let Some(data) = message.provider_data.blocks.get(&n) {
            let index = remaining.content.len() as u32;
            remaining.provider_data.blocks.insert(index, data.clone());
        }
        remaining.content.push(block.clone());
    }
    Arc::new(remaining)
}

fn is_tool_use(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolUse { .. })
}

fn is_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { text } if !text.is_empty())
}

/// Role or type of each item of a request.
fn kinds(body: &Value) -> Vec<String> {
    let kind = |item: &Value| match item["role"].as_str() {
        Some(role) => role.to_owned(),
        None => item["type"].as_str().expect("a type").to_owned(),
    };
    list(&body["input"]).iter().map(kind).collect()
}

/// The second turn of the conversation: reasoning and a call.
fn reasoning_and_call() -> ModelMessage {
    let turn = &Responses.turns()[1];
    decode_message(&Responses, &Responses.stream(turn), 1)
}

#[test]
fn reasoning_of_a_cancelled_tool_is_not_sent() {
    for message in [
        Arc::new(reasoning_and_call()),
        without(&reasoning_and_call(), is_tool_use),
    ] {
        let body = encode(
            &Responses,
            vec![user("Rome?"), message, user("Never mind.")],
        );
        assert_eq!(kinds(&body), ["user", "user"]);
    }
}

#[test]
fn reasoning_is_not_attached_to_another_message() {
    let answer = decode_message(&Responses, &Responses.stream(&Responses.turns()[2]), 50);
    let cancelled = without(&reasoning_and_call(), is_tool_use);
    let body = encode(
        &Responses,
        vec![user("Rome?"), cancelled, Arc::new(answer), user("Thanks.")],
    );
    assert_eq!(kinds(&body), ["user", "assistant", "user"]);
}

#[test]
fn reasoning_of_a_failed_message_is_sent_only_with_content() {
    let complete = decode_message(&Responses, &Responses.stream(&Responses.turns()[0]), 1);
    let sent_kinds = |message: Arc<ModelMessage>| {
        let body = encode(&Responses, vec![user("Both?"), message, user("Again.")]);
        kinds(&body)
    };
    // The message failed after its text, before the calls.
    let content_lines = sent_kinds(without(&complete, is_tool_use));
    let expected = ["user", "reasoning", "reasoning", "assistant", "user"];
    assert_eq!(content_lines, expected);
    // The message failed during its reasoning.
    let is_call_or_text = |block: &ContentBlock| is_tool_use(block) || is_text(block);
    assert_eq!(
        sent_kinds(without(&complete, is_call_or_text)),
        ["user", "user"]
    );
}

#[test]
fn reasoning_before_a_hosted_tool_is_sent_with_it() {
    let search = json!({"type": "web_search_call", "id": "ws_a", "status": "completed"});
    let mut turn = Responses.turns()[1].clone();
    turn[1] = search;
    let message = decode_message(&Responses, &Responses.stream(&turn), 1);
    let body = encode(
        &Responses,
        vec![user("Rome?"), Arc::new(message), user("And?")],
    );
    assert_eq!(
        kinds(&body),
        ["user", "reasoning", "web_search_call", "user"]
    );
}

#[test]
fn empty_turn_is_not_sent_to_any_vendor() {
    for vendor in VENDORS {
        let message = decode_message(vendor, &vendor.stream(&vendor.turns()[1]), 1);
        let message = without(&message, is_tool_use);
        let body = encode(vendor, vec![user("Rome?"), message, user("Never mind.")]);
        let turns = vendor.turns_in(&body);
        // A Gemini thought is a part that can stand alone.
        let expected = usize::from(vendor.name() == "gemini");
        assert_eq!(turns.len(), expected, "{}: {turns:?}", vendor.name());
    }
}
