//! Limits on the memory that a Messages stream can use: blocks, buffered deltas and signatures.
//! Exceeding a limit is a provider error or releases the buffer.

use std::collections::VecDeque;

use serde_json::json;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::{Delta, SseEvent, VendorDialect};

use crate::anthropic_and_chat::anthropic::{message, start, text};
use crate::anthropic_and_chat::support::lines;

#[test]
fn block_index_is_not_used_as_a_size() {
    let far = u64::MAX.to_string();
    let events = [
        text(u64::MAX, "far"),
        text(1 << 40, "near"),
        text(0, "first"),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let emitted = lines(message(&events, "end_turn"));
    assert_eq!(emitted[..3], ["0 text first", "1 text near", "2 text far"]);
    let again = start(u64::MAX, r#"{"type":"text","text":""}"#);
    assert!(again.contains(&far));
    let error = message(&[&again, &again], "end_turn").1;
    assert_eq!(
        error,
        Some(LlmErrorClass::Provider.into()),
        "no place behind the last"
    );
}

#[test]
fn number_of_blocks_is_bounded() {
    let blocks: Vec<String> = (0..2_000).map(|n| text(n, "a")).collect();
    let events: Vec<&str> = blocks.iter().map(String::as_str).collect();
    let (deltas, error) = message(&events, "end_turn");
    assert_eq!(error, Some(LlmErrorClass::Provider.into()));
    assert!(deltas.len() <= 1024);
}

#[test]
fn buffered_deltas_are_bounded_and_then_released() {
    let text_piece = "a".repeat(100_000);
    let events: Vec<String> = (0..20).map(|_| text(1, &text_piece)).collect();
    let mut decoder = AnthropicDialect.decoder();
    let mut out = VecDeque::new();
    let mut first_out = None;
    for (n, data) in events.iter().enumerate() {
        let frame = SseEvent { event: None, data };
        assert_eq!(decoder.step(frame, &mut out), Ok(()));
        if !out.is_empty() {
            first_out.get_or_insert(n);
        }
    }
    assert_eq!(first_out, Some(10), "about a megabyte waits");
    assert_eq!(out.len(), 20, "then nothing does");
    let late = text(0, "late");
    let frame = SseEvent {
        event: None,
        data: &late,
    };
    assert_eq!(decoder.step(frame, &mut out), Ok(()));
    let late = Delta::Text {
        block: 1,
        text: "late".into(),
    };
    assert_eq!(out.back(), Some(&late));
}

#[test]
fn size_of_signatures_is_bounded() {
    let piece = json!({"type": "signature_delta", "signature": "s".repeat(200_000)});
    let piece = json!({"type": "content_block_delta", "index": 0, "delta": piece}).to_string();
    let error = message(&[&*piece; 6], "end_turn").1;
    assert_eq!(error, Some(LlmErrorClass::Provider.into()));
}
