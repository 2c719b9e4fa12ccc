//! Any input: no panic, one end, and deltas that keep their guarantees. Frames, events, chunks and
//! error responses are generated at random.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::{Delta, ErrorResponse, SseEvent, VendorDialect};

/// Any JSON, with keys and strings that the dialects read.
fn any_json() -> impl Strategy<Value = Value> {
    let strings = prop::sample::select(vec![
        "text_delta",
        "input_json_delta",
        "thinking_delta",
        "signature_delta",
        "tool_use",
        "text",
        "thinking",
        "redacted_thinking",
        "stop",
        "length",
        "tool_calls",
        "error",
        "",
        "a\u{0}é🚢",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        strings.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "error",
        "id",
        "name",
        "input",
        "text",
        "choices",
        "finish_reason",
        "tool_calls",
        "function",
        "arguments",
        "content",
        "reasoning",
        "code",
        "input_tokens",
        "prompt_tokens",
        "stop_reason",
    ]);
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            }),
        ]
    })
}

/// A well-formed Messages event; the order of events is random.
fn any_event() -> impl Strategy<Value = Value> {
    let index = prop_oneof![0_u64..4, Just(u64::MAX), any::<u64>()];
    (index, 0_u8..12, "[a-zé]{0,3}").prop_map(|(index, kind, text)| match kind {
        0 => json!({"type": "message_start", "message": {"id": text, "usage": {"input_tokens": index}}}),
        1 => start(index, json!({"type": "text", "text": text})),
        2 => start(index, json!({"type": "thinking", "thinking": text, "signature": ""})),
        3 => start(index, json!({"type": "tool_use", "id": text, "name": "t", "input": {}})),
        4 => start(index, json!({"type": "redacted_thinking", "data": text})),
        5 => start(index, json!({"type": "aurora", "x": text})),
        6 => piece(index, json!({"type": "text_delta", "text": text})),
        7 => piece(index, json!({"type": "thinking_delta", "thinking": text})),
        8 => piece(index, json!({"type": "signature_delta", "signature": text})),
        9 => piece(index, json!({"type": "input_json_delta", "partial_json": text})),
        10 => json!({"type": "content_block_stop", "index": index}),
        _ => json!({"type": "message_delta", "delta": {"stop_reason": text}, "usage": {}}),
    })
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

/// A well-formed Chat Completions chunk, with incomplete tool-call ids.
fn any_chunk() -> impl Strategy<Value = Value> {
    let call = (
        prop::option::of(0_u64..3),
        prop::option::of("[ab]?"),
        prop::option::of("[tu]?"),
        prop::option::of("[{}]{0,2}"),
    );
    let calls = prop::collection::vec(call, 0..3).prop_map(|calls| {
        let calls = calls.into_iter().map(|(index, id, name, arguments)| {
            json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
        });
        calls.collect::<Value>()
    });
    let reason = prop_oneof![9 => Just(Value::Null), 1 => Just(json!("tool_calls"))];
    ("[a-z]{0,2}", prop::option::of("[a-z]{0,2}"), calls, reason).prop_map(
        |(content, reasoning, calls, reason)| {
            let delta = json!({"content": content, "reasoning": reasoning, "tool_calls": calls});
            json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        },
    )
}

/// The guarantees of a delta stream: block numbers without gaps, one kind per block, tool input
/// between start and end, `Begun` first and `Stop` last.
fn assert_valid(deltas: &VecDeque<Delta>) {
    let mut blocks: BTreeMap<u32, &str> = BTreeMap::new();
    for (n, delta) in deltas.iter().enumerate() {
        let (block, kind) = match delta {
            Delta::Started { .. } => {
                assert_eq!(n, 0, "before everything else");
                continue;
            }
            Delta::PartialUsage { .. } => panic!("decoders emit no usage deltas"),
            Delta::Stop { .. } => {
                assert_eq!(n + 1, deltas.len(), "the last");
                continue;
            }
            Delta::ProviderData { block, .. } => {
                let next = blocks.len() as u32;
                assert!(*block <= next, "no gap");
                blocks.entry(*block).or_insert("opaque");
                continue;
            }
            Delta::Text { block, .. } => (*block, "text"),
            Delta::Thinking { block, .. } => (*block, "thinking"),
            Delta::ToolStart { block, name, .. } => {
                assert!(!name.is_empty() && !blocks.contains_key(block));
                (*block, "tool")
            }
            Delta::ToolInput { block, .. } => {
                assert_eq!(blocks.get(block), Some(&"tool"));
                (*block, "tool")
            }
            Delta::ToolEnd { block } => {
                assert_eq!(blocks.insert(*block, "ended"), Some("tool"));
                continue;
            }
        };
        assert!(block <= blocks.len() as u32, "no gap");
        assert_eq!(*blocks.entry(block).or_insert(kind), kind, "one kind");
    }
}

/// Decodes the frames until one fails, and ends the stream.
fn run(dialect: &dyn VendorDialect, frames: &[(Option<String>, String)]) -> VecDeque<Delta> {
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for (event, data) in frames {
        let event = event.as_deref();
        if decoder.step(SseEvent { event, data }, &mut out).is_err() {
            return out;
        }
    }
    let is_ok = decoder.end(&mut out).is_ok();
    let has_stop = matches!(out.back(), Some(Delta::Stop { .. }));
    assert_eq!(is_ok, has_stop, "a stop or an error");
    out
}

fn unnamed(values: Vec<Value>) -> Vec<(Option<String>, String)> {
    values
        .into_iter()
        .map(|value| (None, value.to_string()))
        .collect()
}

const NAMES: [&str; 9] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
    "ping",
    "message",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_frames_decode_to_valid_deltas(
        frames in prop::collection::vec(
            (prop::option::of(prop::sample::select(NAMES.to_vec())),
             prop_oneof![4 => any_json().prop_map(|v| v.to_string()), 1 => ".{0,20}"]),
            0..12,
        ),
    ) {
        let frames: Vec<_> = frames.into_iter().map(|(e, d)| (e.map(str::to_owned), d)).collect();
        assert_valid(&run(&AnthropicDialect, &frames));
        assert_valid(&run(&OpenAiChatDialect, &frames));
    }

    #[test]
    fn messages_events_in_any_order_give_valid_deltas(
        events in prop::collection::vec(any_event(), 0..40), ends in any::<bool>(),
    ) {
        let mut events = events;
        if ends {
            events.push(json!({"type": "message_stop"}));
        }
        assert_valid(&run(&AnthropicDialect, &unnamed(events)));
    }

    #[test]
    fn chat_chunks_in_any_order_give_valid_deltas(chunks in prop::collection::vec(any_chunk(), 0..20)) {
        assert_valid(&run(&OpenAiChatDialect, &unnamed(chunks)));
    }

    #[test]
    fn any_error_response_is_classified_equally(status in any::<u16>(), body in any::<Vec<u8>>(), json in any_json()) {
        for body in [body, json.to_string().into_bytes()] {
            let response = ErrorResponse { status, retry_after: None, body: &body };
            prop_assert_eq!(AnthropicDialect.classify_response(response), OpenAiChatDialect.classify_response(response));
        }
    }
}
