//! Decoding malformed, truncated and oversized Responses streams. Missing ends, unknown events and
//! limits are covered.

use std::collections::VecDeque;

use serde_json::json;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;
use turnwire_model::{Delta, ModelError, RetryHint, SseEvent, VendorDialect as _};

use super::event;
use crate::responses_and_gemini::support::{
    DecodedStream, RESPONSES, decode, fixture, lines, steps,
};

fn text(index: u32, part: u32, text_piece: &str) -> String {
    let fields = json!({"output_index": index, "content_index": part, "delta": text_piece});
    event("response.output_text.delta", fields)
}

fn completed() -> String {
    event(
        "response.completed",
        json!({"response": {"status": "completed"}}),
    )
}

/// Decodes these events and the final event.
fn complete(events: &[String]) -> DecodedStream {
    let end = completed();
    let frames: Vec<&String> = events.iter().chain([&end]).collect();
    steps(&OpenAiResponsesDialect, &frames)
}

fn malformed() -> ModelError {
    LlmErrorClass::Provider.into()
}

#[test]
fn missing_index_is_waited_for_until_the_end() {
    let decoded = complete(&[text(2, 0, "c"), text(1, 0, "b")]);
    assert_eq!(lines(decoded)[..2], ["0 text b", "1 text c"]);
}

#[test]
fn buffered_pieces_are_bounded_and_then_released() {
    for text_piece in ["x".to_owned(), "x".repeat(100_000)] {
        let mut decoder = OpenAiResponsesDialect.decoder();
        let mut out = VecDeque::new();
        let data = text(1, 0, &text_piece);
        let mut steps = 0;
        while out.is_empty() {
            let frame = SseEvent {
                event: None,
                data: &data,
            };
            decoder.step(frame, &mut out).expect("text");
            steps += 1;
            assert!(steps < 1000, "held without a bound");
        }
        assert_eq!(out.len(), steps, "nothing is lost");
        // After that everything is emitted at once, also late deltas of the index before.
        let late = text(0, 0, "late");
        let frame = SseEvent {
            event: None,
            data: &late,
        };
        out.clear();
        decoder.step(frame, &mut out).expect("text");
        let expected = Delta::Text {
            block: 1,
            text: "late".into(),
        };
        assert_eq!(out, [expected]);
    }
}

#[test]
fn unfinished_call_ends_with_the_answer() {
    let item = json!({"type": "function_call", "call_id": "c", "name": "now"});
    let decoded = complete(&[event("response.output_item.added", json!({"item": item}))]);
    assert_eq!(
        lines(decoded),
        [
            "0 tool now c",
            r#"0 keep {"type":"function_call","id":"c"}"#,
            "0 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn call_without_a_name_is_malformed() {
    let item = json!({"type": "function_call", "call_id": "c", "arguments": "{}"});
    let added = event("response.output_item.added", json!({"item": item}));
    assert_eq!(complete(&[added]).1, Some(malformed()));
    let done = event("response.output_item.done", json!({"item": item}));
    assert_eq!(complete(&[done]).1, Some(malformed()));
}

#[test]
fn incomplete_reason_decides_the_stop_reason() {
    let incomplete = |reason: &str, has_text: bool| {
        let details = json!({"reason": reason});
        let response = json!({"status": "incomplete", "incomplete_details": details});
        let end = event("response.incomplete", json!({"response": response}));
        let mut frames = vec![end];
        if has_text {
            frames.insert(0, text(0, 0, "Half"));
        }
        steps(&OpenAiResponsesDialect, &frames)
    };
    let last_line = |decoded: DecodedStream| lines(decoded).last().cloned().expect("an end");
    assert!(last_line(incomplete("max_output_tokens", true)).starts_with("stop MaxTokens"));
    assert!(last_line(incomplete("unheard_of", true)).starts_with("stop MaxTokens"));
    assert!(last_line(incomplete("content_filter", true)).starts_with("stop EndTurn"));
    assert_eq!(incomplete("content_filter", false).1, Some(malformed()));
}

#[test]
fn failed_answer_has_its_error_class() {
    let (deltas, error) = decode(
        &OpenAiResponsesDialect,
        [fixture(RESPONSES, "failed").as_bytes()],
    );
    assert_eq!(deltas.len(), 1, "the answer had begun");
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Provider)));

    let limited = json!({"status": "failed", "error": {"code": "rate_limit_exceeded"}});
    let frames = [event("response.failed", json!({"response": limited}))];
    let error = steps(&OpenAiResponsesDialect, &frames).1;
    assert_eq!(
        error,
        Some(ModelError::transient(LlmErrorClass::RateLimited))
    );

    for (frame, expected) in [
        (
            json!({"type": "error", "code": "invalid_prompt", "message": "m"}),
            RetryHint::Never,
        ),
        (
            json!({"type": "error", "error": {"type": "server_error"}}),
            RetryHint::Backoff,
        ),
        (
            json!({"error": {"code": 500, "message": "m", "type": "server_error"}}),
            RetryHint::Backoff,
        ),
    ] {
        let error = steps(&OpenAiResponsesDialect, &[frame.to_string()]).1;
        assert_eq!(error.map(|error| error.retry), Some(expected), "{frame}");
    }
}

