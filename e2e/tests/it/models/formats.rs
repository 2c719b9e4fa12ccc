//! The four provider formats, seen on both wires of the server: text, reasoning, tools, usage and
//! cost (S3-052..066, S1-015, S1-016, S1-024, S1-146, S3-107, C-10).

use serde_json::{Value, json};
use turnwire_e2e::models::{KEY, MODEL, ProviderFixture, fields, payloads, price, shape, word};
use turnwire_testkit::provider::{
    BlockOrder, Dialect, FinishReason, MessagePart, ModelMessage, TokenCounts,
};

/// What every answer costs here; Gemini does not say what it wrote into its cache.
const USAGE: TokenCounts = TokenCounts {
    input: 1_000,
    cached: 200,
    cache_write: 0,
    output: 50,
    reasoning: 10,
};

/// A plain turn, in order (S3-052). The trace at its end is the dispatch's (D-47).
const PLAIN: [&str; 9] = [
    "turn.started",
    "route.decided",
    "llm.call_started",
    "message.start",
    "text.delta",
    "message.complete",
    "llm.call_completed",
    "dispatch.traced",
    "turn.completed",
];

fn close(found: &Value, wanted: f64) {
    let actual = found.as_f64().unwrap_or(f64::NAN);
    assert!((actual - wanted).abs() < 1e-9, "{actual}, not {wanted}");
}

/// The deltas of a type, by their block: the texts, joined.
fn joined(events: &[Value], kind: &str, field: &str) -> Vec<(u64, String)> {
    let mut blocks: Vec<(u64, String)> = Vec::new();
    for payload in payloads(events, kind) {
        let block = payload["content_block_index"].as_u64().expect("a block");
        let text = payload[field].as_str().expect("a text");
        match blocks.iter_mut().find(|(known, _)| *known == block) {
            Some((_, all)) => all.push_str(text),
            None => blocks.push((block, text.to_owned())),
        }
    }
    blocks
}

// S3-052, S3-054, S3-060
#[tokio::test]
async fn plain_turn_is_in_order_in_every_format() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        let answer = ModelMessage::text(["Guten ", "Tag, ", "schön 水 \u{1f30a}."]);
        setup.fake.push(answer.usage(USAGE).id("answer-0815"));
        let (reply, events) = setup.ask("Hallo!").await;
        let name = word(dialect);
        assert_eq!(shape(&events), PLAIN, "{name}");
        let words = "Guten Tag, schön 水 \u{1f30a}.";
        assert_eq!(
            joined(&events, "text.delta", "text"),
            [(0, words.to_owned())]
        );
        let start = payloads(&events, "message.start")[0];
        assert_eq!(start["model"], format!("vendor:{MODEL}"), "s3_053");
        let end = payloads(&events, "message.complete")[0];
        assert_eq!(
            end["final_content"],
            json!([{"type": "text", "text": words}])
        );
        assert_eq!(end["stop_reason"], "end_turn");
        let usage = &payloads(&events, "llm.call_completed")[0]["usage"];
        assert_eq!(&end["usage"], usage, "s3_060");
        close(&usage["cost_usd"], price(1_000, 200, 0, 50));
        let counts = ["input", "output", "total", "reasoning", "cached"];
        let counts = counts.map(|name| usage[format!("{name}_tokens")].as_u64());
        assert_eq!(counts, [1_000, 50, 1_050, 10, 200].map(Some), "{name}");
        let stored = setup.engine.messages().await;
        assert_eq!(stored[1]["content"], end["final_content"], "s3_051");
        // The opening indicator has no content; nothing else was thought (C-10).
        let labels = reply.labels();
        assert_eq!(
            labels,
            [
                "response_id",
                "episode",
                "thinking",
                "text",
                "usage",
                "completed"
            ],
            "{name}"
        );
        let opening = reply.of("thinking").next().expect("it");
        assert_eq!(
            (opening.field("content"), reply.text().as_str()),
            (&Value::Null, words)
        );
        let call = setup.fake.call(0).await;
        assert_eq!(call.dialect, Some(dialect));
        assert!(!call.text.contains(KEY), "a key goes in a header");
        assert!(call.text.contains("Hallo!") && call.text.contains("market's assistant"));
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}

