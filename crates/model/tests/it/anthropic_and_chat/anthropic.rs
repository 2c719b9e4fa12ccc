//! Decoding Messages streams: each kind of event, errors and deviations of servers. Streams are
//! fixtures or single events.

use std::collections::VecDeque;

use serde_json::json;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::{Delta, ModelError, RetryHint, SseEvent, VendorDialect};

use crate::anthropic_and_chat::support::{ANTHROPIC, decode, fixture, lines, steps};

fn emitted(name: &str) -> Vec<String> {
    lines(decode(&AnthropicDialect, fixture(ANTHROPIC, name)))
}

/// Decodes a message of these events and an end with `reason`.
pub(crate) fn message(events: &[&str], reason: &str) -> (Vec<Delta>, Option<ModelError>) {
    let ending = json!({"type": "message_delta", "delta": {"stop_reason": reason}}).to_string();
    let mut frames = events.to_vec();
    frames.extend([&*ending, r#"{"type":"message_stop"}"#]);
    steps(&AnthropicDialect, &frames)
}

pub(crate) fn start(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

pub(crate) fn text(index: u64, text: &str) -> String {
    let delta = json!({"type": "text_delta", "text": text});
    json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
}

pub(crate) fn stop(index: u64) -> String {
    json!({"type": "content_block_stop", "index": index}).to_string()
}

// S3-062
#[test]
fn recorded_messages_text_is_decoded() {
    let emitted = emitted("recorded_plain");
    assert_eq!(
        emitted[0],
        "begun chatcmpl-aME61BgRtKyvwx1cgl4luXUEfSVXHeA6"
    );
    assert_eq!(emitted[1], "0 text A");
    assert_eq!(emitted[21], "0 text .");
    assert_eq!(emitted[22], "stop EndTurn 30+22=52 reasoning 0 cached 29");
    assert_eq!(emitted.len(), 23);
}

// S3-062
#[test]
fn recorded_messages_tool_call_is_decoded() {
    let emitted = emitted("recorded_tool");
    let id = "vj9vm7iYTvYeq2ubIWEX3dHeYxrMepKs";
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
        ["0 end", "stop ToolUse 394+38=432 reasoning 0 cached 261"]
    );
}

// S3-055
#[test]
fn messages_signature_is_emitted_once_at_the_end() {
    assert_eq!(
        emitted("thinking"),
        [
            "begun msg_01Xy",
            "0 thinking Two cities, ",
            "0 thinking so two calls.",
            "0 thinking [EqQBCkYIBxg==]",
            r#"1 keep {"redacted_thinking":"EmwKAhgBEgy3va3pzix"}"#,
            "2 text I look ",
            "2 text at both.",
            "3 tool get_weather toolu_a",
            r#"3 keep {"id":"toolu_a"}"#,
            r#"3 input {"city":"#,
            r#"3 input "Paris"}"#,
            "3 end",
            "4 tool get_time toolu_b",
            r#"4 keep {"id":"toolu_b"}"#,
            "4 end",
            "stop ToolUse 1312+77=1389 reasoning 20 cached 1000",
        ]
    );
}

#[test]
fn cache_written_tokens_are_read_from_message_start() {
    let mut decoder = AnthropicDialect.decoder();
    let data = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"cache_creation_input_tokens":300}}}"#;
    let event = Some("message_start");
    let stepped = decoder.step(SseEvent { event, data }, &mut VecDeque::new());
    assert_eq!((stepped, decoder.cache_written_tokens()), (Ok(()), 300));
}

// S3-065
#[test]
fn messages_blocks_out_of_order_are_reordered() {
    assert_eq!(
        emitted("out_of_order"),
        [
            "begun msg_01Xy",
            "0 thinking first",
            "0 thinking [c2ln]",
            "1 text second",
            "1 text  block",
            "2 tool a toolu_2",
            r#"2 keep {"id":"toolu_2"}"#,
            r#"2 input {"n":2}"#,
            "2 end",
            "3 tool b toolu_3",
            r#"3 keep {"id":"toolu_3"}"#,
            r#"3 input {"n":3}"#,
            "3 end",
            "stop ToolUse 5+9=14 reasoning 0 cached 0",
        ]
    );
}

