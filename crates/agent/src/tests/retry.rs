//! Retries of model calls: only before the first output, each attempt with events of its own, and never
//! beyond the turn's timeout.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use turnwire_event::code::{ErrorCode, LlmErrorClass, TurnStatus};
use turnwire_event::port::TurnOutcome;
use turnwire_event::{CallId, StopReason, TokenUsage, Ulid};
use turnwire_model::{Delta, ModelError};

use super::pack_harness::PackHarness;
use super::recording_emitter::RecordingEmitter;
use super::turn_harness::TurnHarness;
use crate::model_call::retry_delay;
use crate::options::RetryOptions;

fn failed(code: ErrorCode) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status: TurnStatus::Failed,
        error: Some(code.into()),
    }
}

/// A script that fails twice, then replies.
const THIRD: &str = "
- {when: {attempt: 1}, steps: [{error: rate_limited, retry: true}]}
- {when: {attempt: 2}, steps: [{error: transport, retry: true}]}
- steps: [{text: Hello.}]
";

// R-05
#[tokio::test(start_paused = true)]
async fn every_attempt_is_a_call_until_one_replies() {
    let harness = TurnHarness::script(THIRD);
    let recorder = Arc::clone(&harness.recorder);
    let provider = Arc::clone(&harness.provider);
    let started = Instant::now();
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        recorder.lines()[1..7],
        [
            r#"orchestrator llm.call_started {"call_id":"call_01","model":"scripted:default","purpose":"orchestrate","attempt":1,"first":false}"#,
            r#"orchestrator llm.call_failed {"call_id":"call_01","message_id":null,"content_sha256":null,"error_class":"rate_limited"}"#,
            r#"orchestrator llm.call_started {"call_id":"call_03","model":"scripted:default","purpose":"orchestrate","attempt":2,"first":false}"#,
            r#"orchestrator llm.call_failed {"call_id":"call_03","message_id":null,"content_sha256":null,"error_class":"transport"}"#,
            r#"orchestrator llm.call_started {"call_id":"call_05","model":"scripted:default","purpose":"orchestrate","attempt":3,"first":false}"#,
            r#"orchestrator message.start {"message_id":"06","role":"assistant","model":"scripted:default"}"#,
        ]
    );
    let tries: Vec<_> = provider
        .requests
        .lock()
        .iter()
        .map(|request| (request.call, request.attempt))
        .collect();
    assert_eq!(tries, [(1, 1), (1, 2), (1, 3)]);
    // The dice are known where names are counted; timers tick in milliseconds.
    let jitter = |call| retry_delay::jitter(CallId(Ulid(call)));
    let waits =
        Duration::from_millis(500).mul_f64(jitter(1)) + Duration::from_secs(1).mul_f64(jitter(3));
    let spent = started.elapsed();
    let ticks = Duration::from_millis(4);
    assert!(
        (waits..waits + ticks).contains(&spent),
        "{spent:?} {waits:?}"
    );
}