/// Reasoning before the words and after some of them.
fn thoughtful() -> ModelMessage {
    let parts = [
        MessagePart::thinking(["Let me ", "see."], "c2VhbCBvbmU="),
        MessagePart::text(["First ", "this. "]),
        MessagePart::thinking(["And ", "then?"], "c2VhbCB0d28="),
        MessagePart::text(["Then ", "that."]),
    ];
    ModelMessage::new(parts).chat_reasoning("reasoning_content")
}

// S3-055, S1-015, S1-016, C-10
#[tokio::test]
async fn reasoning_is_reported_before_and_after_text() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        setup.fake.push(thoughtful());
        let (reply, events) = setup.ask("Think!").await;
        let thoughts = joined(&events, "thinking.delta", "text");
        let thoughts: Vec<&str> = thoughts.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(thoughts, ["Let me see.", "And then?"], "{name}");
        // A proof stands on the last delta of its block and nowhere else. Chat Completions has
        // none, and what Responses seals is no proof of what it shows.
        let proves = matches!(dialect, Dialect::Anthropic | Dialect::Gemini);
        let deltas = payloads(&events, "thinking.delta");
        for (at, delta) in deltas.iter().enumerate() {
            let block = &delta["content_block_index"];
            let is_last = !deltas[at + 1..]
                .iter()
                .any(|d| &d["content_block_index"] == block);
            let proven = delta["signature"].is_string();
            assert!(
                delta.get("signature").is_some(),
                "{name}: it is there, if null"
            );
            assert_eq!(proven, is_last && proves, "{name}: {delta}");
        }
        let end = payloads(&events, "message.complete")[0];
        let kinds: Vec<&Value> = end["final_content"]
            .as_array()
            .expect("blocks")
            .iter()
            .map(|block| &block["type"])
            .collect();
        assert_eq!(kinds, ["thinking", "text", "thinking", "text"], "{name}");
        let labels = reply.labels();
        let middle = &labels[2..labels.len() - 2];
        assert_eq!(middle, ["thinking", "text", "reasoning", "text"], "{name}");
        let thinking: Vec<&Value> = reply.of("thinking").map(|f| f.field("content")).collect();
        assert_eq!(thinking[0], &Value::Null, "the first indicator is empty");
        let content: String = thinking.iter().filter_map(|c| c.as_str()).collect();
        assert_eq!(content, "Let me see.", "{name}");
        let reasoning = reply
            .of("reasoning")
            .filter_map(|f| f.field("chunk").as_str());
        assert_eq!(reasoning.collect::<String>(), "And then?", "{name}");
        assert_eq!(reply.text(), "First this. Then that.", "{name}");
        // A proof is for the provider: it is in no frame of the chat wire.
        reply.assert_absent(&["c2VhbCBvbmU", "c2VhbCB0d28"]);
        setup.engine.check_history().await;
    }
}

/// An answer with a thought and two calls whose inputs come in turns.
fn two_tools() -> ModelMessage {
    let calls = [
        MessagePart::thinking(["Two at once."], "c2VhbCBvbmU="),
        MessagePart::text(["Let me look."]),
        MessagePart::call(
            "call_alpha",
            "say_back",
            &json!({"text": "eins \"quoted\" 水"}),
        )
        .signed("Y2FsbA=="),
        MessagePart::call("call_beta", "say_back", &json!({"text": "zwei"})),
    ];
    ModelMessage::new(calls)
        .order(BlockOrder::Interleaved)
        .chat_reasoning("reasoning_content")
        .usage(USAGE)
}

