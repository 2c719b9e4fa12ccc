//! Chat Completions: each thing a stream can say, and what compatible servers do otherwise.

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_chat::OpenAiChat;
use turnwire_model::{Delta, Dialect, Frame, ModelError};

use crate::chat::support::{OPENAI_CHAT, decode, fixture, lines, steps};

fn told(name: &str) -> Vec<String> {
    lines(decode(&OpenAiChat, fixture(OPENAI_CHAT, name)))
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

/// An answer of these chunks that ends with a reason and the mark.
pub(crate) fn answer(chunks: &[String], reason: &str) -> (Vec<Delta>, Option<ModelError>) {
    let end = finish(reason);
    let mut frames: Vec<&str> = chunks.iter().map(String::as_str).collect();
    frames.extend([&*end, "[DONE]"]);
    steps(&OpenAiChat, &frames)
}

pub(crate) const NO_USAGE: &str = "0+0=0 reasoning 0 cached 0";

#[test]
fn s3_063_a_recorded_answer_of_words() {
    let told = told("recorded_plain");
    assert_eq!(told[0], "begun chatcmpl-NeveiUeAIXymyfK0yDreXJ0Npcy6Is89");
    assert_eq!(
        told[told.len() - 3..told.len() - 1],
        ["0 text  sea", "0 text ."]
    );
    assert_eq!(
        told[told.len() - 1],
        "stop EndTurn 30+21=51 reasoning 0 cached 14"
    );
    assert!(
        told[1..told.len() - 1]
            .iter()
            .all(|l| l.starts_with("0 text "))
    );
}

#[test]
fn s3_063_a_recorded_tool_call() {
    let told = told("recorded_tool");
    let id = "3kqJfvRmu3FzXTUyBjUcslynMVg1D5Nk";
    assert_eq!(
        told[1..4],
        [
            format!("0 tool get_weather {id}"),
            format!("0 keep {{\"id\":\"{id}\"}}"),
            "0 input {".to_owned(),
        ]
    );
    let input: String = told
        .iter()
        .filter_map(|l| l.strip_prefix("0 input "))
        .collect();
    assert_eq!(input, r#"{"city": "Paris", "unit": "celsius"}"#);
    assert_eq!(
        told[told.len() - 2..],
        ["0 end", "stop ToolUse 406+38=444 reasoning 0 cached 9"]
    );
}

#[test]
fn recorded_answers_that_were_cut_or_came_without_usage() {
    let last = |name: &str| told(name).pop().expect("a stop");
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
fn reasoning_is_thinking_and_what_changes_its_kind_is_a_new_block() {
    assert_eq!(
        told("reasoning"),
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
    let mut decoder = OpenAiChat.decoder();
    let usage = r#"{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cache_write_tokens":7}}}"#;
    let frame = Frame {
        event: None,
        data: usage,
    };
    assert_eq!(decoder.step(frame, &mut Default::default()), Ok(()));
    assert_eq!(decoder.cache_written_tokens(), 7);
}

#[test]
fn every_reason_to_finish_has_a_meaning() {
    let words = [chunk(json!({"content": "a"}))];
    for (given, expected) in [
        ("stop", "EndTurn"),
        ("length", "MaxTokens"),
        ("tool_calls", "EndTurn"),
        ("function_call", "EndTurn"),
        ("content_filter", "EndTurn"),
        ("aurora", "EndTurn"),
    ] {
        let told = lines(answer(&words, given));
        assert_eq!(told[1], format!("stop {expected} {NO_USAGE}"), "{given}");
    }
    let filtered = answer(&[], "content_filter").1;
    assert_eq!(filtered, Some(LlmErrorClass::Provider.into()), "no answer");
    let failed = answer(&words, "error").1;
    assert_eq!(failed, Some(ModelError::passing(LlmErrorClass::Provider)));
}

#[test]
fn a_refusal_is_words_and_only_the_first_choice_is_read() {
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
fn the_end_is_the_mark_the_usage_or_the_reason() {
    let words = chunk(json!({"content": "a"}));
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9}}"#;
    let told = |frames: &[&str]| lines(steps(&OpenAiChat, frames)).pop();
    let ends = |usage: &str| Some(format!("stop EndTurn {usage}"));
    let stop = finish("stop");
    assert_eq!(told(&[&words, &stop]), ends(NO_USAGE));
    let counted = "1+2=9 reasoning 0 cached 0";
    assert_eq!(told(&[&words, &stop, usage]), ends(counted));
    assert_eq!(told(&[&words, usage, &stop, " [DONE] "]), ends(counted));
    // Behind the end nothing counts, and neither does what is said behind the reason.
    assert_eq!(
        lines(steps(
            &OpenAiChat,
            &[&words, &stop, &words, &stop, usage, "x", &words, "[DONE]"]
        ))
        .len(),
        2
    );
}

#[test]
fn a_stream_without_an_end_broke_and_may_be_tried_again_if_it_said_nothing() {
    let begun = r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#;
    for frames in [&[][..], &[begun], &["[DONE]"]] {
        let error = steps(&OpenAiChat, frames).1;
        assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Transport)));
    }
    let half = chunk(json!({"content": "Half"}));
    for frames in [&[&*half][..], &[&half, "[DONE]"]] {
        let (said, error) = steps(&OpenAiChat, frames);
        assert_eq!(error, Some(LlmErrorClass::Transport.into()));
        assert_eq!(said.len(), 1, "no end is made up: {said:?}");
    }
}

