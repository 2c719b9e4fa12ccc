//! Model calls that fail: an open message is closed, the call always ends, and the turn ends with an
//! error code (D-45).

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use serde_json::json;
use turnwire_event::code::{ErrorCode, LlmErrorClass, TurnStatus};
use turnwire_event::content::{ContentBlock, content_json};
use turnwire_event::port::{HistoryError, TurnOutcome};
use turnwire_event::{StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError};

use super::turn_harness::{FixedHistory, TurnHarness};

fn failed(code: ErrorCode) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status: TurnStatus::Failed,
        error: Some(code.into()),
    }
}

fn says(deltas: Vec<Result<Delta, ModelError>>) -> TurnHarness {
    TurnHarness::of(move |_| iter(deltas.clone()).boxed())
}

fn text(block: u32, text: &str) -> Result<Delta, ModelError> {
    Ok(Delta::Text {
        block,
        text: text.into(),
    })
}

fn start(block: u32, name: &str) -> Result<Delta, ModelError> {
    Ok(Delta::ToolStart {
        block,
        name: name.into(),
        provider_id: Some("toolu_1".into()),
    })
}

fn input(block: u32, fragment: &str) -> Result<Delta, ModelError> {
    Ok(Delta::ToolInput {
        block,
        fragment: fragment.into(),
    })
}

fn stop(reason: StopReason) -> Result<Delta, ModelError> {
    Ok(Delta::Stop {
        reason,
        usage: TokenUsage::default(),
    })
}

// D-45
#[tokio::test]
async fn error_before_output_fails_the_call_alone() {
    let harness = TurnHarness::script("- steps: [{error: rate_limited}]");
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await, failed(ErrorCode::RateLimitError));
    assert_eq!(
        recorder.lines()[2..],
        [
            r#"orchestrator llm.call_failed {"call_id":"call_01","message_id":null,"content_sha256":null,"error_class":"rate_limited"}"#
        ]
    );
}

// D-45
#[tokio::test]
async fn error_after_output_closes_the_message_first() {
    let harness = TurnHarness::script("- steps: [{text: Hel}, {error: transport}]");
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await, failed(ErrorCode::ModelUnavailable));
    let hash = content_json(&[ContentBlock::text("Hel")]).1;
    assert_eq!(
        recorder.lines()[4..],
        [
            r#"orchestrator message.complete {"message_id":"02","stop_reason":"error","final_content":[{"type":"text","text":"Hel"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2,"reasoning_tokens":0,"cached_tokens":0,"cost_usd":0.0,"estimated":true}}"#.to_owned(),
            format!(r#"orchestrator llm.call_failed {{"call_id":"call_01","message_id":"02","content_sha256":"{hash}","error_class":"transport","usage":{{"input_tokens":1,"output_tokens":1,"total_tokens":2,"reasoning_tokens":0,"cached_tokens":0,"cost_usd":0.0,"estimated":true}}}}"#),
        ]
    );
}

