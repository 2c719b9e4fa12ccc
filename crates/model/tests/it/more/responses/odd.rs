//! Responses: streams that are not as they should be.

use std::collections::VecDeque;

use serde_json::json;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_responses::OpenAiResponses;
use turnwire_model::{Again, Delta, Dialect as _, Frame, ModelError};

use super::event;
use crate::more::support::{RESPONSES, Told, decode, fixture, lines, steps};

fn text(place: u32, part: u32, words: &str) -> String {
    let fields = json!({"output_index": place, "content_index": part, "delta": words});
    event("response.output_text.delta", fields)
}

fn completed() -> String {
    event(
        "response.completed",
        json!({"response": {"status": "completed"}}),
    )
}

/// These events, and then the end.
fn whole(events: &[String]) -> Told {
    let end = completed();
    let frames: Vec<&String> = events.iter().chain([&end]).collect();
    steps(&OpenAiResponses, &frames)
}

fn malformed() -> ModelError {
    LlmErrorClass::Provider.into()
}

#[test]
fn a_place_that_never_comes_is_waited_for_until_the_end() {
    let told = whole(&[text(2, 0, "c"), text(1, 0, "b")]);
    assert_eq!(lines(told)[..2], ["0 text b", "1 text c"]);
}

#[test]
fn what_waits_for_a_place_is_bounded() {
    for words in ["x".to_owned(), "x".repeat(100_000)] {
        let mut decoder = OpenAiResponses.decoder();
        let mut out = VecDeque::new();
        let data = text(1, 0, &words);
        let mut steps = 0;
        while out.is_empty() {
            let frame = Frame {
                event: None,
                data: &data,
            };
            decoder.step(frame, &mut out).expect("words");
            steps += 1;
            assert!(steps < 1000, "held without a bound");
        }
        assert_eq!(out.len(), steps, "nothing is lost");
        // From now on it goes out at once, also what comes late for the place before.
        let late = text(0, 0, "late");
        let frame = Frame {
            event: None,
            data: &late,
        };
        out.clear();
        decoder.step(frame, &mut out).expect("words");
        let expected = Delta::Text {
            block: 1,
            text: "late".into(),
        };
        assert_eq!(out, [expected]);
    }
}

#[test]
fn a_call_that_nobody_ends_is_ended_with_the_answer() {
    let item = json!({"type": "function_call", "call_id": "c", "name": "now"});
    let told = whole(&[event("response.output_item.added", json!({"item": item}))]);
    assert_eq!(
        lines(told),
        [
            "0 tool now c",
            r#"0 keep {"type":"function_call","id":"c"}"#,
            "0 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn a_call_without_a_name_is_malformed() {
    let item = json!({"type": "function_call", "call_id": "c", "arguments": "{}"});
    let added = event("response.output_item.added", json!({"item": item}));
    assert_eq!(whole(&[added]).1, Some(malformed()));
    let done = event("response.output_item.done", json!({"item": item}));
    assert_eq!(whole(&[done]).1, Some(malformed()));
}

#[test]
fn why_an_answer_is_cut_decides_how_it_ends() {
    let cut = |reason: &str, said: bool| {
        let details = json!({"reason": reason});
        let response = json!({"status": "incomplete", "incomplete_details": details});
        let end = event("response.incomplete", json!({"response": response}));
        let mut frames = vec![end];
        if said {
            frames.insert(0, text(0, 0, "Half"));
        }
        steps(&OpenAiResponses, &frames)
    };
    let ending = |told: Told| lines(told).last().cloned().expect("an end");
    assert!(ending(cut("max_output_tokens", true)).starts_with("stop MaxTokens"));
    assert!(ending(cut("unheard_of", true)).starts_with("stop MaxTokens"));
    assert!(ending(cut("content_filter", true)).starts_with("stop EndTurn"));
    assert_eq!(cut("content_filter", false).1, Some(malformed()));
}

#[test]
fn a_failed_answer_says_why() {
    let (deltas, error) = decode(&OpenAiResponses, [fixture(RESPONSES, "failed").as_bytes()]);
    assert_eq!(deltas.len(), 1, "the answer had begun");
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Provider)));

    let limited = json!({"status": "failed", "error": {"code": "rate_limit_exceeded"}});
    let frames = [event("response.failed", json!({"response": limited}))];
    let error = steps(&OpenAiResponses, &frames).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::RateLimited)));

    for (frame, expected) in [
        (
            json!({"type": "error", "code": "invalid_prompt", "message": "m"}),
            Again::Never,
        ),
        (
            json!({"type": "error", "error": {"type": "server_error"}}),
            Again::Soon,
        ),
        (
            json!({"error": {"code": 500, "message": "m", "type": "server_error"}}),
            Again::Soon,
        ),
    ] {
        let error = steps(&OpenAiResponses, &[frame.to_string()]).1;
        assert_eq!(error.map(|error| error.again), Some(expected), "{frame}");
    }
}

#[test]
fn a_stream_without_its_end_is_broken() {
    let begun = event("response.created", json!({"response": {"id": "r"}}));
    let error = steps(&OpenAiResponses, &[begun]).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Transport)));
    let error = steps(&OpenAiResponses, &[text(0, 0, "Half")]).1;
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
    // The word that ends a chat is not the end of a response.
    let error = steps(&OpenAiResponses, &["[DONE]"]).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Transport)));
}

#[test]
fn what_nobody_knows_is_passed_over() {
    let told = whole(&[
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
    assert_eq!(lines(told)[0], "0 text Still here.");
}

#[test]
fn a_frame_that_is_no_event_is_malformed() {
    let no_delta = event("response.output_text.delta", json!({"output_index": 0}));
    let far = text(u32::MAX, 0, "x");
    let call = json!({"output_index": 0, "item": {"type": "function_call", "name": "now"}});
    let call = event("response.output_item.added", call);
    for frames in [
        vec!["{".to_owned()],
        vec!["7".to_owned()],
        vec![r#"{"type":"response.created","response":7}"#.to_owned()],
        vec![no_delta],
        vec![far],
        vec![call, text(0, 0, "words in a call")],
    ] {
        assert_eq!(
            steps(&OpenAiResponses, &frames).1,
            Some(malformed()),
            "{frames:?}"
        );
    }
}

#[test]
fn an_answer_has_a_bounded_number_of_items_and_parts() {
    let items: Vec<String> = (0..2000).map(|n| text(n, 0, "x")).collect();
    assert_eq!(whole(&items).1, Some(malformed()));
    let parts: Vec<String> = (0..2000).map(|n| text(0, n, "x")).collect();
    assert_eq!(whole(&parts).1, Some(malformed()));
    let sections = (0..2000).map(|n| {
        let fields = json!({"output_index": 0, "summary_index": n, "delta": "x"});
        event("response.reasoning_summary_text.delta", fields)
    });
    assert_eq!(whole(&sections.collect::<Vec<_>>()).1, Some(malformed()));
}

#[test]
fn an_item_too_large_to_keep_is_not_kept() {
    let huge = "x".repeat(300 << 10);
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": huge});
    let told = whole(&[event("response.output_item.done", json!({"item": item}))]);
    assert_eq!(lines(told), ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}

#[test]
fn frames_behind_the_end_say_nothing() {
    let told = steps(
        &OpenAiResponses,
        &[completed(), text(0, 0, "x"), "{".to_owned()],
    );
    assert_eq!(lines(told), ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}
