//! Any input: a decoder returns deltas or an error, keeps its guarantees, and never panics. Text,
//! JSON, events and error responses are generated at random.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire_event::StopReason;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::gemini::GeminiDialect;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;
use turnwire_model::{Delta, ErrorResponse, RetryHint, SseEvent, VendorDialect};

use crate::responses_and_gemini::support::{GEMINI, RESPONSES};

/// Any JSON, with keys and strings that the dialects read and others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u32..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        key_or_string().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key_or_string(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn key_or_string() -> impl Strategy<Value = String> {
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

/// A Responses event whose fields may have any value.
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
    let output_indices = prop::option::of(0_u32..4);
    let named = (
        prop::sample::select(kinds),
        output_indices,
        item,
        any::<bool>(),
        ".{0,6}",
    );
    (named, any_json()).prop_map(
        |((kind, output_index, item, has_random_fields, text), random)| {
            let mut event = json!({"type": kind, "delta": text, "text": text, "arguments": text});
            let content = json!([{"type": "output_text", "text": text}]);
            event["item"] = json!({"type": item, "id": "i", "name": "n", "content": content});
            if let Some(output_index) = output_index {
                event["output_index"] = output_index.into();
            }
            if has_random_fields && let Value::Object(fields) = random {
                event.as_object_mut().expect("an event").extend(fields);
            }
            event.to_string()
        },
    )
}

/// A Gemini frame whose parts may have any value.
fn frame() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        ".{0,6}".prop_map(|text| json!({"text": text})),
        ".{0,6}".prop_map(|text| json!({"text": text, "thought": true})),
        ".{0,6}".prop_map(|text| json!({"text": text, "thoughtSignature": "s"})),
        any_json().prop_map(|args| json!({"functionCall": {"name": "n", "args": args}})),
        any_json().prop_map(|random| json!({"unheardOf": random})),
        any_json(),
    ];
    let reason = prop::sample::select(vec!["", "", "", "STOP", "MAX_TOKENS", "SAFETY"]);
    (prop::collection::vec(part, 0..4), reason, any::<bool>()).prop_map(
        |(parts, reason, has_usage)| {
            let candidate = json!({"content": {"parts": parts}, "finishReason": reason});
            let mut frame = json!({"candidates": [candidate]});
            if has_usage {
                frame["usageMetadata"] = json!({"promptTokenCount": 1});
            }
            frame.to_string()
        },
    )
}

/// The guarantees of every decoder: `Begun` first, one kind per block, tool input between start and
/// end, block numbers without gaps, and `Stop` last.
fn assert_valid(deltas: &[Delta]) {
    let mut tools: Vec<Option<bool>> = Vec::new();
    let mut with_input: Vec<usize> = Vec::new();
    let mut kinds: Vec<&str> = Vec::new();
    for (n, delta) in deltas.iter().enumerate() {
        let (block, kind) = match delta {
            Delta::Started { .. } => {
                assert_eq!(n, 0, "begun comes first");
                continue;
            }
            Delta::PartialUsage { .. } => panic!("decoders emit no usage deltas"),
            Delta::Stop { reason, .. } => {
                assert_eq!(n + 1, deltas.len(), "the stop comes last");
                let is_open = |index: &usize| tools[*index] == Some(true);
                for index in (0..tools.len()).filter(is_open) {
                    assert_ne!(*reason, StopReason::ToolUse, "every tool has its end");
                    assert!(
                        !with_input.contains(&index),
                        "only a tool without input is left open"
                    );
                }
                continue;
            }
            Delta::Text { block, .. } => (*block, "text"),
            Delta::Thinking { block, .. } => (*block, "thinking"),
            Delta::ProviderData { block, .. } => (*block, ""),
            Delta::ToolStart { block, .. }
            | Delta::ToolInput { block, .. }
            | Delta::ToolEnd { block } => (*block, "tool"),
        };
        let index = block as usize;
        assert!(index <= kinds.len(), "no gap before {block}");
        if index == kinds.len() {
            kinds.push("");
            tools.push(None);
        }
        if kinds[index].is_empty() {
            kinds[index] = kind;
        }
        assert!(
            kind.is_empty() || kinds[index] == kind,
            "{kind} in {}",
            kinds[index]
        );
        match delta {
            Delta::ToolStart { .. } => {
                assert_eq!(tools[index].replace(true), None, "a tool begins once");
            }
            Delta::ToolInput { .. } => {
                assert_eq!(tools[index], Some(true), "input of an open tool");
                with_input.push(index);
            }
            Delta::ToolEnd { .. } => {
                assert_eq!(tools[index].replace(false), Some(true), "an open tool ends");
            }
            _ => {}
        }
    }
}