// S3-056, S3-057, S3-058, S3-066
#[tokio::test]
async fn two_parallel_tools_are_kept_apart() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        setup.fake.push(two_tools());
        setup.fake.push(ModelMessage::text(["Done."]));
        let (reply, events) = setup.ask("Both, please.").await;
        let starts = payloads(&events, "tool.use_start");
        assert_eq!(starts.len(), 2, "{name}");
        assert_ne!(starts[0]["tool_use_id"], starts[1]["tool_use_id"]);
        assert_ne!(
            starts[0]["content_block_index"],
            starts[1]["content_block_index"]
        );
        let ends = payloads(&events, "tool.use_end");
        for (start, text) in starts.iter().zip(["eins \"quoted\" 水", "zwei"]) {
            let own = |payload: &&&Value| payload["tool_use_id"] == start["tool_use_id"];
            assert!(
                start["tool_use_id"]
                    .as_str()
                    .is_some_and(|id| id.starts_with("tu_"))
            );
            let deltas = payloads(&events, "tool.use_input_delta");
            let json: String = deltas
                .iter()
                .filter(own)
                .filter_map(|payload| payload["partial_json"].as_str())
                .collect();
            let parsed: Value = serde_json::from_str(&json).expect("JSON in the end");
            let end = ends.iter().find(own).expect("an end");
            assert_eq!(parsed, end["final_input"], "{name}");
            assert_eq!(parsed, json!({"text": text}), "{name}");
            assert_eq!(end["content_block_index"], start["content_block_index"]);
        }
        let names = shape(&events);
        let at = |kind: &str| names.iter().position(|name| *name == kind).expect(kind);
        assert!(
            at("message.complete") < at("llm.call_completed"),
            "{names:?}"
        );
        assert!(at("llm.call_completed") < at("tool.called"), "{names:?}");
        assert!(at("tool.called") < at("tool.completed"), "{names:?}");
        let next = names
            .iter()
            .rposition(|name| *name == "llm.call_started")
            .expect("it");
        assert!(at("tool.completed") < next, "{names:?}");
        assert_eq!(
            fields(&events, "llm.call_started", "attempt"),
            [1, 1],
            "{name}"
        );
        reply.assert_tools_paired();
        assert_eq!(
            (reply.count("tool_call"), reply.text().as_str()),
            (2, "Let me look.Done.")
        );
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}

// S3-059
#[tokio::test]
async fn message_reports_its_stop_reason() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        let anthropic = dialect == Dialect::Anthropic;
        for (finish, reason) in [
            (FinishReason::Done, "end_turn"),
            (FinishReason::Length, "max_tokens"),
            (
                FinishReason::Sequence("END".into()),
                if anthropic {
                    "stop_sequence"
                } else {
                    "end_turn"
                },
            ),
            // A word to come is an end like any other.
            (FinishReason::Word("aurora".into()), "end_turn"),
        ] {
            if dialect == Dialect::Responses && matches!(finish, FinishReason::Word(_)) {
                continue;
            }
            setup
                .fake
                .push(ModelMessage::text(["So."]).finish(finish.clone()));
            let (reply, events) = setup.ask("Speak!").await;
            let end = payloads(&events, "message.complete")[0];
            assert_eq!(end["stop_reason"], reason, "{} {finish:?}", word(dialect));
            assert_eq!(reply.last().event(), "completed");
        }
        setup.engine.check_history().await;
    }
}

// S3-061
#[tokio::test]
async fn message_of_300_kilobytes_arrives_whole() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        setup
            .fake
            .push(ModelMessage::new([MessagePart::flood(300_000)]));
        let (reply, events) = setup.ask("All of it.").await;
        let end = payloads(&events, "message.complete")[0];
        let text = end["final_content"][0]["text"].as_str().expect("a text");
        assert!(text.len() >= 300_000, "{}", text.len());
        assert_eq!(reply.text(), text);
        setup.engine.check_history().await;
    }
}

// S3-065
#[tokio::test]
async fn out_of_order_blocks_are_reordered() {
    for dialect in [Dialect::Anthropic, Dialect::Chat, Dialect::Responses] {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        let parts = [
            MessagePart::text(["First."]),
            MessagePart::call("call_alpha", "say_back", &json!({"text": "eins"})),
            MessagePart::call("call_beta", "say_back", &json!({"text": "zwei"})),
        ];
        setup
            .fake
            .push(ModelMessage::new(parts).order(BlockOrder::Backwards));
        setup.fake.push(ModelMessage::text(["Done."]));
        let (reply, events) = setup.ask("Both, please.").await;
        let content = &payloads(&events, "message.complete")[0]["final_content"];
        let told_of: Vec<&Value> = content
            .as_array()
            .expect("blocks")
            .iter()
            .map(|block| match block["type"].as_str() {
                Some("text") => &block["text"],
                _ => &block["input"]["text"],
            })
            .collect();
        assert_eq!(told_of, ["First.", "eins", "zwei"], "{name}");
        let places = fields(&events, "tool.use_start", "content_block_index");
        assert_eq!(places, [1, 2], "{name}");
        let kinds = ["message.start", "text.delta", "tool.use_start"];
        let kinds_seen = shape(&events);
        let kinds_seen: Vec<&str> = kinds_seen
            .into_iter()
            .filter(|kind| kinds.contains(kind))
            .collect();
        assert_eq!(kinds_seen[..3], kinds, "{name}: no hole is told");
        assert_eq!(reply.text(), "First.Done.", "{name}");
        setup.engine.check_history().await;
    }
}