#[test]
fn a_mark_without_a_reason_runs_no_tool() {
    let call = json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}]);
    let (said, error) = steps(&OpenAiChat, &[&calls(call), "[DONE]"]);
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
    let ends = |delta: &Delta| matches!(delta, Delta::ToolEnd { .. } | Delta::Stop { .. });
    assert!(!said.iter().any(ends), "{said:?}");
}

#[test]
fn an_error_in_the_stream_ends_it_with_its_class() {
    let (said, error) = decode(&OpenAiChat, fixture(OPENAI_CHAT, "error"));
    assert_eq!(said.len(), 2);
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Provider)));
    let told = |error: Value| steps(&OpenAiChat, &[&json!({"error": error}).to_string()]).1;
    let limited = ModelError::passing(LlmErrorClass::RateLimited);
    assert_eq!(told(json!({"code": "rate_limit_exceeded"})), Some(limited));
    assert_eq!(
        told(json!({"code": 400})),
        Some(LlmErrorClass::Provider.into())
    );
    let spent = json!({"type": "insufficient_quota", "code": null});
    assert_eq!(told(spent), Some(LlmErrorClass::RateLimited.into()));
    assert_eq!(
        told(json!("it broke")),
        Some(ModelError::passing(LlmErrorClass::Provider))
    );
    let mut decoder = OpenAiChat.decoder();
    let frame = Frame {
        event: Some("error"),
        data: r#"{"code":"invalid_api_key"}"#,
    };
    let error = decoder.step(frame, &mut Default::default()).err();
    assert_eq!(error, Some(LlmErrorClass::Provider.into()));
    for nothing in [json!(null), json!(false), json!(""), json!({}), json!(0)] {
        let frame = json!({"error": nothing, "choices": []}).to_string();
        let told = steps(&OpenAiChat, &[&frame, &finish("stop")]);
        assert_eq!(told.1, None, "{frame}");
    }
}

#[test]
fn what_is_malformed_fails_for_good_and_what_is_new_does_not() {
    for bad in [
        "no JSON",
        "{\"choices\":[",
        r#"{"choices":[{"delta":{"tool_calls":5}}]}"#,
    ] {
        let error = steps(&OpenAiChat, &[bad]).1;
        assert_eq!(error, Some(LlmErrorClass::Provider.into()), "{bad}");
    }
    let new = [
        json!({"aurora": {"a": [1]}, "choices": null, "usage": null, "id": null}).to_string(),
        json!({"choices": [{"delta": {"audio": {"id": "a"}, "role": 5, "content": {"x": 1}}, "aurora": 1}]}).to_string(),
        json!({"choices": [{"delta": null, "finish_reason": ""}], "timings": {"n": 1.5}}).to_string(),
    ];
    assert_eq!(lines(answer(&new, "stop")).len(), 1);
    let mut decoder = OpenAiChat.decoder();
    let frame = Frame {
        event: Some("keep-alive"),
        data: "still here",
    };
    assert_eq!(decoder.step(frame, &mut Default::default()), Ok(()));
}

#[test]
fn other_words_for_cached_tokens() {
    for name in ["prompt_cache_hit_tokens", "cached_tokens"] {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, name: 4}}).to_string();
        let told = lines(steps(&OpenAiChat, &[&finish("stop"), &usage]));
        assert_eq!(told, ["stop EndTurn 9+0=9 reasoning 0 cached 4"]);
    }
}

#[test]
fn the_key_is_a_bearer() {
    let headers = OpenAiChat.headers(Some("k"));
    assert_eq!(headers, [("authorization", "Bearer k".to_owned())]);
    assert_eq!(OpenAiChat.headers(None), []);
    assert_eq!((OpenAiChat.name()), "openai_chat");
}
