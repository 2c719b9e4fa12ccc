//! Decoding Chat Completions streams: each kind of chunk, errors and deviations of compatible
//! servers.

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::{Delta, ModelError, SseEvent, VendorDialect};

use crate::anthropic_and_chat::support::{OPENAI_CHAT, decode, fixture, lines, steps};

fn emitted(name: &str) -> Vec<String> {
    lines(decode(&OpenAiChatDialect, fixture(OPENAI_CHAT, name)))
}

pub(crate) fn chunk(delta: Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

pub(crate) fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

pub(crate) fn calls(calls: Value) -> String {
    chunk(json!({"tool_calls": calls}))
}

/// Decodes an answer of these chunks, a finish reason and `[DONE]`.
pub(crate) fn answer(chunks: &[String], reason: &str) -> (Vec<Delta>, Option<ModelError>) {
    let end = finish(reason);
    let mut frames: Vec<&str> = chunks.iter().map(String::as_str).collect();
    frames.extend([&*end, "[DONE]"]);
    steps(&OpenAiChatDialect, &frames)
}

pub(crate) const NO_USAGE: &str = "0+0=0 reasoning 0 cached 0";

// S3-063
#[test]
fn recorded_chat_text_is_decoded() {
    let emitted = emitted("recorded_plain");
    assert_eq!(
        emitted[0],
        "begun chatcmpl-NeveiUeAIXymyfK0yDreXJ0Npcy6Is89"
    );
    assert_eq!(
        emitted[emitted.len() - 3..emitted.len() - 1],
        ["0 text  sea", "0 text ."]
    );
    assert_eq!(
        emitted[emitted.len() - 1],
        "stop EndTurn 30+21=51 reasoning 0 cached 14"
    );
    assert!(
        emitted[1..emitted.len() - 1]
            .iter()
            .all(|l| l.starts_with("0 text "))
    );
}

// S3-063
#[test]
fn recorded_chat_tool_call_is_decoded() {
    let emitted = emitted("recorded_tool");
    let id = "3kqJfvRmu3FzXTUyBjUcslynMVg1D5Nk";
    assert_eq!(
        emitted[1..4],
        [
            format!("0 tool get_weather {id}"),
            format!("0 keep {{\"id\":\"{id}\"}}"),
            "0 input {".to_owned(),
        ]
    );
    let input: String = emitted
        .iter()
        .filter_map(|l| l.strip_prefix("0 input "))
        .collect();
    assert_eq!(input, r#"{"city": "Paris", "unit": "celsius"}"#);
    assert_eq!(
        emitted[emitted.len() - 2..],
        ["0 end", "stop ToolUse 406+38=444 reasoning 0 cached 9"]
    );
}

#[test]
fn recorded_chat_truncation_and_missing_usage_are_decoded() {
    let last = |name: &str| emitted(name).pop().expect("a stop");
    assert_eq!(
        last("recorded_length"),
        "stop MaxTokens 30+5=35 reasoning 0 cached 29"
    );
    assert_eq!(
        last("recorded_without_usage"),
        format!("stop EndTurn {NO_USAGE}")
    );
}

#[test]
fn chat_reasoning_is_thinking_and_kinds_are_separate_blocks() {
    assert_eq!(
        emitted("reasoning"),
        [
            "begun chatcmpl-One",
            "0 thinking Two cities, ",
            r#"0 keep {"reasoning_content":true}"#,
            "0 thinking so two calls.",
            "1 text I look ",
            "1 text at both.",
            "2 thinking Done.",
            "stop EndTurn 20+50=75 reasoning 30 cached 5",
        ],
        "the end of the stream is a proper end once a reason was given"
    );
    let mut decoder = OpenAiChatDialect.decoder();
    let usage = r#"{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cache_write_tokens":7}}}"#;
    let frame = SseEvent {
        event: None,
        data: usage,
    };
    assert_eq!(decoder.step(frame, &mut Default::default()), Ok(()));
    assert_eq!(decoder.cache_written_tokens(), 7);
}

#[test]
fn chat_finish_reasons_are_translated() {
    let text_chunk = [chunk(json!({"content": "a"}))];
    for (vendor_reason, expected) in [
        ("stop", "EndTurn"),
        ("length", "MaxTokens"),
        ("tool_calls", "EndTurn"),
        ("function_call", "EndTurn"),
        ("content_filter", "EndTurn"),
        ("aurora", "EndTurn"),
    ] {
        let emitted = lines(answer(&text_chunk, vendor_reason));
        assert_eq!(
            emitted[1],
            format!("stop {expected} {NO_USAGE}"),
            "{vendor_reason}"
        );
    }
    let filtered_error = answer(&[], "content_filter").1;
    assert_eq!(
        filtered_error,
        Some(LlmErrorClass::Provider.into()),
        "no answer"
    );
    let error = answer(&text_chunk, "error").1;
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Provider)));
}

#[test]
fn chat_refusal_is_text_and_only_choice_0_is_read() {
    let refusal = [chunk(json!({"content": null, "refusal": "No."}))];
    assert_eq!(lines(answer(&refusal, "stop"))[0], "0 text No.");
    let two = json!({"choices": [
        {"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"},
        {"index": 0, "delta": {"content": "a"}},
        {"index": 2, "delta": {"content": "c"}},
    ]});
    assert_eq!(lines(answer(&[two.to_string()], "stop")).len(), 2);
    let second = json!({"choices": [{"index": 1, "delta": {"content": "b"}}]});
    assert_eq!(lines(answer(&[second.to_string()], "stop")).len(), 1);
}