fn run(dialect: &dyn VendorDialect, frames: &[String]) {
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for data in frames {
        let event = None;
        if decoder.step(SseEvent { event, data }, &mut out).is_err() {
            break;
        }
    }
    let _ = decoder.end(&mut out);
    assert_valid(out.make_contiguous());
}

proptest! {
    #[test]
    fn any_text_decodes_without_panic(frames in prop::collection::vec(".{0,64}", 0..8)) {
        run(&OpenAiResponsesDialect, &frames);
        run(&GeminiDialect, &frames);
    }

    #[test]
    fn any_json_decodes_without_panic(frames in prop::collection::vec(any_json(), 0..8)) {
        let frames: Vec<String> = frames.iter().map(Value::to_string).collect();
        run(&OpenAiResponsesDialect, &frames);
        run(&GeminiDialect, &frames);
    }

    #[test]
    fn any_responses_events_give_valid_deltas(frames in prop::collection::vec(event(), 0..24)) {
        run(&OpenAiResponsesDialect, &frames);
    }

    #[test]
    fn any_gemini_frames_give_valid_deltas(frames in prop::collection::vec(frame(), 0..12)) {
        run(&GeminiDialect, &frames);
    }

    #[test]
    fn fixture_frames_in_any_order_give_valid_deltas(
        choices in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..40),
    ) {
        let frames = |fixtures: &'static [(&str, &'static str)]| -> Vec<&'static str> {
            let lines = fixtures.iter().flat_map(|(_, stream)| stream.lines());
            lines.filter_map(|line| line.strip_prefix("data: ")).collect()
        };
        let (responses, gemini) = (frames(RESPONSES), frames(GEMINI));
        let mut selected = [Vec::new(), Vec::new()];
        for (of_responses, index) in choices {
            let (n, frames_of) = if of_responses { (0, &responses) } else { (1, &gemini) };
            selected[n].push(index.get(frames_of).to_string());
        }
        run(&OpenAiResponsesDialect, &selected[0]);
        run(&GeminiDialect, &selected[1]);
    }

    #[test]
    fn any_error_response_is_classified_by_its_status(
        status in prop_oneof![
            prop::sample::select(vec![400_u16, 404, 408, 409, 429, 500, 529]), any::<u16>(),
        ],
        retry_after in prop::option::of((0_u64..100).prop_map(Duration::from_secs)),
        bytes in any::<Vec<u8>>(),
        json in any_json(),
    ) {
        let again = retry_after.map_or(RetryHint::Backoff, RetryHint::After);
        let (class, again) = match status {
            429 => (LlmErrorClass::RateLimited, again),
            408 | 409 | 500.. => (LlmErrorClass::Provider, again),
            _ => (LlmErrorClass::Provider, RetryHint::Never),
        };
        // None of these bodies has an error code with another meaning.
        for body in [bytes, json.to_string().into_bytes()] {
            let response = ErrorResponse { status, retry_after, body: &body };
            for dialect in [&OpenAiResponsesDialect as &dyn VendorDialect, &GeminiDialect] {
                let error = dialect.classify_response(response);
                prop_assert_eq!((error.class, error.retry), (class, again));
            }
        }
    }
}