#[test]
fn responses_without_final_event_is_a_transport_error() {
    let started = event("response.created", json!({"response": {"id": "r"}}));
    let error = steps(&OpenAiResponsesDialect, &[started]).1;
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Transport)));
    let error = steps(&OpenAiResponsesDialect, &[text(0, 0, "Half")]).1;
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
    // `[DONE]` does not end a Responses stream.
    let error = steps(&OpenAiResponsesDialect, &["[DONE]"]).1;
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Transport)));
}

#[test]
fn unknown_responses_events_are_ignored() {
    let decoded = complete(&[
        event(
            "response.unheard_of",
            json!({"delta": {"deep": [1]}, "output_index": "x"}),
        ),
        event("response.audio.delta", json!({"delta": "UklGR"})),
        event(
            "response.output_item.added",
            json!({"output_index": 0, "item": {"type": "new"}}),
        ),
        event(
            "response.output_item.done",
            json!({"output_index": 0, "item": {"type": 5}}),
        ),
        text(1, 0, "Still here."),
        event(
            "response.output_text.annotation.added",
            json!({"annotation": {"type": "x"}}),
        ),
    ]);
    assert_eq!(lines(decoded)[0], "0 text Still here.");
}

#[test]
fn malformed_responses_frame_is_an_error() {
    let no_delta = event("response.output_text.delta", json!({"output_index": 0}));
    let too_large_index = text(u32::MAX, 0, "x");
    let call = json!({"output_index": 0, "item": {"type": "function_call", "name": "now"}});
    let call = event("response.output_item.added", call);
    for frames in [
        vec!["{".to_owned()],
        vec!["7".to_owned()],
        vec![r#"{"type":"response.created","response":7}"#.to_owned()],
        vec![no_delta],
        vec![too_large_index],
        vec![call, text(0, 0, "words in a call")],
    ] {
        assert_eq!(
            steps(&OpenAiResponsesDialect, &frames).1,
            Some(malformed()),
            "{frames:?}"
        );
    }
}

#[test]
fn number_of_items_and_parts_is_bounded() {
    let items: Vec<String> = (0..2000).map(|n| text(n, 0, "x")).collect();
    assert_eq!(complete(&items).1, Some(malformed()));
    let parts: Vec<String> = (0..2000).map(|n| text(0, n, "x")).collect();
    assert_eq!(complete(&parts).1, Some(malformed()));
    let sections = (0..2000).map(|n| {
        let fields = json!({"output_index": 0, "summary_index": n, "delta": "x"});
        event("response.reasoning_summary_text.delta", fields)
    });
    assert_eq!(complete(&sections.collect::<Vec<_>>()).1, Some(malformed()));
}

#[test]
fn oversized_provider_data_is_dropped() {
    let huge = "x".repeat(300 << 10);
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": huge});
    let decoded = complete(&[event("response.output_item.done", json!({"item": item}))]);
    assert_eq!(lines(decoded), ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}

#[test]
fn responses_frames_after_the_end_are_ignored() {
    let decoded = steps(
        &OpenAiResponsesDialect,
        &[completed(), text(0, 0, "x"), "{".to_owned()],
    );
    assert_eq!(lines(decoded), ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}
