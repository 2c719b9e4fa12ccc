//! A conversation of several turns, with thinking, parallel tools and failing tools, as each of the
//! four vendors streams it: decoded, stored and encoded again. A vendor gets its own data back, and
//! another vendor's text without that vendor's data.

mod decoded_message;
mod vendor;
mod anthropic;
mod chat;
mod responses;
mod gemini;
mod truncation;

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role};
use turnwire_model::{EncodeInput, ModelMessage, ModelParams, ModelRequest};

use crate::replay::decoded_message::{content_lines, decode_message, tool_uses};
use crate::replay::vendor::Vendor;

const VENDORS: [&dyn Vendor; 4] = [
    &anthropic::Messages,
    &chat::Completions,
    &responses::Responses,
    &gemini::Contents,
];

/// Two parallel tool calls of which one fails, the failed one again, and the answer.
fn conversation(vendor: &dyn Vendor) -> Vec<Arc<ModelMessage>> {
    let user = |text: &str| ModelMessage::new(Role::User, vec![ContentBlock::text(text)]);
    let mut messages = vec![user("How warm is it in Köln and in Rome?")];
    for (n, turn) in (1..).zip(vendor.turns()) {
        let message = decode_message(vendor, &vendor.stream(&turn), n * 100);
        let calls = tool_uses(&message);
        messages.push(message);
        // Results arrive in the order in which tools end, not in which they were called.
        for (id, city) in calls.into_iter().rev() {
            let (content, is_error) = match (n, city.as_str()) {
                (1, "Rome") => (json!({"reason": "no answer", "tries": 2}), true),
                _ => (
                    json!({"city": city, "degrees": 20.5, "sky": ["clear", null]}),
                    false,
                ),
            };
            let result = ContentBlock::ToolResult {
                tool_use_id: id,
                content,
                is_error,
            };
            messages.push(ModelMessage::new(Role::Tool, vec![result]));
        }
    }
    messages.push(user("Thanks. 🚢"));
    messages.into_iter().map(Arc::new).collect()
}

fn encode(vendor: &dyn Vendor, messages: Vec<Arc<ModelMessage>>) -> Value {
    let request = ModelRequest {
        model: "there:big".into(),
        agent: "orchestrator".into(),
        call: 4,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages,
        tools: [].into(),
    };
    let encoded = vendor.dialect().encode(&EncodeInput {
        provider: vendor.name(),
        model: "big",
        request: &request,
        params: &ModelParams::default(),
    });
    encoded.body
}

/// The model's messages as lines, without provider data.
fn model_lines(messages: &[Arc<ModelMessage>]) -> Vec<Vec<String>> {
    let answers = messages
        .iter()
        .filter(|message| message.role == Role::Assistant);
    answers.map(|message| content_lines(message)).collect()
}

#[test]
fn vendor_gets_its_own_turns_back() {
    for vendor in VENDORS {
        let body = encode(vendor, conversation(vendor));
        let turns: Vec<Value> = vendor
            .turns()
            .iter()
            .map(|t| vendor.expected_turn(t))
            .collect();
        assert_eq!(vendor.turns_in(&body), turns, "{}", vendor.name());
    }
}

#[test]
fn results_follow_their_calls_in_call_order() {
    let fine = |city: &str| json!({"city": city, "degrees": 20.5, "sky": ["clear", null]});
    let failed = json!({"reason": "no answer", "tries": 2});
    for vendor in VENDORS {
        let body = encode(vendor, conversation(vendor));
        let results = vendor.results_in(&body);
        let expected = [
            (fine("Köln"), false),
            (failed.clone(), true),
            (fine("Rome"), false),
        ];
        let outcomes: Vec<(Value, bool)> = results.iter().map(|r| (r.1.clone(), r.2)).collect();
        assert_eq!(outcomes, expected, "{}", vendor.name());
        let calls: Vec<String> = vendor
            .turns()
            .iter()
            .flat_map(|t| vendor.calls(t))
            .collect();
        let answered_calls: Vec<&String> = results.iter().map(|r| &r.0).collect();
        assert_eq!(
            answered_calls,
            calls.iter().collect::<Vec<_>>(),
            "{}",
            vendor.name()
        );
    }
}

#[test]
fn conversation_is_equal_for_all_vendors() {
    let lines = VENDORS.map(|vendor| model_lines(&conversation(vendor)));
    assert_eq!(
        lines[0][0],
        [
            "thinking Two cities, so two calls.",
            "text I look at both: Größe 🚢…",
            r#"tool get_weather {"city":"Köln"}"#,
            r#"tool get_weather {"city":"Rome"}"#,
        ]
    );
    for (vendor, vendor_lines) in VENDORS.iter().zip(&lines) {
        assert_eq!(*vendor_lines, lines[0], "{}", vendor.name());
    }
}

#[test]
fn encoded_turns_decode_to_the_same_messages() {
    for vendor in VENDORS {
        let conversation = conversation(vendor);
        let body = encode(vendor, conversation.clone());
        let original_lines = model_lines(&conversation);
        let echo = vendor.turns_in(&body);
        let decoded_lines = echo
            .iter()
            .map(|turn| decode_message(vendor, &vendor.stream(turn), 1));
        let decoded_lines: Vec<Vec<String>> = decoded_lines
            .map(|message| content_lines(&message))
            .collect();
        assert_eq!(decoded_lines, original_lines, "{}", vendor.name());
    }
}

#[test]
fn conversation_can_move_between_all_vendors() {
    for source in VENDORS {
        let conversation = conversation(source);
        for target in VENDORS
            .iter()
            .filter(|target| target.name() != source.name())
        {
            let body = encode(*target, conversation.clone());
            let text = body.to_string();
            for data in source.private_data() {
                assert!(!text.contains(data), "{data} of {} is sent", source.name());
            }
            let turns = target.turns_in(&body);
            let decoded_lines = turns
                .iter()
                .map(|turn| decode_message(*target, &target.stream(turn), 1));
            let decoded_lines: Vec<Vec<String>> = decoded_lines
                .map(|message| content_lines(&message))
                .collect();
            let original_lines: Vec<Vec<String>> = model_lines(&conversation)
                .into_iter()
                .map(without_thinking)
                .collect();
            assert_eq!(
                decoded_lines,
                original_lines,
                "{} to {}",
                source.name(),
                target.name()
            );
            assert_eq!(target.results_in(&body).len(), 3);
            let calls: Vec<String> = turns.iter().flat_map(|turn| target.calls(turn)).collect();
            let answered_calls: Vec<String> =
                target.results_in(&body).into_iter().map(|r| r.0).collect();
            assert_eq!(
                answered_calls,
                calls,
                "{} to {}",
                source.name(),
                target.name()
            );
        }
    }
}

fn without_thinking(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| !line.starts_with("thinking"));
    lines
}
