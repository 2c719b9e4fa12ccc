//! A conversation of several turns, with thinking, parallel tools and tools that fail, as each of
//! the four vendors would stream it: heard, kept as the house keeps it, and sent again. A vendor
//! sees its own words come back, and sees another's words without another's seals.

mod heard;
mod vendor;
mod anthropic;
mod chat;
mod responses;
mod gemini;
mod cut;

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role};
use turnwire_model::{Params, Request, Said};

use crate::replay::heard::{heard, spoken, uses};
use crate::replay::vendor::Vendor;

const VENDORS: [&dyn Vendor; 4] = [
    &anthropic::Messages,
    &chat::Completions,
    &responses::Responses,
    &gemini::Contents,
];

/// Two cities asked for at once, of which one fails; the failed one asked for again; the answer.
fn conversation(vendor: &dyn Vendor) -> Vec<Arc<Said>> {
    let user = |text: &str| Said::new(Role::User, vec![ContentBlock::text(text)]);
    let mut said = vec![user("How warm is it in Köln and in Rome?")];
    for (n, turn) in (1..).zip(vendor.turns()) {
        let message = heard(vendor, &vendor.stream(&turn), n * 100);
        let asked = uses(&message);
        said.push(message);
        // Results come as tools end, not as they were asked for.
        for (id, city) in asked.into_iter().rev() {
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
            said.push(Said::new(Role::Tool, vec![result]));
        }
    }
    said.push(user("Thanks. 🚢"));
    said.into_iter().map(Arc::new).collect()
}

fn encode(vendor: &dyn Vendor, messages: Vec<Arc<Said>>) -> Value {
    let request = Request {
        model: "there:big".into(),
        agent: "orchestrator".into(),
        call: 4,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages,
        tools: [].into(),
    };
    let encoded = vendor
        .dialect()
        .encode(vendor.name(), "big", &request, &Params::default());
    encoded.body
}

/// What the model said, without what only its vendor can read.
fn words(said: &[Arc<Said>]) -> Vec<Vec<String>> {
    let spoken_by_model = said.iter().filter(|said| said.role == Role::Assistant);
    spoken_by_model.map(|said| spoken(said)).collect()
}

#[test]
fn a_vendor_sees_its_own_words_come_back() {
    for vendor in VENDORS {
        let body = encode(vendor, conversation(vendor));
        let turns: Vec<Value> = vendor.turns().iter().map(|t| vendor.sent(t)).collect();
        assert_eq!(vendor.turns_in(&body), turns, "{}", vendor.name());
    }
}

#[test]
fn results_stand_behind_their_calls_in_the_order_of_the_calls() {
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
        let told: Vec<(Value, bool)> = results.iter().map(|r| (r.1.clone(), r.2)).collect();
        assert_eq!(told, expected, "{}", vendor.name());
        let calls: Vec<String> = vendor
            .turns()
            .iter()
            .flat_map(|t| vendor.calls(t))
            .collect();
        let answered: Vec<&String> = results.iter().map(|r| &r.0).collect();
        assert_eq!(
            answered,
            calls.iter().collect::<Vec<_>>(),
            "{}",
            vendor.name()
        );
    }
}

#[test]
fn all_vendors_say_the_same() {
    let said = VENDORS.map(|vendor| words(&conversation(vendor)));
    assert_eq!(
        said[0][0],
        [
            "thinking Two cities, so two calls.",
            "text I look at both: Größe 🚢…",
            r#"tool get_weather {"city":"Köln"}"#,
            r#"tool get_weather {"city":"Rome"}"#,
        ]
    );
    for (vendor, said_by) in VENDORS.iter().zip(&said) {
        assert_eq!(*said_by, said[0], "{}", vendor.name());
    }
}

#[test]
fn heard_again_from_its_own_echo_a_message_is_the_same() {
    for vendor in VENDORS {
        let conversation = conversation(vendor);
        let body = encode(vendor, conversation.clone());
        let before = words(&conversation);
        let echo = vendor.turns_in(&body);
        let again = echo
            .iter()
            .map(|turn| heard(vendor, &vendor.stream(turn), 1));
        let again: Vec<Vec<String>> = again.map(|said| spoken(&said)).collect();
        assert_eq!(again, before, "{}", vendor.name());
    }
}

#[test]
fn a_conversation_moves_from_each_vendor_to_each_other() {
    for from in VENDORS {
        let conversation = conversation(from);
        for to in VENDORS.iter().filter(|to| to.name() != from.name()) {
            let body = encode(*to, conversation.clone());
            let text = body.to_string();
            for seal in from.seals() {
                assert!(!text.contains(seal), "{seal} of {} is sent", from.name());
            }
            let turns = to.turns_in(&body);
            let again = turns.iter().map(|turn| heard(*to, &to.stream(turn), 1));
            let again: Vec<Vec<String>> = again.map(|said| spoken(&said)).collect();
            let before: Vec<Vec<String>> = words(&conversation)
                .into_iter()
                .map(without_thinking)
                .collect();
            assert_eq!(again, before, "{} to {}", from.name(), to.name());
            assert_eq!(to.results_in(&body).len(), 3);
            let calls: Vec<String> = turns.iter().flat_map(|turn| to.calls(turn)).collect();
            let answered: Vec<String> = to.results_in(&body).into_iter().map(|r| r.0).collect();
            assert_eq!(answered, calls, "{} to {}", from.name(), to.name());
        }
    }
}

fn without_thinking(mut said: Vec<String>) -> Vec<String> {
    said.retain(|line| !line.starts_with("thinking"));
    said
}