// S1-099
#[tokio::test(start_paused = true)]
async fn busy_provider_is_called_attempts_times() {
    let mut harness = TurnHarness::script("- steps: [{error: rate_limited, retry: true}]");
    harness.options.retries.attempts = 2;
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await, failed(ErrorCode::RateLimitError));
    assert_eq!(
        recorder.types()[1..],
        [
            "llm.call_started",
            "llm.call_failed",
            "llm.call_started",
            "llm.call_failed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn every_call_starts_at_attempt_one() {
    let harness = TurnHarness::script(
        "- {when: {attempt: 1}, steps: [{error: timeout, retry: true}]}\n\
         - steps: [{tool: {name: look}}, {text: done}]\n",
    );
    let provider = Arc::clone(&harness.provider);
    let harness = harness.tool("look", |_| async { Ok(json!(1)) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let requests = provider.requests.lock();
    let tries: Vec<_> = requests.iter().map(|r| (r.call, r.attempt)).collect();
    assert_eq!(tries, [(1, 1), (1, 2), (2, 1), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn permanent_error_is_not_retried() {
    for (step, code) in [
        ("{error: rate_limited}", ErrorCode::RateLimitError),
        (
            "{error: provider, retry: false}",
            ErrorCode::ModelUnavailable,
        ),
        // A call that takes longer to pass than anyone would wait for.
        (
            "{error: rate_limited, retry_after_ms: 30001}",
            ErrorCode::RateLimitError,
        ),
    ] {
        let harness = TurnHarness::script(&format!("- steps: [{step}]"));
        let provider = Arc::clone(&harness.provider);
        let started = Instant::now();
        assert_eq!(harness.run().await, failed(code), "{step}");
        assert_eq!(provider.requests.lock().len(), 1, "{step}");
        assert_eq!(started.elapsed(), Duration::ZERO, "{step}");
    }
}

fn passing() -> Result<Delta, ModelError> {
    Err(ModelError::transient(LlmErrorClass::Transport))
}

fn tool_start() -> Delta {
    Delta::ToolStart {
        block: 0,
        name: "look".into(),
        provider_id: None,
    }
}

fn thinking(text: &str, signature: Option<&str>) -> Delta {
    Delta::Thinking {
        block: 0,
        text: text.into(),
        signature: signature.map(Into::into),
    }
}

fn text(text: &str) -> Delta {
    Delta::Text {
        block: 0,
        text: text.into(),
    }
}

// D-45
#[tokio::test(start_paused = true)]
async fn call_with_output_is_not_retried() {
    for first in [
        text("a"),
        thinking("a", None),
        thinking("", Some("s")),
        tool_start(),
    ] {
        let delta = first.clone();
        let harness = TurnHarness::of(move |_| iter([Ok(delta.clone()), passing()]).boxed());
        let provider = Arc::clone(&harness.provider);
        let recorder = Arc::clone(&harness.recorder);
        let ended = harness.run().await;
        assert_eq!(ended, failed(ErrorCode::ModelUnavailable), "{first:?}");
        assert_eq!(provider.requests.lock().len(), 1, "{first:?}");
        let types = recorder.types();
        let tail = ["message.complete", "llm.call_failed"];
        assert_eq!(types[types.len() - 2..], tail, "{first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn provider_data_alone_is_no_output() {
    let harness = TurnHarness::of(|request| {
        let started = Delta::Started {
            response_id: format!("resp_{}", request.attempt),
        };
        let keep = Delta::ProviderData {
            block: 0,
            data: json!("sealed"),
        };
        let stop = Delta::Stop {
            reason: StopReason::EndTurn,
            usage: TokenUsage::default(),
        };
        let deltas = if request.attempt == 1 {
            vec![Ok(text("")), passing()]
        } else {
            vec![Ok(text("hi")), Ok(stop)]
        };
        iter([Ok(started), Ok(keep)]).chain(iter(deltas)).boxed()
    });
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        recorder.types()[1..],
        [
            "llm.call_started",
            "llm.call_failed",
            "llm.call_started",
            "message.start",
            "text.delta",
            "message.complete",
            "llm.call_completed",
        ]
    );
    let failed = recorder.emissions().swap_remove(2);
    assert_eq!(failed.provider_response_id.as_deref(), Some("resp_1"));
}

#[tokio::test(start_paused = true)]
async fn retry_after_of_a_provider_is_respected() {
    let harness = TurnHarness::script(
        "- {when: {attempt: 1}, steps: [{error: rate_limited, retry_after_ms: 20000}]}\n\
         - steps: [{text: Hello.}]\n",
    );
    let started = Instant::now();
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let spent = started.elapsed().as_millis();
    assert!((20_000..20_502).contains(&spent), "{spent}");
}

#[tokio::test(start_paused = true)]
async fn delay_beyond_the_turn_timeout_is_not_started() {
    let script = "- {when: {attempt: 1}, steps: [{error: rate_limited, retry_after_ms: 9000}]}\n\
                  - steps: [{text: Hello.}]\n";
    for (limit_ms, tries) in [(9_000, 1), (9_600, 2)] {
        let mut harness = PackHarness::new(script);
        harness.input.turn_timeout = Duration::from_millis(limit_ms);
        let ended = harness.run().await;
        assert_eq!(
            harness.requests_of("orchestrator").len(),
            tries,
            "{limit_ms}"
        );
        assert_eq!(ended.status == TurnStatus::Ok, tries == 2, "{limit_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn sub_agent_calls_are_retried_within_its_timeout() {
    const TURN: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop, attempt: 1}, steps: [{error: rate_limited, retry_after_ms: AFTER}]}
- {when: {agent: shop}, steps: [{text: Found.}]}
";
    let harness = PackHarness::new(&TURN.replace("AFTER", "1000"));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        harness.story()[4..10],
        [
            "subagent:shop subagent.started",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_failed rate_limited",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_completed",
            "subagent:shop subagent.completed success",
        ]
    );
    // It has five seconds; the turn has ten minutes.
    let harness = PackHarness::new(&TURN.replace("AFTER", "5000"));
    assert_eq!(harness.run().await.status, TurnStatus::Failed);
    assert_eq!(harness.requests_of("shop").len(), 1);
    let expected = "subagent:shop subagent.failed model".to_owned();
    assert!(
        harness.story().contains(&expected),
        "{:#?}",
        harness.story()
    );
}

#[tokio::test(start_paused = true)]
async fn sub_agent_call_with_output_is_not_retried() {
    let harness = PackHarness::new(
        "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}\n\
         - {when: {agent: orchestrator}, steps: [{text: Sorry.}]}\n\
         - {when: {agent: shop}, steps: [{text: Half}, {error: transport, retry: true}]}\n",
    );
    assert_eq!(harness.run().await.status, TurnStatus::Failed);
    assert_eq!(harness.requests_of("shop").len(), 1);
}

// S3-077
#[tokio::test(start_paused = true)]
async fn turn_dropped_between_attempts_has_nothing_open() {
    let mut harness = TurnHarness::script(THIRD);
    // So long that the first wait is still on when the turn is stopped.
    harness.options.retries = RetryOptions {
        attempts: 3,
        base_delay: Duration::from_secs(1_000),
        max_delay: Duration::from_secs(1_000),
    };
    let recorder = Arc::clone(&harness.recorder);
    let provider = Arc::clone(&harness.provider);
    let turn = timeout(Duration::from_millis(1), harness.run());
    assert!(turn.await.is_err());
    let types = recorder.types();
    assert_eq!(
        types,
        ["route.decided", "llm.call_started", "llm.call_failed"]
    );
    sleep(Duration::from_secs(2_000)).await;
    assert_eq!(recorder.types(), types, "nothing is told after it");
    assert_eq!(provider.requests.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn refused_turn_makes_no_further_attempt() {
    for (room, tries) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)] {
        let harness = TurnHarness::script(THIRD).record(RecordingEmitter::with_room(room));
        let provider = Arc::clone(&harness.provider);
        let ended = harness.run().await;
        assert_eq!(ended, failed(ErrorCode::InternalError), "{room}");
        assert_eq!(provider.requests.lock().len(), tries, "{room}");
    }
}
