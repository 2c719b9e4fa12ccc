//! Whatever a server sends: no panic, one end, and deltas that keep what is promised of them.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire_model::dialect::anthropic::Anthropic;
use turnwire_model::dialect::openai_chat::OpenAiChat;
use turnwire_model::{Delta, Dialect, ErrorResponse, Frame};

/// Any JSON, with the names that the dialects look at among its keys and words.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
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
        words.prop_map(Value::from),
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

/// An event of Messages that is well formed, in an order that need not be.
fn any_event() -> impl Strategy<Value = Value> {
    let index = prop_oneof![0_u64..4, Just(u64::MAX), any::<u64>()];
    (index, 0_u8..12, "[a-zé]{0,3}").prop_map(|(index, kind, word)| match kind {
        0 => json!({"type": "message_start", "message": {"id": word, "usage": {"input_tokens": index}}}),
        1 => start(index, json!({"type": "text", "text": word})),
        2 => start(index, json!({"type": "thinking", "thinking": word, "signature": ""})),
        3 => start(index, json!({"type": "tool_use", "id": word, "name": "t", "input": {}})),
        4 => start(index, json!({"type": "redacted_thinking", "data": word})),
        5 => start(index, json!({"type": "aurora", "x": word})),
        6 => piece(index, json!({"type": "text_delta", "text": word})),
        7 => piece(index, json!({"type": "thinking_delta", "thinking": word})),
        8 => piece(index, json!({"type": "signature_delta", "signature": word})),
        9 => piece(index, json!({"type": "input_json_delta", "partial_json": word})),
        10 => json!({"type": "content_block_stop", "index": index}),
        _ => json!({"type": "message_delta", "delta": {"stop_reason": word}, "usage": {}}),
    })
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

/// A chunk of Chat Completions that is well formed, with calls that are named carelessly.
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

/// What is promised of deltas: blocks without gaps, each of one kind, a tool's input between its
/// start and its end, the beginning first and the end last.
fn keeps_its_promise(deltas: &VecDeque<Delta>) {
    let mut blocks: BTreeMap<u32, &str> = BTreeMap::new();
    for (n, delta) in deltas.iter().enumerate() {
        let (block, kind) = match delta {
            Delta::Begun { .. } => {
                assert_eq!(n, 0, "before everything else");
                continue;
            }
            Delta::Spent { .. } => panic!("a decoder is asked what was spent"),
            Delta::Stop { .. } => {
                assert_eq!(n + 1, deltas.len(), "the last");
                continue;
            }
            Delta::Keep { block, .. } => {
                let next = blocks.len() as u32;
                assert!(*block <= next, "no gap");
                blocks.entry(*block).or_insert("sealed");
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

/// Steps through the frames until one fails, and ends the stream.
fn run(dialect: &dyn Dialect, frames: &[(Option<String>, String)]) -> VecDeque<Delta> {
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for (event, data) in frames {
        let event = event.as_deref();
        if decoder.step(Frame { event, data }, &mut out).is_err() {
            return out;
        }
    }
    let ended = decoder.end(&mut out).is_ok();
    let stopped = matches!(out.back(), Some(Delta::Stop { .. }));
    assert_eq!(ended, stopped, "an end, or a failure");
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
    fn any_frame_is_survived(
        frames in prop::collection::vec(
            (prop::option::of(prop::sample::select(NAMES.to_vec())),
             prop_oneof![4 => any_json().prop_map(|v| v.to_string()), 1 => ".{0,20}"]),
            0..12,
        ),
    ) {
        let frames: Vec<_> = frames.into_iter().map(|(e, d)| (e.map(str::to_owned), d)).collect();
        keeps_its_promise(&run(&Anthropic, &frames));
        keeps_its_promise(&run(&OpenAiChat, &frames));
    }

    #[test]
    fn any_order_of_events_keeps_the_promise(
        events in prop::collection::vec(any_event(), 0..40), ends in any::<bool>(),
    ) {
        let mut events = events;
        if ends {
            events.push(json!({"type": "message_stop"}));
        }
        keeps_its_promise(&run(&Anthropic, &unnamed(events)));
    }

    #[test]
    fn any_order_of_chunks_keeps_the_promise(chunks in prop::collection::vec(any_chunk(), 0..20)) {
        keeps_its_promise(&run(&OpenAiChat, &unnamed(chunks)));
    }

    #[test]
    fn any_refusal_is_survived(status in any::<u16>(), body in any::<Vec<u8>>(), json in any_json()) {
        for body in [body, json.to_string().into_bytes()] {
            let refused = ErrorResponse { status, retry_after: None, body: &body };
            prop_assert_eq!(Anthropic.classify_response(refused), OpenAiChat.classify_response(refused));
        }
    }
}
