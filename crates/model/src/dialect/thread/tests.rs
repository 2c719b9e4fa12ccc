//! The weaving: what stands where, and what is left out.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::{Kept, Ulid};

use super::*;

fn id(n: u128) -> ToolUseId {
    ToolUseId(Ulid(n))
}

fn asked(n: u128) -> ContentBlock {
    ContentBlock::ToolUse {
        id: id(n),
        name: format!("tool_{n}"),
        input: json!({"n": n as u64}),
    }
}

fn gave(n: u128) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id(n),
        content: json!(format!("result {n}")),
        is_error: false,
    }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::text(text)
}

fn request(messages: Vec<Said>) -> Request {
    Request {
        model: "one:m".into(),
        agent: "orchestrator".into(),
        call: 1,
        attempt: 1,
        locale: String::new(),
        system: Some("Be kind.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
    }
}

/// The thread in a line per turn.
fn told(provider: &str, messages: Vec<Said>) -> Vec<String> {
    let request = request(messages);
    let thread = thread(provider, &request);
    let line = |turn: &Turn<'_>| match turn {
        Turn::User { results, words } => {
            let results = results
                .iter()
                .map(|r| format!("{}={}", r.id, plain(r.content)));
            let words = words.iter().map(|word| (*word).to_owned());
            format!(
                "user {}",
                results.chain(words).collect::<Vec<_>>().join("|")
            )
        }
        Turn::Assistant(said) => {
            let parts = said.iter().flatten().map(|part| match part {
                Part::Text { text, .. } => (*text).to_owned(),
                Part::Thinking { text, .. } => format!("({text})"),
                Part::Use { id, .. } => format!("use {id}"),
                Part::Sealed(data) => data.to_string(),
            });
            format!("assistant {}", parts.collect::<Vec<_>>().join("|"))
        }
    };
    thread.turns.iter().map(line).collect()
}

fn kept_by(by: &str, said: Said, blocks: &[(u32, Value)]) -> Said {
    Said {
        kept: Kept {
            by: by.into(),
            blocks: blocks.iter().cloned().collect(),
        },
        ..said
    }
}

#[test]
fn results_stand_together_right_behind_their_uses_and_before_words() {
    let lines = told(
        "one",
        vec![
            Said::new(Role::User, vec![text("a"), text(" \n"), text("b")]),
            Said::new(Role::User, vec![text("c")]),
            Said::new(Role::Assistant, vec![text("look"), asked(1), asked(2)]),
            Said::new(Role::User, vec![text("hurry")]),
            Said::new(Role::Tool, vec![gave(2)]),
            Said::new(Role::Assistant, vec![text("done")]),
            Said::new(Role::Assistant, vec![text("really")]),
            Said::new(Role::Tool, vec![gave(1)]),
        ],
    );
    let (one, two) = (id(1), id(2));
    assert_eq!(
        lines,
        [
            "user a|b|c".to_owned(),
            format!("assistant look|use {one}|use {two}"),
            format!("user {one}=result 1|{two}=result 2|hurry"),
            "assistant done|really".to_owned(),
        ]
    );
}

#[test]
fn half_pairs_empty_messages_and_what_is_for_people_are_left_out() {
    let component = ContentBlock::Component {
        tool_use_id: id(9),
        component: json!({}),
    };
    let lines = told(
        "one",
        vec![
            Said::new(Role::Tool, vec![gave(7)]),
            Said::new(Role::User, vec![text("hi"), component]),
            Said::new(Role::Assistant, vec![text(""), asked(3)]),
            Said::new(Role::User, vec![text("so?")]),
        ],
    );
    assert_eq!(lines, ["user hi|so?"]);
}

#[test]
fn what_a_provider_gave_goes_back_to_it_alone() {
    let said = || {
        let content = vec![
            ContentBlock::Thinking {
                text: "hm".into(),
                signature: Some("sig".into()),
            },
            text(""),
            asked(1),
            asked(2),
        ];
        let kept = [
            (1, json!({"sealed": 1})),
            (2, json!({"id": "theirs"})),
            (3, json!({"id": "theirs"})),
            (9, json!({"sealed": 9})),
        ];
        let answer = kept_by("one", Said::new(Role::Assistant, content), &kept);
        vec![
            Said::new(Role::User, vec![text("hi")]),
            answer,
            Said::new(Role::Tool, vec![gave(1), gave(2)]),
        ]
    };
    let (one, two) = (id(1), id(2));
    assert_eq!(
        told("one", said())[1..],
        [
            format!("assistant (hm)|{{\"sealed\":1}}|use theirs|use {two}|{{\"sealed\":9}}"),
            format!("user theirs=result 1|{two}=result 2"),
        ],
        "a name that is taken is not given twice"
    );
    assert_eq!(
        told("two", said())[1..],
        [
            format!("assistant use {one}|use {two}"),
            format!("user {one}=result 1|{two}=result 2"),
        ]
    );
}

#[test]
fn what_the_house_says_joins_the_standing_instruction() {
    let request = request(vec![
        Said::new(Role::System, vec![text("And brief."), text(" ")]),
        Said::new(Role::User, vec![text("hi")]),
    ]);
    let thread = thread("one", &request);
    assert_eq!(thread.system, ["Be kind.", "And brief."]);
    assert_eq!(thread.turns.len(), 1);
}

#[test]
fn a_name_that_no_vendor_takes_is_sent_as_one_that_they_do() {
    let sent = |name: &str| {
        let used = ContentBlock::ToolUse {
            id: id(1),
            name: name.into(),
            input: json!({}),
        };
        let request = request(vec![
            Said::new(Role::User, vec![text("hi")]),
            Said::new(Role::Assistant, vec![used]),
            Said::new(Role::Tool, vec![gave(1)]),
        ]);
        let thread = thread("one", &request);
        let [
            Turn::User { .. },
            Turn::Assistant(said),
            Turn::User { results, .. },
        ] = &thread.turns[..]
        else {
            panic!("{:?}", thread.turns);
        };
        let [Part::Use { name, .. }] = &said[0][..] else {
            panic!("{said:?}");
        };
        assert_eq!(*name, results[0].name, "the result goes by the same name");
        name.clone().into_owned()
    };
    assert_eq!(sent("get_weather-2"), "get_weather-2");
    assert_eq!(sent("functions.get weather:0"), "functions_get_weather_0");
    assert_eq!(sent("größe🚢"), "gr__e_");
    assert_eq!(sent(&"x".repeat(200)), "x".repeat(64));
    assert_eq!(sent(""), "_");
}
