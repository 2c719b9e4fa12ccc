//! The same conversation gives equal deltas in both dialects. Only ids and token counts may differ,
//! because each provider assigns its own.

use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;

use crate::anthropic_and_chat::support::{ANTHROPIC, OPENAI_CHAT, decode, fixture, lines};

/// Lines without the ids that providers assign.
fn without_ids(lines: Vec<String>) -> Vec<String> {
    let without_id = |line: String| {
        if line.starts_with("begun ") || line.contains(" tool ") || line.contains(" keep ") {
            let fields: Vec<&str> = line.split(' ').collect();
            return fields[..fields.len() - 1].join(" ");
        }
        line
    };
    lines.into_iter().map(without_id).collect()
}

fn in_both_dialects(name: &str) -> [Vec<String>; 2] {
    let anthropic = lines(decode(&AnthropicDialect, fixture(ANTHROPIC, name)));
    let chat = lines(decode(&OpenAiChatDialect, fixture(OPENAI_CHAT, name)));
    [without_ids(anthropic), without_ids(chat)]
}

// S3-063
#[test]
fn conversation_gives_equal_deltas_in_both_dialects() {
    let [anthropic, chat] = in_both_dialects("conversation");
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

// S3-063
#[test]
fn recorded_tool_call_is_equal_in_both_dialects() {
    let [mut anthropic, mut chat] = in_both_dialects("recorded_tool");
    // The two calls were recorded one after the other, so the server's cache counts differ.
    let (anthropic_stop, chat_stop) = (anthropic.pop(), chat.pop());
    assert!(anthropic_stop.is_some_and(|stop| stop.starts_with("stop ToolUse ")));
    assert!(chat_stop.is_some_and(|stop| stop.starts_with("stop ToolUse ")));
    assert_eq!(anthropic, chat);
    assert_eq!(anthropic.len(), 19);
}