#[test]
fn chat_answer_ends_with_done_usage_or_finish_reason() {
    let text_chunk = chunk(json!({"content": "a"}));
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9}}"#;
    let emitted = |frames: &[&str]| lines(steps(&OpenAiChatDialect, frames)).pop();
    let stop_line = |usage: &str| Some(format!("stop EndTurn {usage}"));
    let stop = finish("stop");
    assert_eq!(emitted(&[&text_chunk, &stop]), stop_line(NO_USAGE));
    let with_usage = "1+2=9 reasoning 0 cached 0";
    assert_eq!(emitted(&[&text_chunk, &stop, usage]), stop_line(with_usage));
    assert_eq!(
        emitted(&[&text_chunk, usage, &stop, " [DONE] "]),
        stop_line(with_usage)
    );
    // Content after the finish reason and after the end is ignored.
    assert_eq!(
        lines(steps(
            &OpenAiChatDialect,
            &[
                &text_chunk,
                &stop,
                &text_chunk,
                &stop,
                usage,
                "x",
                &text_chunk,
                "[DONE]"
            ]
        ))
        .len(),
        2
    );
}

#[test]
fn chat_without_end_is_retryable_only_without_output() {
    let started =
        r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#;
    for frames in [&[][..], &[started], &["[DONE]"]] {
        let error = steps(&OpenAiChatDialect, frames).1;
        assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Transport)));
    }
    let partial_text = chunk(json!({"content": "Half"}));
    for frames in [&[&*partial_text][..], &[&partial_text, "[DONE]"]] {
        let (deltas, error) = steps(&OpenAiChatDialect, frames);
        assert_eq!(error, Some(LlmErrorClass::Transport.into()));
        assert_eq!(deltas.len(), 1, "no end is made up: {deltas:?}");
    }
}

#[test]
fn chat_done_without_finish_reason_ends_no_tool() {
    let call = json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}]);
    let (deltas, error) = steps(&OpenAiChatDialect, &[&calls(call), "[DONE]"]);
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
    let is_end = |delta: &Delta| matches!(delta, Delta::ToolEnd { .. } | Delta::Stop { .. });
    assert!(!deltas.iter().any(is_end), "{deltas:?}");
}

#[test]
fn chat_error_ends_the_stream_with_its_class() {
    let (deltas, error) = decode(&OpenAiChatDialect, fixture(OPENAI_CHAT, "error"));
    assert_eq!(deltas.len(), 2);
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Provider)));
    let emitted =
        |error: Value| steps(&OpenAiChatDialect, &[&json!({"error": error}).to_string()]).1;
    let limited = ModelError::transient(LlmErrorClass::RateLimited);
    assert_eq!(
        emitted(json!({"code": "rate_limit_exceeded"})),
        Some(limited)
    );
    assert_eq!(
        emitted(json!({"code": 400})),
        Some(LlmErrorClass::Provider.into())
    );
    let exhausted = json!({"type": "insufficient_quota", "code": null});
    assert_eq!(emitted(exhausted), Some(LlmErrorClass::RateLimited.into()));
    assert_eq!(
        emitted(json!("it broke")),
        Some(ModelError::transient(LlmErrorClass::Provider))
    );
    let mut decoder = OpenAiChatDialect.decoder();
    let frame = SseEvent {
        event: Some("error"),
        data: r#"{"code":"invalid_api_key"}"#,
    };
    let error = decoder.step(frame, &mut Default::default()).err();
    assert_eq!(error, Some(LlmErrorClass::Provider.into()));
    for no_error in [json!(null), json!(false), json!(""), json!({}), json!(0)] {
        let frame = json!({"error": no_error, "choices": []}).to_string();
        let emitted = steps(&OpenAiChatDialect, &[&frame, &finish("stop")]);
        assert_eq!(emitted.1, None, "{frame}");
    }
}

#[test]
fn chat_malformed_chunk_fails_and_unknown_is_ignored() {
    for malformed in [
        "no JSON",
        "{\"choices\":[",
        r#"{"choices":[{"delta":{"tool_calls":5}}]}"#,
    ] {
        let error = steps(&OpenAiChatDialect, &[malformed]).1;
        assert_eq!(error, Some(LlmErrorClass::Provider.into()), "{malformed}");
    }
    let new = [
        json!({"aurora": {"a": [1]}, "choices": null, "usage": null, "id": null}).to_string(),
        json!({"choices": [{"delta": {"audio": {"id": "a"}, "role": 5, "content": {"x": 1}}, "aurora": 1}]}).to_string(),
        json!({"choices": [{"delta": null, "finish_reason": ""}], "timings": {"n": 1.5}}).to_string(),
    ];
    assert_eq!(lines(answer(&new, "stop")).len(), 1);
    let mut decoder = OpenAiChatDialect.decoder();
    let frame = SseEvent {
        event: Some("keep-alive"),
        data: "still here",
    };
    assert_eq!(decoder.step(frame, &mut Default::default()), Ok(()));
}

#[test]
fn chat_cached_tokens_are_read_from_other_fields() {
    for name in ["prompt_cache_hit_tokens", "cached_tokens"] {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, name: 4}}).to_string();
        let emitted = lines(steps(&OpenAiChatDialect, &[&finish("stop"), &usage]));
        assert_eq!(emitted, ["stop EndTurn 9+0=9 reasoning 0 cached 4"]);
    }
}

#[test]
fn chat_key_is_sent_as_bearer_token() {
    let headers = OpenAiChatDialect.headers(Some("k"));
    assert_eq!(headers, [("authorization", "Bearer k".to_owned())]);
    assert_eq!(OpenAiChatDialect.headers(None), []);
    assert_eq!((OpenAiChatDialect.name()), "openai_chat");
}
