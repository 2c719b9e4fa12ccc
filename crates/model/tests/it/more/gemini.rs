//! Gemini: each thing a stream can say.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::gemini::Gemini;
use turnwire_model::{Again, ModelError};

use crate::more::support::{GEMINI, Told, decode, fixture, lines, steps};

/// The vendor ends its lines with CRLF.
fn read(name: &str) -> Told {
    let stream = fixture(GEMINI, name).replace('\n', "\r\n");
    decode(&Gemini, [stream.as_bytes()])
}

fn told(name: &str) -> Vec<String> {
    lines(read(name))
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
fn the_same_conversation_as_in_the_other_dialects() {
    assert_eq!(
        told("conversation"),
        [
            "begun r_one",
            "0 text Ich sehe ",
            "0 text nach: Grö",
            "0 text ße 🚢",
            "0 text …",
            "1 tool get_weather fn_one",
            r#"1 input {"city": "Köln", "unit": "celsius"}"#,
            r#"1 keep {"id":"fn_one","thoughtSignature":"c2lnbmVkIG9uZQ=="}"#,
            "1 end",
            "stop ToolUse 64+31=95 reasoning 0 cached 24",
        ]
    );
}

#[test]
fn thoughts_are_thinking_and_the_first_of_parallel_calls_is_sealed() {
    assert_eq!(
        told("thinking"),
        [
            "begun r_two",
            "0 thinking Two cities, ",
            "0 thinking so two calls.",
            "1 text I look ",
            "1 text at both.",
            "2 tool get_weather fn_a",
            r#"2 input {"city": "Paris"}"#,
            r#"2 keep {"id":"fn_a","thoughtSignature":"c2lnIGE="}"#,
            "2 end",
            "3 tool get_weather fn_b",
            r#"3 input {"city": "Rome"}"#,
            r#"3 keep {"id":"fn_b"}"#,
            "3 end",
            "stop ToolUse 120+80=200 reasoning 48 cached 64",
        ]
    );
}

#[test]
fn s3_055_a_seal_comes_with_the_last_piece_of_its_block_and_closes_it() {
    assert_eq!(
        told("signed_words"),
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
    let sealed_first = [
        frame(
            json!([{"text": "", "thoughtSignature": "s"}, {"text": "Words."}]),
            None,
        ),
        frame(json!([]), Some("STOP")),
    ];
    let told = lines(steps(&Gemini, &sealed_first));
    assert_eq!(
        told[..2],
        [r#"0 keep {"thoughtSignature":"s"}"#, "1 text Words."]
    );
}

#[test]
fn parts_that_nobody_reads_are_kept_whole() {
    assert_eq!(
        told("unread_parts"),
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
    let told = lines(steps(&Gemini, &[frame(image, Some("STOP"))]));
    assert_eq!(told, ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}

#[test]
fn s3_064_calls_come_whole_also_without_ids_and_arguments() {
    assert_eq!(
        told("without_ids"),
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
fn tokens_that_are_counted_behind_the_end_are_waited_for() {
    assert_eq!(
        told("usage_behind"),
        [
            "begun r_six",
            "0 text Well.",
            "stop MaxTokens 5+3=8 reasoning 0 cached 0"
        ]
    );
}

#[test]
fn a_question_that_is_not_let_in_is_an_error() {
    let (deltas, error) = read("blocked");
    assert_eq!(deltas.len(), 1, "the answer had begun");
    assert_eq!(error, Some(malformed()));
}

#[test]
fn an_error_in_the_stream_says_when_to_come_again() {
    let (deltas, error) = read("error");
    assert_eq!(deltas.len(), 2);
    let again = Again::After(Duration::from_millis(34_500));
    let expected = ModelError::new(LlmErrorClass::RateLimited, again);
    assert_eq!(error, Some(expected));
}

#[test]
fn the_reason_decides_how_it_ends() {
    let ends = |reason: &str, parts: Value| steps(&Gemini, &[frame(parts, Some(reason))]);
    let ending = |told: Told| lines(told).last().cloned().expect("an end");
    let words = || json!([{"text": "Half"}]);
    let call = || json!([{"functionCall": {"name": "now"}}]);
    for (reason, parts, expected) in [
        ("STOP", words(), "stop EndTurn"),
        ("STOP", json!([]), "stop EndTurn"),
        ("STOP", call(), "stop ToolUse"),
        ("MAX_TOKENS", call(), "stop MaxTokens"),
        ("CONTINUATION", words(), "stop MaxTokens"),
        ("SAFETY", words(), "stop EndTurn"),
        ("UNHEARD_OF", words(), "stop EndTurn"),
    ] {
        let told = ending(ends(reason, parts));
        assert!(told.starts_with(expected), "{reason}: {told}");
    }
    for reason in ["SAFETY", "RECITATION", "SPII", "IMAGE_SAFETY", "OTHER"] {
        assert_eq!(ends(reason, json!([])).1, Some(malformed()), "{reason}");
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let error = ends(reason, json!([])).1;
        assert_eq!(
            error,
            Some(ModelError::passing(LlmErrorClass::Provider)),
            "{reason}"
        );
    }
}

#[test]
fn a_stream_without_a_reason_is_broken() {
    let error = steps(&Gemini, &[r#"{"responseId":"r"}"#]).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Transport)));
    let half = frame(json!([{"text": "Half"}]), None);
    let unspecified = frame(json!([]), Some("FINISH_REASON_UNSPECIFIED"));
    let error = steps(&Gemini, &[half, unspecified]).1;
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
}

#[test]
fn only_the_first_candidate_is_heard() {
    let other = json!({"index": 1, "content": {"parts": [{"text": "Other"}]}});
    let first = json!({"content": {"parts": [{"text": "First"}]}, "finishReason": "STOP"});
    let frames = [json!({"candidates": [other, first]}).to_string()];
    let told = lines(steps(&Gemini, &frames));
    assert_eq!(told[0], "0 text First");
    assert_eq!(told.len(), 2);
}

#[test]
fn a_frame_that_is_no_response_is_malformed() {
    let nameless = frame(json!([{"functionCall": {"args": {}}}]), None);
    for frame in ["{", "7", r#"{"candidates":7}"#, &nameless] {
        assert_eq!(steps(&Gemini, &[frame]).1, Some(malformed()), "{frame}");
    }
    let blocks: Vec<Value> = (0..2000)
        .map(|_| json!({"functionCall": {"name": "n"}}))
        .collect();
    let too_many = frame(json!(blocks), Some("STOP"));
    assert_eq!(steps(&Gemini, &[too_many]).1, Some(malformed()));
}

#[test]
fn frames_behind_the_end_say_nothing() {
    let usage = json!({"promptTokenCount": 1, "totalTokenCount": 1});
    let end = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage});
    let more = frame(json!([{"text": "x"}]), None);
    let told = steps(&Gemini, &[end.to_string(), more, "{".to_owned()]);
    assert_eq!(lines(told), ["stop EndTurn 1+0=1 reasoning 0 cached 0"]);
}