#[tokio::test]
async fn tools_of_a_broken_message_are_never_called() {
    let harness = says(vec![
        start(0, "echo"),
        input(0, r#"{"text":"#),
        start(1, "echo"),
        input(1, "{}"),
        Ok(Delta::ToolEnd { block: 1 }),
        Err(LlmErrorClass::Timeout.into()),
    ]);
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("echo", |_| async { Ok(json!(1)) });
    assert_eq!(harness.run().await, failed(ErrorCode::ModelUnavailable));
    assert_eq!(
        recorder.types()[2..],
        [
            "message.start",
            "tool.use_start",
            "tool.use_input_delta",
            "tool.use_start",
            "tool.use_input_delta",
            "tool.use_end",
            "tool.use_end",
            "message.complete",
            "llm.call_failed"
        ]
    );
    assert_eq!(
        recorder.lines()[8],
        r#"orchestrator tool.use_end {"message_id":"02","content_block_index":0,"tool_use_id":"tu_03","final_input":{}}"#
    );
}

#[tokio::test]
async fn provider_that_was_not_reached_is_not_paid() {
    for (location, is_paid) in [("connect", false), ("first_byte", true)] {
        let error = ModelError::from(LlmErrorClass::Timeout).with_location(location);
        let harness = says(vec![Err(error)]);
        let recorder = Arc::clone(&harness.recorder);
        harness.run().await;
        let lines = recorder.lines();
        let mut failed = lines.iter().filter(|line| line.contains("llm.call_failed"));
        let failed = failed.next().expect("a failed call");
        assert_eq!(failed.contains(r#""estimated":true"#), is_paid, "{failed}");
    }
}

#[tokio::test]
async fn stream_without_a_stop_has_failed() {
    for (deltas, tail) in [
        (vec![], vec!["llm.call_failed"]),
        (
            vec![text(0, "a")],
            vec![
                "message.start",
                "text.delta",
                "message.complete",
                "llm.call_failed",
            ],
        ),
    ] {
        let harness = says(deltas);
        let recorder = Arc::clone(&harness.recorder);
        assert_eq!(harness.run().await, failed(ErrorCode::ModelUnavailable));
        assert_eq!(recorder.types()[2..], tail);
        let last = recorder.lines().pop().expect("a line");
        assert!(last.contains(r#""error_class":"transport""#), "{last}");
    }
}

#[tokio::test]
async fn malformed_stream_is_stopped_at_its_delta() {
    let end = || Ok(Delta::ToolEnd { block: 0 });
    let cases = [
        (
            "a block changes its kind",
            vec![text(0, "a"), start(0, "echo")],
        ),
        (
            "words in a tool's block",
            vec![start(0, "echo"), text(0, "a")],
        ),
        ("input without a start", vec![input(0, "{}")]),
        ("an end without a start", vec![end()]),
        (
            "input after the end",
            vec![start(0, "echo"), end(), input(0, "{}")],
        ),
        ("two ends", vec![start(0, "echo"), end(), end()]),
        ("a wild block number", vec![text(1024, "a")]),
        ("a tool without a name", vec![start(0, "")]),
        (
            "more than a message may hold",
            vec![text(0, "12345"), text(0, "67890"), text(0, "!")],
        ),
        (
            "a stop that is the house's own",
            vec![stop(StopReason::Cancelled)],
        ),
        (
            "a cancel that nobody asked for",
            vec![Err(LlmErrorClass::Cancelled.into())],
        ),
    ];
    for (what, mut deltas) in cases {
        deltas.push(stop(StopReason::EndTurn));
        let mut harness = says(deltas);
        harness.options.message_bytes_max = 10;
        let recorder = Arc::clone(&harness.recorder);
        assert_eq!(
            harness.run().await,
            failed(ErrorCode::ModelUnavailable),
            "{what}"
        );
        let last = recorder.lines().pop().expect("a line");
        assert!(
            last.contains("llm.call_failed") && last.contains(r#""error_class":"provider""#),
            "{what}: {last}"
        );
    }
}

#[tokio::test]
async fn open_tool_use_is_ended_and_not_run() {
    let harness = TurnHarness::of(|request| {
        let deltas = if request.call == 1 {
            vec![
                start(0, "echo"),
                input(0, r#"{"a":1}"#),
                stop(StopReason::ToolUse),
            ]
        } else {
            vec![text(0, ""), text(0, "ok"), stop(StopReason::EndTurn)]
        };
        iter(deltas).boxed()
    });
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("echo", |call| async move { Ok(call.input) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let lines = recorder.lines();
    assert!(
        lines[5].ends_with(r#""tool_use_id":"tu_03","final_input":{"a":1}}"#),
        "{}",
        lines[5]
    );
    let types = recorder.types();
    assert!(
        types.contains(&"tool.failed".to_owned()),
        "its input was cut: {types:?}"
    );
    assert!(!types.contains(&"tool.completed".to_owned()), "{types:?}");
    let deltas = recorder
        .types()
        .iter()
        .filter(|t| *t == "text.delta")
        .count();
    assert_eq!(deltas, 1, "empty words are not told");
}

#[tokio::test]
async fn unreadable_history_fails_the_turn_before_a_call() {
    let mut harness = TurnHarness::script("- steps: [{text: hi}]");
    harness.past = FixedHistory(Err(HistoryError));
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await, failed(ErrorCode::InternalError));
    assert_eq!(recorder.types(), ["route.decided"]);
}
