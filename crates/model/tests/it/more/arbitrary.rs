//! Whatever comes in, a decoder answers with deltas or an error, keeps its promises, and never
//! panics.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire_event::StopReason;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::gemini::Gemini;
use turnwire_model::dialect::openai_responses::OpenAiResponses;
use turnwire_model::{Again, Delta, Dialect, ErrorResponse, Frame};

use crate::more::support::{GEMINI, RESPONSES};

/// Any JSON, of the words that the dialects use and of others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u32..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "item",
        "item_id",
        "output_index",
        "content_index",
        "summary_index",
        "delta",
        "text",
        "arguments",
        "response",
        "error",
        "code",
        "status",
        "usage",
        "id",
        "call_id",
        "name",
        "message",
        "reasoning",
        "function_call",
        "content",
        "summary",
        "output_text",
        "encrypted_content",
        "incomplete",
        "failed",
        "candidates",
        "parts",
        "thought",
        "thoughtSignature",
        "functionCall",
        "args",
        "finishReason",
        "STOP",
        "SAFETY",
        "promptFeedback",
        "blockReason",
        "usageMetadata",
        "promptTokenCount",
        "responseId",
    ])
    .prop_map(str::to_owned)
}

/// An event of Responses with fields that may be anything.
fn event() -> impl Strategy<Value = String> {
    let kinds = vec![
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.refusal.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.done",
        "response.completed",
        "response.incomplete",
        "response.unheard_of",
    ];
    let item = prop::sample::select(vec!["message", "reasoning", "function_call", "other"]);
    let places = prop::option::of(0_u32..4);
    let named = (
        prop::sample::select(kinds),
        places,
        item,
        any::<bool>(),
        ".{0,6}",
    );
    (named, any_json()).prop_map(|((kind, place, item, is_odd, words), any)| {
        let mut event = json!({"type": kind, "delta": words, "text": words, "arguments": words});
        let content = json!([{"type": "output_text", "text": words}]);
        event["item"] = json!({"type": item, "id": "i", "name": "n", "content": content});
        if let Some(place) = place {
            event["output_index"] = place.into();
        }
        if is_odd && let Value::Object(fields) = any {
            event.as_object_mut().expect("an event").extend(fields);
        }
        event.to_string()
    })
}

/// A frame of Gemini with parts that may be anything.
fn frame() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        ".{0,6}".prop_map(|text| json!({"text": text})),
        ".{0,6}".prop_map(|text| json!({"text": text, "thought": true})),
        ".{0,6}".prop_map(|text| json!({"text": text, "thoughtSignature": "s"})),
        any_json().prop_map(|args| json!({"functionCall": {"name": "n", "args": args}})),
        any_json().prop_map(|any| json!({"unheardOf": any})),
        any_json(),
    ];
    let reason = prop::sample::select(vec!["", "", "", "STOP", "MAX_TOKENS", "SAFETY"]);
    (prop::collection::vec(part, 0..4), reason, any::<bool>()).prop_map(
        |(parts, reason, counts)| {
            let candidate = json!({"content": {"parts": parts}, "finishReason": reason});
            let mut frame = json!({"candidates": [candidate]});
            if counts {
                frame["usageMetadata"] = json!({"promptTokenCount": 1});
            }
            frame.to_string()
        },
    )
}

