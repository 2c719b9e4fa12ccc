//! Decoding Gemini streams: each kind of part, finish reasons and errors. Streams are fixtures or
//! single frames.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::gemini::GeminiDialect;
use turnwire_model::{ModelError, RetryHint};

use crate::responses_and_gemini::support::{DecodedStream, GEMINI, decode, fixture, lines, steps};

/// Decodes a fixture with CRLF line endings, as the vendor sends it.
fn decode_fixture(name: &str) -> DecodedStream {
    let stream = fixture(GEMINI, name).replace('\n', "\r\n");
    decode(&GeminiDialect, [stream.as_bytes()])
}

fn emitted(name: &str) -> Vec<String> {
    lines(decode_fixture(name))
}

fn frame(parts: Value, reason: Option<&str>) -> String {
    let content = json!({"role": "model", "parts": parts});
    let mut candidate = json!({"index": 0, "content": content});
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    json!({"candidates": [candidate]}).to_string()
}

fn malformed() -> ModelError {
    LlmErrorClass::Provider.into()
}

#[test]
fn gemini_conversation_is_decoded() {
    assert_eq!(
        emitted("conversation"),
        [
            "begun r_one",
            "0 text Ich sehe ",
            "0 text nach: Grö",
            "0 text ße 🚢",
            "0 text …",
            "1 tool get_weather fn_one",
            r#"1 keep {"id":"fn_one","thoughtSignature":"c2lnbmVkIG9uZQ=="}"#,
            r#"1 input {"city": "Köln", "unit": "celsius"}"#,
            "1 end",
            "stop ToolUse 64+31=95 reasoning 0 cached 24",
        ]
    );
}

#[test]
fn gemini_thoughts_and_parallel_calls_are_decoded() {
    assert_eq!(
        emitted("thinking"),
        [
            "begun r_two",
            "0 thinking Two cities, ",
            "0 thinking so two calls.",
            "1 text I look ",
            "1 text at both.",
            "2 tool get_weather fn_a",
            r#"2 keep {"id":"fn_a","thoughtSignature":"c2lnIGE="}"#,
            r#"2 input {"city": "Paris"}"#,
            "2 end",
            "3 tool get_weather fn_b",
            r#"3 keep {"id":"fn_b"}"#,
            r#"3 input {"city": "Rome"}"#,
            "3 end",
            "stop ToolUse 120+80=200 reasoning 48 cached 64",
        ]
    );
}

