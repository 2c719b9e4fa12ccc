//! What is written is read, wherever the writer stopped; what is wrong is told with its line.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use turnwire_event::code::LlmErrorClass;

use super::super::{Chunk, Head, line};
use super::*;
use crate::delta::{Again, ModelError};

fn salt() -> Salt {
    Salt::read("0f").expect("a salt")
}

fn call(chunks: Vec<Chunk>, ending: Ending) -> Call {
    Call {
        provider: "local".into(),
        dialect: "openai_chat".into(),
        model: "m".into(),
        agent: "shop".into(),
        call: 2,
        salt: salt(),
        words_sha256: "aa".into(),
        body_sha256: "bb".into(),
        answer: Some(Head {
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

fn chunk(ms: u64, bytes: &[u8]) -> Chunk {
    Chunk {
        after: Duration::from_millis(ms),
        bytes: Bytes::copy_from_slice(bytes),
    }
}

fn written(calls: &[Call]) -> String {
    let mut out = line::header(&salt());
    out.extend(calls.iter().flat_map(line::lines));
    String::from_utf8(out).expect("text")
}

fn wrong(text: &str) -> String {
    read("c.jsonl", text).expect_err("wrong").to_string()
}

#[test]
fn a_call_reads_as_it_was_written() {
    let cut = |again| Ending::Cut(ModelError::new(LlmErrorClass::RateLimited, again));
    let endings = [
        Ending::End,
        Ending::Closed,
        cut(Again::Never),
        cut(Again::Soon),
        cut(Again::After(Duration::from_millis(20))),
    ];
    let chunks = vec![
        chunk(1, b"data: {\"a\":1}\r\n\r\n"),
        chunk(2, b"\xe2\x9c"),
        chunk(2, "\u{fffd} \u{2028}".as_bytes()),
        chunk(9, b""),
    ];
    let mut calls: Vec<Call> = endings
        .into_iter()
        .map(|ending| call(chunks.clone(), ending))
        .collect();
    calls[2].answer = None;
    let text = written(&calls);
    assert!(!text.contains('\u{fffd}'), "{text}");
    assert_eq!(read("c.jsonl", &text), Ok(calls));
}

#[test]
fn a_file_cut_anywhere_reads_up_to_the_last_whole_call() {
    let calls = [
        call(vec![chunk(1, "ä".as_bytes())], Ending::End),
        call(vec![chunk(1, b"b")], Ending::Closed),
    ];
    let text = written(&calls);
    let header = line::header(&salt()).len();
    let first = written(&calls[..1]).len();
    for end in header..text.len() {
        if !text.is_char_boundary(end) {
            continue;
        }
        let read = read("c.jsonl", &text[..end]).expect("what is whole");
        // The last line break is not needed to see that the line is whole.
        let whole = match end + 1 {
            at if at == text.len() => 2,
            at if at >= first => 1,
            _ => 0,
        };
        assert_eq!(read, calls[..whole], "cut at {end}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let header = String::from_utf8(line::header(&salt())).expect("text");
    let whole = written(&[call(Vec::new(), Ending::End)]);
    let cases = [
        (String::new(), "c.jsonl:1: the first line of a cassette is"),
        (
            "{}\n".into(),
            "c.jsonl:1: this is not a line of a cassette: missing field `type`",
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
            "c.jsonl:3: this belongs to a call",
        ),
        (
            format!("{header}{{\"type\":\"chunk\",\"ms\":1,\"test\":\"\"}}\n"),
            "c.jsonl:2: this is not a line of a cassette: unknown field `test`",
        ),
        (
            format!("{header}{{\"type\":\"chunk\",\"ms\":1}}\n"),
            "c.jsonl:2: a chunk has `text` or `base64`",
        ),
        (
            format!("{header}{{\"type\":\"chunk\",\"ms\":1,\"base64\":\"!\"}}\n"),
            "c.jsonl:2: `base64` is not base64",
        ),
        (
            format!("{whole}{{\"type\":\"end\",\"ms\":1,\"how\":\"cut\"}}\n"),
            "c.jsonl:4: a call that was cut has a `class`",
        ),
        (
            whole.replace("\"status\":429,", "") + &header,
            "c.jsonl:3: a call that ended well has a `status`",
        ),
        (
            whole.replace("{\"type\":\"end\"", "{\"type\":\"call\""),
            "c.jsonl:3: this is not a line of a cassette",
        ),
    ];
    for (text, expected) in cases {
        let told = wrong(&text);
        assert!(told.starts_with(expected), "{told}\n{text}");
    }
    let twice = whole.lines().nth(1).expect("a call");
    let told = wrong(&format!("{header}{twice}\n{twice}\n"));
    assert!(told.ends_with("the call before it has no `end`"), "{told}");
}

proptest! {
    #[test]
    fn any_bytes_come_back_in_the_same_chunks(
        chunks in proptest::collection::vec((0u64..100_000, proptest::collection::vec(any::<u8>(), 0..40)), 0..20)
    ) {
        let chunks = chunks.into_iter().map(|(ms, bytes)| chunk(ms, &bytes)).collect();
        let calls = vec![call(chunks, Ending::End)];
        prop_assert_eq!(read("c.jsonl", &written(&calls)), Ok(calls));
    }

    #[test]
    fn no_text_makes_it_panic(text in "(\\{\"type\":\"(call|chunk|end|cassette)\",?|[^\n]{0,20}|\n){0,30}") {
        let _ = read("c.jsonl", &text);
    }
}
