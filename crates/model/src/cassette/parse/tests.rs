//! Written cassettes parse back, also truncated ones; mistakes are reported with their line. Any
//! bytes survive the round trip.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use turnwire_event::code::LlmErrorClass;

use super::super::{RecordedChunk, ResponseHead, line};
use super::*;
use crate::delta::{ModelError, RetryHint};

fn salt() -> CassetteSalt {
    CassetteSalt::parse(Some("0f")).expect("a salt")
}

fn call(chunks: Vec<RecordedChunk>, ending: CallEnding) -> RecordedCall {
    RecordedCall {
        provider: "local".into(),
        dialect: "openai_chat".into(),
        model: "m".into(),
        agent: "shop".into(),
        call: 2,
        salt: salt(),
        words_sha256: "aa".into(),
        body_sha256: "bb".into(),
        answer: Some(ResponseHead {
            after: Duration::from_millis(1),
            events: false,
            status: 429,
            retry_after: Some(Duration::from_millis(1_500)),
        }),
        chunks,
        ended_after: Duration::from_millis(77),
        ending,
    }
}

fn chunk(ms: u64, bytes: &[u8]) -> RecordedChunk {
    RecordedChunk {
        after: Duration::from_millis(ms),
        bytes: Bytes::copy_from_slice(bytes),
    }
}

fn to_text(calls: &[RecordedCall]) -> String {
    let mut out = line::header(&salt());
    out.extend(calls.iter().flat_map(line::lines));
    String::from_utf8(out).expect("text")
}

fn error_of(text: &str) -> String {
    parse("c.jsonl", text).expect_err("wrong").to_string()
}

#[test]
fn call_parses_back_as_written() {
    let failed_ending = |again| CallEnding::Cut(ModelError::new(LlmErrorClass::RateLimited, again));
    let endings = [
        CallEnding::End,
        CallEnding::Closed,
        failed_ending(RetryHint::Never),
        failed_ending(RetryHint::Backoff),
        failed_ending(RetryHint::After(Duration::from_millis(20))),
    ];
    let chunks = vec![
        chunk(1, b"data: {\"a\":1}\r\n\r\n"),
        chunk(2, b"\xe2\x9c"),
        chunk(2, "\u{fffd} \u{2028}".as_bytes()),
        chunk(9, b""),
    ];
    let mut calls: Vec<RecordedCall> = endings
        .into_iter()
        .map(|ending| call(chunks.clone(), ending))
        .collect();
    calls[2].answer = None;
    let text = to_text(&calls);
    assert!(!text.contains('\u{fffd}'), "{text}");
    assert_eq!(parse("c.jsonl", &text), Ok(calls));
}

#[test]
fn truncated_file_parses_up_to_the_last_complete_call() {
    let calls = [
        call(vec![chunk(1, "ä".as_bytes())], CallEnding::End),
        call(vec![chunk(1, b"b")], CallEnding::Closed),
    ];
    let text = to_text(&calls);
    let header = line::header(&salt()).len();
    let first = to_text(&calls[..1]).len();
    for end in header..text.len() {
        if !text.is_char_boundary(end) {
            continue;
        }
        let parsed = parse("c.jsonl", &text[..end]).expect("what is whole");
        // The last line is complete without its line break.
        let complete = match end + 1 {
            at if at == text.len() => 2,
            at if at >= first => 1,
            _ => 0,
        };
        assert_eq!(parsed, calls[..complete], "cut at {end}");
    }
}

#[test]
fn mistake_is_reported_with_its_line() {
    let header = String::from_utf8(line::header(&salt())).expect("text");
    let complete = to_text(&[call(Vec::new(), CallEnding::End)]);
    let cases = [
        (String::new(), "c.jsonl:1: the first line of a cassette is"),
        (
            "{}\n".into(),
            "c.jsonl:1: this is not a cassette line: missing field `type`",
        ),
        (
            r#"{"type":"cassette","version":1,"salt":""}"#.into(),
            "c.jsonl:1: a `salt` has at least one character",
        ),
        (
            format!(
                r#"{{"type":"cassette","version":1,"salt":"{}"}}"#,
                "x".repeat(129)
            ),
            "c.jsonl:1: a `salt` has at most 128 characters",
        ),
        (
            r#"{"type":"cassette","version":2}"#.into(),
            "c.jsonl:1: this is version 2 of the format",
        ),
        (
            format!("{header}\n{{\"type\":\"end\",\"ms\":1,\"how\":\"end\"}}\n"),
            "c.jsonl:3: this line needs a `call` line before it",
        ),
        (
            format!("{header}{{\"type\":\"chunk\",\"ms\":1,\"test\":\"\"}}\n"),
            "c.jsonl:2: this is not a cassette line: unknown field `test`",
        ),
        (
            format!("{header}{{\"type\":\"chunk\",\"ms\":1}}\n"),
            "c.jsonl:2: a chunk has either `text` or `base64`",
        ),
        (
            format!("{header}{{\"type\":\"chunk\",\"ms\":1,\"base64\":\"!\"}}\n"),
            "c.jsonl:2: `base64` is not base64",
        ),
        (
            format!("{complete}{{\"type\":\"end\",\"ms\":1,\"how\":\"cut\"}}\n"),
            "c.jsonl:4: a call with `how: cut` has a `class`",
        ),
        (
            complete.replace("\"status\":429,", "") + &header,
            "c.jsonl:3: a call with `how: end` has a `status`",
        ),
        (
            complete.replace("{\"type\":\"end\"", "{\"type\":\"call\""),
            "c.jsonl:3: this is not a cassette line",
        ),
    ];
    for (text, expected) in cases {
        let error = error_of(&text);
        assert!(error.starts_with(expected), "{error}\n{text}");
    }
    let call_line = complete.lines().nth(1).expect("a call");
    let error = error_of(&format!("{header}{call_line}\n{call_line}\n"));
    assert!(
        error.ends_with("the call before it has no `end`"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_chunks_parse_back_as_written(
        chunks in proptest::collection::vec((0u64..100_000, proptest::collection::vec(any::<u8>(), 0..40)), 0..20)
    ) {
        let chunks = chunks.into_iter().map(|(ms, bytes)| chunk(ms, &bytes)).collect();
        let calls = vec![call(chunks, CallEnding::End)];
        prop_assert_eq!(parse("c.jsonl", &to_text(&calls)), Ok(calls));
    }

    #[test]
    fn parser_does_not_panic_on_any_text(text in "(\\{\"type\":\"(call|chunk|end|cassette)\",?|[^\n]{0,20}|\n){0,30}") {
        let _ = parse("c.jsonl", &text);
    }
}