/// What every decoder promises: begun first, a block of one kind, a tool's input between its start
/// and its end, blocks without gaps, and the stop last.
fn check(deltas: &[Delta]) {
    let mut tools: Vec<Option<bool>> = Vec::new();
    let mut fed: Vec<usize> = Vec::new();
    let mut kinds: Vec<&str> = Vec::new();
    for (n, delta) in deltas.iter().enumerate() {
        let (block, kind) = match delta {
            Delta::Begun { .. } => {
                assert_eq!(n, 0, "begun comes first");
                continue;
            }
            Delta::Spent { .. } => panic!("a decoder is asked what was spent"),
            Delta::Stop { reason, .. } => {
                assert_eq!(n + 1, deltas.len(), "the stop comes last");
                let is_open = |at: &usize| tools[*at] == Some(true);
                for at in (0..tools.len()).filter(is_open) {
                    assert_ne!(*reason, StopReason::ToolUse, "every tool has its end");
                    assert!(!fed.contains(&at), "only a tool without input is left open");
                }
                continue;
            }
            Delta::Text { block, .. } => (*block, "text"),
            Delta::Thinking { block, .. } => (*block, "thinking"),
            Delta::Keep { block, .. } => (*block, ""),
            Delta::ToolStart { block, .. }
            | Delta::ToolInput { block, .. }
            | Delta::ToolEnd { block } => (*block, "tool"),
        };
        let at = block as usize;
        assert!(at <= kinds.len(), "no gap before {block}");
        if at == kinds.len() {
            kinds.push("");
            tools.push(None);
        }
        if kinds[at].is_empty() {
            kinds[at] = kind;
        }
        assert!(
            kind.is_empty() || kinds[at] == kind,
            "{kind} in {}",
            kinds[at]
        );
        match delta {
            Delta::ToolStart { .. } => {
                assert_eq!(tools[at].replace(true), None, "a tool begins once");
            }
            Delta::ToolInput { .. } => {
                assert_eq!(tools[at], Some(true), "input of an open tool");
                fed.push(at);
            }
            Delta::ToolEnd { .. } => {
                assert_eq!(tools[at].replace(false), Some(true), "an open tool ends");
            }
            _ => {}
        }
    }
}

fn run(dialect: &dyn Dialect, frames: &[String]) {
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for data in frames {
        let event = None;
        if decoder.step(Frame { event, data }, &mut out).is_err() {
            break;
        }
    }
    let _ = decoder.end(&mut out);
    check(out.make_contiguous());
}

proptest! {
    #[test]
    fn any_words_are_no_panic(frames in prop::collection::vec(".{0,64}", 0..8)) {
        run(&OpenAiResponses, &frames);
        run(&Gemini, &frames);
    }

    #[test]
    fn any_json_is_no_panic(frames in prop::collection::vec(any_json(), 0..8)) {
        let frames: Vec<String> = frames.iter().map(Value::to_string).collect();
        run(&OpenAiResponses, &frames);
        run(&Gemini, &frames);
    }

    #[test]
    fn any_events_keep_the_promises(frames in prop::collection::vec(event(), 0..24)) {
        run(&OpenAiResponses, &frames);
    }

    #[test]
    fn any_frames_keep_the_promises(frames in prop::collection::vec(frame(), 0..12)) {
        run(&Gemini, &frames);
    }

    #[test]
    fn frames_of_true_streams_in_any_order_keep_the_promises(
        picks in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..40),
    ) {
        let frames = |fixtures: &'static [(&str, &'static str)]| -> Vec<&'static str> {
            let lines = fixtures.iter().flat_map(|(_, stream)| stream.lines());
            lines.filter_map(|line| line.strip_prefix("data: ")).collect()
        };
        let (responses, gemini) = (frames(RESPONSES), frames(GEMINI));
        let mut picked = [Vec::new(), Vec::new()];
        for (of_responses, index) in picks {
            let (n, from) = if of_responses { (0, &responses) } else { (1, &gemini) };
            picked[n].push(index.get(from).to_string());
        }
        run(&OpenAiResponses, &picked[0]);
        run(&Gemini, &picked[1]);
    }

    #[test]
    fn any_refusal_is_told_by_its_status(
        status in prop_oneof![
            prop::sample::select(vec![400_u16, 404, 408, 409, 429, 500, 529]), any::<u16>(),
        ],
        retry_after in prop::option::of((0_u64..100).prop_map(Duration::from_secs)),
        bytes in any::<Vec<u8>>(),
        json in any_json(),
    ) {
        let again = retry_after.map_or(Again::Soon, Again::After);
        let (class, again) = match status {
            429 => (LlmErrorClass::RateLimited, again),
            408 | 409 | 500.. => (LlmErrorClass::Provider, again),
            _ => (LlmErrorClass::Provider, Again::Never),
        };
        // None of these bodies says a word that means something else.
        for body in [bytes, json.to_string().into_bytes()] {
            let refused = ErrorResponse { status, retry_after, body: &body };
            for dialect in [&OpenAiResponses as &dyn Dialect, &Gemini] {
                let told = dialect.classify_response(refused);
                prop_assert_eq!((told.class, told.again), (class, again));
            }
        }
    }
}