// S3-055
#[test]
fn gemini_signature_closes_its_block() {
    assert_eq!(
        emitted("signed_text"),
        [
            "begun r_three",
            "0 thinking Think.[dGhvdWdodA==]",
            r#"0 keep {"thoughtSignature":"dGhvdWdodA=="}"#,
            "1 text Hel",
            "1 text lo.",
            r#"1 keep {"thoughtSignature":"bGFzdA=="}"#,
            "stop EndTurn 5+5=10 reasoning 2 cached 0",
        ]
    );
    let signature_first = [
        frame(
            json!([{"text": "", "thoughtSignature": "s"}, {"text": "Words."}]),
            None,
        ),
        frame(json!([]), Some("STOP")),
    ];
    let emitted = lines(steps(&GeminiDialect, &signature_first));
    assert_eq!(
        emitted[..2],
        [r#"0 keep {"thoughtSignature":"s"}"#, "1 text Words."]
    );
}

#[test]
fn gemini_unknown_parts_become_provider_data() {
    assert_eq!(
        emitted("opaque_parts"),
        [
            "begun r_four",
            "0 text Let me run it.",
            r#"1 keep {"part":{"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"Y29kZQ=="}}"#,
            r#"2 keep {"part":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}}"#,
            "3 text It is one.",
            "stop EndTurn 12+5=17 reasoning 2 cached 0",
        ]
    );
    let image = json!([{"inlineData": {"mimeType": "image/png", "data": "x".repeat(300 << 10)}}]);
    let emitted = lines(steps(&GeminiDialect, &[frame(image, Some("STOP"))]));
    assert_eq!(emitted, ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}

// S3-064
#[test]
fn gemini_calls_without_ids_or_arguments_are_complete() {
    assert_eq!(
        emitted("without_ids"),
        [
            "begun r_five",
            "0 tool now -",
            "0 end",
            "1 tool now -",
            "1 input {}",
            "1 end",
            "stop ToolUse 5+3=8 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn gemini_usage_after_the_end_is_waited_for() {
    assert_eq!(
        emitted("usage_after_end"),
        [
            "begun r_six",
            "0 text Well.",
            "stop MaxTokens 5+3=8 reasoning 0 cached 0"
        ]
    );
}

#[test]
fn gemini_blocked_request_is_an_error() {
    let (deltas, error) = decode_fixture("blocked");
    assert_eq!(deltas.len(), 1, "the answer had begun");
    assert_eq!(error, Some(malformed()));
}

#[test]
fn gemini_error_event_has_a_retry_delay() {
    let (deltas, error) = decode_fixture("error");
    assert_eq!(deltas.len(), 2);
    let again = RetryHint::After(Duration::from_millis(34_500));
    let expected = ModelError::new(LlmErrorClass::RateLimited, again);
    assert_eq!(error, Some(expected));
}

#[test]
fn gemini_finish_reasons_are_translated() {
    let decode_end =
        |reason: &str, parts: Value| steps(&GeminiDialect, &[frame(parts, Some(reason))]);
    let last_line = |emitted: DecodedStream| lines(emitted).last().cloned().expect("an end");
    let text_parts = || json!([{"text": "Half"}]);
    let call = || json!([{"functionCall": {"name": "now"}}]);
    for (reason, parts, expected) in [
        ("STOP", text_parts(), "stop EndTurn"),
        ("STOP", json!([]), "stop EndTurn"),
        ("STOP", call(), "stop ToolUse"),
        ("MAX_TOKENS", call(), "stop MaxTokens"),
        ("CONTINUATION", text_parts(), "stop MaxTokens"),
        ("SAFETY", text_parts(), "stop EndTurn"),
        ("UNHEARD_OF", text_parts(), "stop EndTurn"),
    ] {
        let emitted = last_line(decode_end(reason, parts));
        assert!(emitted.starts_with(expected), "{reason}: {emitted}");
    }
    for reason in ["SAFETY", "RECITATION", "SPII", "IMAGE_SAFETY", "OTHER"] {
        assert_eq!(
            decode_end(reason, json!([])).1,
            Some(malformed()),
            "{reason}"
        );
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let error = decode_end(reason, json!([])).1;
        assert_eq!(
            error,
            Some(ModelError::transient(LlmErrorClass::Provider)),
            "{reason}"
        );
    }
}

#[test]
fn gemini_stream_without_finish_reason_is_an_error() {
    let error = steps(&GeminiDialect, &[r#"{"responseId":"r"}"#]).1;
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Transport)));
    let partial_text = frame(json!([{"text": "Half"}]), None);
    let unspecified = frame(json!([]), Some("FINISH_REASON_UNSPECIFIED"));
    let error = steps(&GeminiDialect, &[partial_text, unspecified]).1;
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
}

#[test]
fn gemini_only_the_first_candidate_is_decoded() {
    let other = json!({"index": 1, "content": {"parts": [{"text": "Other"}]}});
    let first = json!({"content": {"parts": [{"text": "First"}]}, "finishReason": "STOP"});
    let frames = [json!({"candidates": [other, first]}).to_string()];
    let emitted = lines(steps(&GeminiDialect, &frames));
    assert_eq!(emitted[0], "0 text First");
    assert_eq!(emitted.len(), 2);
}

#[test]
fn gemini_malformed_frame_is_an_error() {
    let nameless = frame(json!([{"functionCall": {"args": {}}}]), None);
    for frame in ["{", "7", r#"{"candidates":7}"#, &nameless] {
        assert_eq!(
            steps(&GeminiDialect, &[frame]).1,
            Some(malformed()),
            "{frame}"
        );
    }
    let blocks: Vec<Value> = (0..2000)
        .map(|_| json!({"functionCall": {"name": "n"}}))
        .collect();
    let too_many = frame(json!(blocks), Some("STOP"));
    assert_eq!(steps(&GeminiDialect, &[too_many]).1, Some(malformed()));
}

#[test]
fn gemini_frames_after_the_end_are_ignored() {
    let usage = json!({"promptTokenCount": 1, "totalTokenCount": 1});
    let end = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage});
    let later_frame = frame(json!([{"text": "x"}]), None);
    let emitted = steps(
        &GeminiDialect,
        &[end.to_string(), later_frame, "{".to_owned()],
    );
    assert_eq!(lines(emitted), ["stop EndTurn 1+0=1 reasoning 0 cached 0"]);
}

// S3-064
#[test]
fn gemini_call_in_parts_is_one_input() {
    let call = |call: Value| frame(json!([{"functionCall": call}]), None);
    let frames = [
        call(json!({"name": "get_weather", "id": "fn_a", "willContinue": true})),
        frame(
            json!([{"text": ""}, {}, {"text": "", "thought": true}]),
            None,
        ),
        call(
            json!({"partialArgs": [{"jsonPath": "$.city", "stringValue": "New ", "willContinue": true}], "willContinue": true}),
        ),
        call(
            json!({"partialArgs": [{"jsonPath": "$.city", "stringValue": "York"}, {"jsonPath": "$.days", "numberValue": 3}], "willContinue": true}),
        ),
        call(json!({})),
        call(json!({"name": "now", "willContinue": true})),
        call(
            json!({"name": "later", "args": {"day": 1}, "partialArgs": [{"jsonPath": "$.hour", "numberValue": 7}]}),
        ),
        frame(json!([]), Some("STOP")),
    ];
    assert_eq!(
        lines(steps(&GeminiDialect, &frames))[..10],
        [
            "0 tool get_weather fn_a",
            r#"0 keep {"id":"fn_a"}"#,
            r#"0 input {"city":"New York","days":3}"#,
            "0 end",
            "1 tool now -",
            "1 input {}",
            "1 end",
            "2 tool later -",
            r#"2 input {"day":1,"hour":7}"#,
            "2 end",
        ]
    );
}

#[test]
fn gemini_sources_are_the_last_text() {
    let source = json!({"uri": "https://a.example/x", "title": "A\nbook", "license": "MIT"});
    let mut last: Value =
        serde_json::from_str(&frame(json!([{"text": "Quoted."}]), Some("STOP"))).expect("a frame");
    let other = json!({"startIndex": 2, "uri": "https://b.example"});
    last["candidates"][0]["citationMetadata"] =
        json!({"citationSources": [source, source, other, {"endIndex": 4}]});
    assert_eq!(
        lines(steps(&GeminiDialect, &[last.to_string()]))[..2],
        [
            "0 text Quoted.",
            "1 text \n\n[1] Abook https://a.example/x (MIT)\n[2] https://b.example"
        ]
    );
}
