//! One conversation through the four provider formats: the events are equal apart from ids and
//! model names (S3-062, S3-063, S3-064).

use serde_json::{Value, json};
use turnwire_e2e::models::{ProviderFixture, canonical, shape, word};
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage, TokenCounts};

/// What every answer costs here; Gemini does not say what it wrote into its cache.
const USAGE: TokenCounts = TokenCounts {
    input: 1_000,
    cached: 200,
    cache_write: 0,
    output: 50,
    reasoning: 10,
};

/// The canonical events of a conversation of two turns in a format: words, thoughts, a tool that
/// works and one that fails, and the next turn. What formats cannot say alike is told alike: pieces
/// of a tool's input as one, since Gemini has no pieces, and tools of one message one after the
/// other, since Chat Completions says where a call ends only at the end of them all.
async fn conversation(dialect: Dialect) -> Vec<Value> {
    let setup = ProviderFixture::new(dialect).await;
    let thought = MessagePart::Thinking {
        pieces: vec!["Two ".into(), "at once.".into()],
        signature: Vec::new(),
    };
    let first = ModelMessage::new([
        thought,
        MessagePart::text(["Let me ", "look."]),
        MessagePart::call("call_alpha", "say_back", &json!({"text": "eins"})),
        MessagePart::call("call_beta", "nap", &json!({"ms": 300})),
    ]);
    let first = first.chat_reasoning("reasoning_content").usage(USAGE);
    setup.fake.push(first);
    let second = MessagePart::call("call_gamma", "boom", &json!({"message": "drei"}));
    setup.fake.push(ModelMessage::new([second]).usage(USAGE));
    setup
        .fake
        .push(ModelMessage::text(["One ", "went wrong."]).usage(USAGE));
    setup
        .fake
        .push(ModelMessage::text(["You are ", "welcome."]).usage(USAGE));
    let mut events = Vec::new();
    for message in ["Both, please.", "Thank you."] {
        let (_, seen) = setup.ask(message).await;
        events.extend(seen);
    }
    setup.assert_no_rejections();
    setup.engine.check_history().await;
    let mut conversations: Vec<Value> = Vec::new();
    for event in canonical(&events) {
        let piece = event["payload"]["partial_json"].as_str().map(str::to_owned);
        let last = conversations.last_mut().filter(|last| {
            let (of, own) = (&last["payload"], &event["payload"]);
            last["type"] == event["type"] && of["tool_use_id"] == own["tool_use_id"]
        });
        match (piece, last) {
            (Some(piece), Some(last)) => {
                let before = last["payload"]["partial_json"].as_str().unwrap_or_default();
                last["payload"]["partial_json"] = json!(before.to_owned() + &piece);
            }
            _ => conversations.push(event),
        }
    }
    let tools = |event: &Value| {
        event["type"]
            .as_str()
            .is_some_and(|t| t.starts_with("tool.use_"))
    };
    // Raw fragments are raw: Google puts spaces into its JSON.
    for event in &mut conversations {
        let parsed = event["payload"]["partial_json"]
            .as_str()
            .map(serde_json::from_str);
        if let Some(parsed) = parsed {
            event["payload"]["partial_json"] = parsed.expect("JSON in the end");
        }
    }
    for run in conversations.chunk_by_mut(|left, right| tools(left) == tools(right)) {
        if tools(&run[0]) {
            run.sort_by_key(|event| event["payload"]["content_block_index"].as_u64());
        }
    }
    conversations
}

fn same(left: &[Value], right: &[Value]) {
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left, right);
    }
    assert_eq!(shape(left), shape(right));
    assert_eq!(left.len(), right.len());
}

// S3-063, S3-064
#[tokio::test]
async fn one_conversation_gives_equal_events_in_every_format() {
    let expected = conversation(Dialect::Anthropic).await;
    for other in [Dialect::Chat, Dialect::Responses, Dialect::Gemini] {
        println!("{} and {}", word(Dialect::Anthropic), word(other));
        same(&expected, &conversation(other).await);
    }
}
