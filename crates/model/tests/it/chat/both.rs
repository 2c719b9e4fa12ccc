//! The same conversation in both dialects says the same.

use turnwire_model::dialect::anthropic::Anthropic;
use turnwire_model::dialect::openai_chat::OpenAiChat;

use crate::chat::support::{ANTHROPIC, OPENAI_CHAT, decode, fixture, lines};

/// Lines without the names that providers give.
fn nameless(lines: Vec<String>) -> Vec<String> {
    let without = |line: String| {
        if line.starts_with("begun ") || line.contains(" tool ") || line.contains(" keep ") {
            let words: Vec<&str> = line.split(' ').collect();
            return words[..words.len() - 1].join(" ");
        }
        line
    };
    lines.into_iter().map(without).collect()
}

fn both(name: &str) -> [Vec<String>; 2] {
    let anthropic = lines(decode(&Anthropic, fixture(ANTHROPIC, name)));
    let chat = lines(decode(&OpenAiChat, fixture(OPENAI_CHAT, name)));
    [nameless(anthropic), nameless(chat)]
}

#[test]
fn s3_063_the_same_conversation_gives_the_same_deltas_apart_from_ids() {
    let [anthropic, chat] = both("conversation");
    assert_eq!(anthropic, chat);
    assert_eq!(
        anthropic,
        [
            "begun",
            "0 text Ich sehe ",
            "0 text nach: Grö",
            "0 text ße 🚢",
            "0 text …",
            "1 tool get_weather",
            "1 keep",
            r#"1 input {"city""#,
            r#"1 input : "Kö"#,
            r#"1 input ln", "unit""#,
            r#"1 input : "celsius"}"#,
            "1 end",
            "stop ToolUse 64+31=95 reasoning 0 cached 24",
        ]
    );
}

#[test]
fn s3_063_what_was_recorded_in_both_dialects_is_equal_but_for_ids_and_counts() {
    let [mut anthropic, mut chat] = both("recorded_tool");
    // The two calls were made one after the other, so the server's cache differs.
    let (one, other) = (anthropic.pop(), chat.pop());
    assert!(one.is_some_and(|stop| stop.starts_with("stop ToolUse ")));
    assert!(other.is_some_and(|stop| stop.starts_with("stop ToolUse ")));
    assert_eq!(anthropic, chat);
    assert_eq!(anthropic.len(), 19);
}