// S3-066
#[test]
fn messages_interleaved_tools_are_separated() {
    assert_eq!(
        emitted("interleaved")[1..],
        [
            "0 tool get_weather toolu_1",
            r#"0 keep {"id":"toolu_1"}"#,
            r#"0 input {"city""#,
            r#"0 input :"Paris"}"#,
            "0 end",
            "1 tool get_weather toolu_2",
            r#"1 keep {"id":"toolu_2"}"#,
            r#"1 input {"city":"#,
            r#"1 input "Rome"}"#,
            "1 end",
            "stop ToolUse 5+9=14 reasoning 0 cached 0",
        ]
    );
}

// S3-064
#[test]
fn messages_unstreamed_input_is_one_fragment_or_none() {
    assert_eq!(
        emitted("unstreamed_input")[1..8],
        [
            "0 tool get_weather toolu_1",
            r#"0 keep {"id":"toolu_1"}"#,
            r#"0 input {"city":"Paris","days":[1,2]}"#,
            "0 end",
            "1 tool get_time toolu_2",
            r#"1 keep {"id":"toolu_2"}"#,
            "1 end",
        ]
    );
}

#[test]
fn server_tool_blocks_become_provider_data() {
    assert_eq!(
        emitted("server_tool")[1..],
        [
            r#"0 keep {"block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"tide"}}}"#,
            r#"1 keep {"block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.org","encrypted_content":"abc"}]}}"#,
            "2 text High.",
            "stop EndTurn 5+9=14 reasoning 0 cached 0",
        ],
        "one that grew in a way that is not known cannot be sent back and is not kept"
    );
}

#[test]
fn messages_error_event_ends_the_stream_with_its_class() {
    let (deltas, error) = decode(&AnthropicDialect, fixture(ANTHROPIC, "overloaded"));
    assert_eq!(deltas.len(), 2);
    assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Provider)));
    let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#;
    let error = steps(&AnthropicDialect, &[limited]).1;
    assert_eq!(
        error,
        Some(ModelError::transient(LlmErrorClass::RateLimited))
    );
    let invalid = r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
    let error = steps(&AnthropicDialect, &[invalid]).1;
    assert_eq!(error, Some(LlmErrorClass::Provider.into()));
}

