//! Order of turns, and what is left out of a conversation. Provider data returns only to its
//! provider, and tool names are sanitised.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::{ProviderState, Ulid};

use super::*;

fn id(n: u128) -> ToolUseId {
    ToolUseId(Ulid(n))
}

fn tool_use(n: u128) -> ContentBlock {
    ContentBlock::ToolUse {
        id: id(n),
        name: format!("tool_{n}"),
        input: json!({"n": n as u64}),
    }
}

fn tool_result(n: u128) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id(n),
        content: json!(format!("result {n}")),
        is_error: false,
    }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::text(text)
}

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
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

/// The conversation of a request, one line per turn.
fn turn_lines(provider: &str, messages: Vec<ModelMessage>) -> Vec<String> {
    let request = request(messages);
    let conversation = conversation(provider, &request);
    let line = |turn: &ConversationTurn<'_>| match turn {
        ConversationTurn::User { results, texts } => {
            let results = results.iter().map(|r| format!("{}={}", r.id, r.text()));
            let texts = texts.iter().map(|text| (*text).to_owned());
            format!(
                "user {}",
                results.chain(texts).collect::<Vec<_>>().join("|")
            )
        }
        ConversationTurn::Assistant(messages) => {
            let parts = messages.iter().flatten().map(|part| match part {
                AssistantPart::Text { text, .. } => (*text).to_owned(),
                AssistantPart::Thinking { text, .. } => format!("({text})"),
                AssistantPart::ToolUse { id, .. } => format!("use {id}"),
                AssistantPart::Opaque(data) => data.to_string(),
            });
            format!("assistant {}", parts.collect::<Vec<_>>().join("|"))
        }
    };
    conversation.turns.iter().map(line).collect()
}

fn with_provider_data(by: &str, message: ModelMessage, blocks: &[(u32, Value)]) -> ModelMessage {
    ModelMessage {
        provider_data: ProviderState {
            by: by.into(),
            blocks: blocks.iter().cloned().collect(),
        },
        ..message
    }
}

#[test]
fn tool_results_directly_follow_their_uses_before_text() {
    let lines = turn_lines(
        "one",
        vec![
            ModelMessage::new(Role::User, vec![text("a"), text(" \n"), text("b")]),
            ModelMessage::new(Role::User, vec![text("c")]),
            ModelMessage::new(
                Role::Assistant,
                vec![text("look"), tool_use(1), tool_use(2)],
            ),
            ModelMessage::new(Role::User, vec![text("hurry")]),
            ModelMessage::new(Role::Tool, vec![tool_result(2)]),
            ModelMessage::new(Role::Assistant, vec![text("done")]),
            ModelMessage::new(Role::Assistant, vec![text("really")]),
            ModelMessage::new(Role::Tool, vec![tool_result(1)]),
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
fn unpaired_tools_empty_messages_and_components_are_left_out() {
    let component = ContentBlock::Component {
        tool_use_id: id(9),
        component: json!({}),
    };
    let lines = turn_lines(
        "one",
        vec![
            ModelMessage::new(Role::Tool, vec![tool_result(7)]),
            ModelMessage::new(Role::User, vec![text("hi"), component]),
            ModelMessage::new(Role::Assistant, vec![text(""), tool_use(3)]),
            ModelMessage::new(Role::User, vec![text("so?")]),
        ],
    );
    assert_eq!(lines, ["user hi|so?"]);
}

#[test]
fn provider_data_goes_back_only_to_its_provider() {
    let messages = || {
        let content = vec![
            ContentBlock::Thinking {
                text: "hm".into(),
                signature: Some("sig".into()),
            },
            text(""),
            tool_use(1),
            tool_use(2),
        ];
        let blocks_of_provider = [
            (1, json!({"sealed": 1})),
            (2, json!({"id": "theirs"})),
            (3, json!({"id": "theirs"})),
            (9, json!({"sealed": 9})),
        ];
        let answer = with_provider_data(
            "one",
            ModelMessage::new(Role::Assistant, content),
            &blocks_of_provider,
        );
        vec![
            ModelMessage::new(Role::User, vec![text("hi")]),
            answer,
            ModelMessage::new(Role::Tool, vec![tool_result(1), tool_result(2)]),
        ]
    };
    let (one, two) = (id(1), id(2));
    assert_eq!(
        turn_lines("one", messages())[1..],
        [
            format!("assistant (hm)|{{\"sealed\":1}}|use theirs|use {two}|{{\"sealed\":9}}"),
            format!("user theirs=result 1|{two}=result 2"),
        ],
        "a name that is taken is not given twice"
    );
    assert_eq!(
        turn_lines("two", messages())[1..],
        [
            format!("assistant use {one}|use {two}"),
            format!("user {one}=result 1|{two}=result 2"),
        ]
    );
}

#[test]
fn system_messages_join_the_system_prompt() {
    let request = request(vec![
        ModelMessage::new(Role::System, vec![text("And brief."), text(" ")]),
        ModelMessage::new(Role::User, vec![text("hi")]),
    ]);
    let conversation = conversation("one", &request);
    assert_eq!(conversation.system, ["Be kind.", "And brief."]);
    assert_eq!(conversation.turns.len(), 1);
}

#[test]
fn tool_name_is_reduced_to_accepted_characters() {
    let vendor_name = |name: &str| {
        let tool_use = ContentBlock::ToolUse {
            id: id(1),
            name: name.into(),
            input: json!({}),
        };
        let request = request(vec![
            ModelMessage::new(Role::User, vec![text("hi")]),
            ModelMessage::new(Role::Assistant, vec![tool_use]),
            ModelMessage::new(Role::Tool, vec![tool_result(1)]),
        ]);
        let conversation = conversation("one", &request);
        let [
            ConversationTurn::User { .. },
            ConversationTurn::Assistant(messages),
            ConversationTurn::User { results, .. },
        ] = &conversation.turns[..]
        else {
            panic!("{:?}", conversation.turns);
        };
        let [AssistantPart::ToolUse { name, .. }] = &messages[0][..] else {
            panic!("{messages:?}");
        };
        assert_eq!(*name, results[0].name, "the result goes by the same name");
        name.clone().into_owned()
    };
    assert_eq!(vendor_name("get_weather-2"), "get_weather-2");
    assert_eq!(
        vendor_name("functions.get weather:0"),
        "functions_get_weather_0"
    );
    assert_eq!(vendor_name("größe🚢"), "gr__e_");
    assert_eq!(vendor_name(&"x".repeat(200)), "x".repeat(64));
    assert_eq!(vendor_name(""), "_");
}