#[test]
fn messages_without_end_is_retryable_only_without_output() {
    let started = r#"{"type":"message_start","message":{"id":"m"}}"#;
    for frames in [&[][..], &[started], &[started, r#"{"type":"ping"}"#]] {
        let error = steps(&AnthropicDialect, frames).1;
        assert_eq!(error, Some(ModelError::transient(LlmErrorClass::Transport)));
    }
    let ended = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let (deltas, error) = steps(
        &AnthropicDialect,
        &[started, &text(0, "Half"), &stop(0), ended],
    );
    assert_eq!(deltas.len(), 2, "only message_stop ends a message");
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
}

#[test]
fn messages_stop_reasons_are_translated() {
    let tool = start(0, r#"{"type":"tool_use","id":"t","name":"a","input":{}}"#);
    let text_delta = text(0, "hi");
    let reason = |block: &str, reason: &str| {
        let emitted = lines(message(&[block], reason));
        let last = emitted.last().expect("a stop").clone();
        last.split(' ').nth(1).expect("a reason").to_owned()
    };
    for (vendor_reason, expected) in [
        ("end_turn", "EndTurn"),
        ("max_tokens", "MaxTokens"),
        ("model_context_window_exceeded", "MaxTokens"),
        ("stop_sequence", "StopSequence"),
        ("tool_use", "EndTurn"),
        ("pause_turn", "EndTurn"),
        ("refusal", "EndTurn"),
        ("aurora", "EndTurn"),
    ] {
        assert_eq!(
            reason(&text_delta, vendor_reason),
            expected,
            "{vendor_reason} with words"
        );
    }
    for (vendor_reason, expected) in [
        ("tool_use", "ToolUse"),
        ("end_turn", "ToolUse"),
        ("max_tokens", "MaxTokens"),
        ("refusal", "EndTurn"),
    ] {
        assert_eq!(
            reason(&tool, vendor_reason),
            expected,
            "{vendor_reason} with a tool"
        );
    }
}

#[test]
fn messages_refusal_without_text_is_an_error() {
    let error = message(&[], "refusal").1;
    assert_eq!(error, Some(LlmErrorClass::Provider.into()));
    assert_eq!(message(&[], "end_turn").1, None);
}

#[test]
fn messages_events_after_the_stop_are_ignored() {
    let end = r#"{"type":"message_stop"}"#;
    let emitted = steps(
        &AnthropicDialect,
        &[&text(0, "a"), end, &text(0, "b"), end, "no JSON"],
    );
    assert_eq!(
        lines(emitted),
        ["0 text a", "stop EndTurn 0+0=0 reasoning 0 cached 0"]
    );
}

#[test]
fn messages_malformed_event_fails_and_unknown_is_ignored() {
    for malformed in [
        "no JSON",
        "5",
        r#"{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"a"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        r#"{"type":"content_block_start","index":0}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t"}}"#,
    ] {
        let error = steps(&AnthropicDialect, &[malformed]).1;
        assert_eq!(error, Some(LlmErrorClass::Provider.into()), "{malformed}");
    }
    let new = [
        "",
        r#"{"type":"aurora","delta":5,"index":"x"}"#,
        r#"{"type":"content_block_delta","index":7,"delta":{"type":"aurora","text":5}}"#,
        r#"{"type":"content_block_delta","index":7,"delta":{}}"#,
        r#"{"type":"content_block_stop","index":9}"#,
        r#"{}"#,
    ];
    assert_eq!(message(&new, "end_turn").1, None);
    let mut decoder = AnthropicDialect.decoder();
    let frame = SseEvent {
        event: Some("aurora"),
        data: "no JSON",
    };
    assert_eq!(decoder.step(frame, &mut VecDeque::new()), Ok(()));
}

#[test]
fn messages_index_reuse_and_missing_events_are_tolerated() {
    let empty = start(0, r#"{"type":"text","text":""}"#);
    let filled = start(0, r#"{"type":"text","text":"a"}"#);
    let same_index = [
        &*filled,
        &stop(0),
        &*filled,
        &text(0, "b"),
        &*empty,
        &text(0, "c"),
    ];
    assert_eq!(
        lines(message(&same_index, "end_turn"))[..4],
        ["0 text a", "1 text a", "1 text b", "2 text c"],
        "an index that comes again is another block"
    );
    let without_start = [&*text(0, "a"), &text(0, ""), &stop(0), &text(0, "lost")];
    assert_eq!(
        lines(message(&without_start, "end_turn"))[..1],
        ["0 text a"]
    );
    assert_eq!(lines(message(&without_start, "end_turn")).len(), 2);
    let open = start(0, r#"{"type":"tool_use","id":"","name":"a"}"#);
    assert_eq!(
        lines(message(&[&open], "tool_use"))[..2],
        ["0 tool a -", "0 end"],
        "the end of the message ends what is open"
    );
}

#[test]
fn messages_empty_block_gets_no_number() {
    let empty = start(0, r#"{"type":"text","text":""}"#);
    let empty_thinking = start(1, r#"{"type":"thinking","thinking":"","signature":""}"#);
    let signed_thinking = start(2, r#"{"type":"thinking","thinking":"","signature":"s"}"#);
    let events = [
        &*empty,
        &stop(0),
        &*empty_thinking,
        &stop(1),
        &*signed_thinking,
        &stop(2),
        &text(3, "a"),
    ];
    assert_eq!(
        lines(message(&events, "end_turn"))[..2],
        ["0 thinking [s]", "1 text a"]
    );
}

#[test]
fn messages_error_status_and_headers() {
    let classify = |status, body: &[u8]| {
        AnthropicDialect.classify_response(turnwire_model::ErrorResponse {
            status,
            retry_after: None,
            body,
        })
    };
    assert_eq!(classify(529, b"").retry, RetryHint::Backoff);
    assert_eq!(classify(401, b"{}"), LlmErrorClass::Provider.into());
    let headers = AnthropicDialect.headers(Some("k"));
    assert_eq!(
        headers,
        [
            ("anthropic-version", "2026-10-21".to_owned()),
            ("x-api-key", "k".to_owned())
        ]
    );
    assert_eq!(AnthropicDialect.headers(None).len(), 1);
}
