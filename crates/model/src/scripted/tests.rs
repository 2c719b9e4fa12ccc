//! The stream as a consumer sees it: every delta in order and at its time, and nothing after a
//! drop.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{Role, StopReason, TokenUsage};

use super::*;
use crate::delta::{Delta, ModelError, RetryHint};
use crate::request::ModelMessage;

fn provider(yaml: &str) -> ScriptedProvider {
    ScriptedProvider::new(ModelScript::parse("s.yaml", yaml).expect("a script"))
}

fn request(user: &str) -> ModelRequest {
    ModelRequest {
        model: "scripted:default".into(),
        agent: "orchestrator".into(),
        call: 1,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(ModelMessage::new(
            Role::User,
            vec![ContentBlock::text(user)],
        ))],
        tools: [].into(),
    }
}

fn text(block: u32, text: &str) -> Delta {
    Delta::Text {
        block,
        text: text.into(),
    }
}

fn thinking(block: u32, text: &str, signature: Option<&str>) -> Delta {
    Delta::Thinking {
        block,
        text: text.into(),
        signature: signature.map(Into::into),
    }
}

fn input(block: u32, fragment: &str) -> Delta {
    Delta::ToolInput {
        block,
        fragment: fragment.into(),
    }
}

fn start(block: u32, name: &str) -> Delta {
    Delta::ToolStart {
        block,
        name: name.into(),
        provider_id: None,
    }
}

#[tokio::test]
async fn error_step_sets_the_retry_advice() {
    let after = RetryHint::After(Duration::from_millis(1500));
    for (step, again) in [
        ("{error: timeout}", RetryHint::Never),
        ("{error: timeout, retry: false}", RetryHint::Never),
        ("{error: timeout, retry: true}", RetryHint::Backoff),
        ("{error: timeout, retry_after_ms: 1500}", after),
        ("{error: timeout, retry: true, retry_after_ms: 1500}", after),
    ] {
        let error = ModelError::new(LlmErrorClass::Timeout, again);
        let items = play(&format!("- steps: [{step}]")).await;
        assert_eq!(items, [Err(error)], "{step}");
    }
}

#[tokio::test]
async fn condition_can_require_an_attempt() {
    let model = provider(
        "- {when: {attempt: 1}, steps: [{error: transport, retry: true}]}\n\
         - steps: [{text: second, when: {attempt: 2}}, {text: third, when: {attempt: 3}}]\n",
    );
    let first_item = async |attempt| {
        let attempt_request = ModelRequest {
            attempt,
            ..request("hi")
        };
        let items: Vec<_> = model.stream(attempt_request).collect().await;
        items[0].clone()
    };
    let error = ModelError::transient(LlmErrorClass::Transport);
    assert_eq!(first_item(1).await, Err(error));
    assert_eq!(first_item(2).await, Ok(text(0, "second")));
    assert_eq!(first_item(3).await, Ok(text(0, "third")));
}

async fn play(yaml: &str) -> Vec<Result<Delta, ModelError>> {
    provider(yaml).stream(request("1234567")).collect().await
}

// S3-055
#[tokio::test]
async fn all_kinds_of_blocks_are_streamed_with_signature_last() {
    let items = play(
        "- steps:\n\
         \x20 - {thinking: a b, signature: s}\n\
         \x20 - {thinking: c}\n\
         \x20 - {text: one two}\n\
         \x20 - {text: ' three', chunk: 4}\n\
         \x20 - tool: {name: echo, input: {text: hi}, fragments: 2}\n\
         \x20 - tool: {name: clock}\n\
         \x20 - tool: {name: raw, input: '{\"a'}\n",
    )
    .await;
    let expected = [
        thinking(0, "a", None),
        thinking(0, " b", Some("s")),
        thinking(1, "c", None),
        text(2, "one"),
        text(2, " two"),
        text(2, " thr"),
        text(2, "ee"),
        start(3, "echo"),
        input(3, r#"{"text"#),
        input(3, r#"":"hi"}"#),
        Delta::ToolEnd { block: 3 },
        start(4, "clock"),
        input(4, "{}"),
        Delta::ToolEnd { block: 4 },
        start(5, "raw"),
        input(5, "{\"a"),
        Delta::ToolEnd { block: 5 },
        Delta::Stop {
            reason: StopReason::ToolUse,
            usage: TokenUsage {
                input_tokens: 2,
                output_tokens: 9,
                total_tokens: 11,
                reasoning_tokens: 1,
                cached_tokens: 0,
                cost_usd: 0.0,
                estimated: false,
            },
        },
    ];
    assert_eq!(items, expected.map(Ok));
}

#[tokio::test]
async fn stop_step_sets_reason_and_usage() {
    let items = play(
        "- steps: [{stop: max_tokens, usage: {input_tokens: 3, output_tokens: 4, cost_usd: 0.5}}]",
    )
    .await;
    let stop = Delta::Stop {
        reason: StopReason::MaxTokens,
        usage: TokenUsage {
            input_tokens: 3,
            output_tokens: 4,
            total_tokens: 7,
            cost_usd: 0.5,
            ..TokenUsage::default()
        },
    };
    assert_eq!(items, [Ok(stop)]);
}

#[tokio::test]
async fn error_step_ends_the_stream_without_stop() {
    let items = play("- steps: [{text: a}, {error: rate_limited}, {text: b}]").await;
    let error = ModelError::from(LlmErrorClass::RateLimited);
    assert_eq!(items, [Ok(text(0, "a")), Err(error)]);
}

#[tokio::test]
async fn empty_thinking_still_has_its_signature() {
    let items = play("- steps: [{thinking: '', signature: s}, {text: '', repeat: 9}]").await;
    assert_eq!(items[..1], [Ok(thinking(0, "", Some("s")))]);
    assert_eq!(items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn deltas_are_delivered_at_their_times() {
    let started = Instant::now();
    let mut stream = provider(
        "- steps: [{text: a b, delay_ms: 10}, {pause_ms: 500}, {text: c}, {text: ' d', delay_ms: 1, repeat: 100}]",
    )
    .stream(request("x"));
    let mut times = Vec::new();
    while let Some(item) = stream.next().await {
        times.push((item.expect("no error"), started.elapsed().as_millis()));
    }
    assert_eq!(
        times[..4],
        [
            (text(0, "a"), 10),
            (text(0, " b"), 20),
            (text(0, "c"), 520),
            (text(0, " d"), 521),
        ]
    );
    let (stop, last) = times.pop().expect("a stop");
    assert!(matches!(stop, Delta::Stop { .. }));
    assert_eq!((times.len(), last), (103, 620));
}

#[tokio::test(start_paused = true)]
async fn slow_consumer_catches_up_only_a_little() {
    let mut stream =
        provider("- steps: [{text: a, delay_ms: 10, repeat: 1000}]").stream(request("x"));
    assert_eq!(stream.next().await, Some(Ok(text(0, "a"))));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let started = Instant::now();
    for _ in 0..20 {
        assert_eq!(stream.next().await, Some(Ok(text(0, "a"))));
    }
    assert_eq!(started.elapsed().as_millis(), 100);
}

#[tokio::test(start_paused = true)]
async fn stall_lasts_until_the_stream_is_dropped() {
    let mut stream =
        provider("- steps: [{text: a}, {stall: true}, {text: b}]").stream(request("x"));
    assert_eq!(stream.next().await, Some(Ok(text(0, "a"))));
    let hour = Duration::from_secs(3600);
    let result = tokio::time::timeout(hour, stream.next()).await;
    assert!(result.is_err(), "{result:?}");
}

#[tokio::test]
async fn stream_without_pauses_yields_to_other_tasks() {
    let mut stream = provider("- steps: [{text: a, repeat: 100000}]").stream(request("x"));
    let counter_reads = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = Arc::clone(&counter_reads);
    let other = tokio::spawn(async move {
        loop {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut deltas = 0;
    while stream.next().await.is_some() {
        deltas += 1;
    }
    other.abort();
    assert_eq!(deltas, 100_001);
    assert!(counter_reads.load(std::sync::atomic::Ordering::Relaxed) >= 100_000 / 64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_chunk_size_streams_the_same_text(text in "\\PC{0,40}", chunk in 1u32..30, repeat in 1u32..4) {
        let step = serde_json::json!([{"steps": [{"text": text, "chunk": chunk, "repeat": repeat}]}]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let items = runtime.block_on(play(&step.to_string()));
        let streamed: String = items.into_iter().filter_map(|delta| match delta {
            Ok(Delta::Text { text, .. }) => Some(text),
            _ => None,
        }).collect();
        prop_assert_eq!(streamed, text.repeat(repeat as usize));
    }
}

#[tokio::test(start_paused = true)]
async fn pace_slows_calls_down_unless_it_is_switched_off() {
    let script = "- pace: {first_ms: 600, word_ms: 40}\n\
                  - {when: {user: tool}, steps: [{tool: {name: echo, input: {a: b}}}]}\n\
                  - {when: {user: slow}, steps: [{text: a b, delay_ms: 100}]}\n\
                  - steps: [{thinking: x}, {text: a b c}]\n";
    let played = |provider: ScriptedProvider, user: &'static str| async move {
        let begun = tokio::time::Instant::now();
        let deltas: Vec<_> = provider.stream(request(user)).collect().await;
        assert!(deltas.iter().all(Result::is_ok), "{deltas:?}");
        begun.elapsed().as_millis()
    };
    assert_eq!(
        played(provider(script).paced(100), "hi").await,
        600 + 4 * 40
    );
    assert_eq!(played(provider(script).paced(50), "hi").await, 300 + 4 * 20);
    assert_eq!(played(provider(script).paced(0), "hi").await, 0);
    assert_eq!(played(provider(script), "hi").await, 0);
    // The script's own delay counts if it is longer; tools have none.
    assert_eq!(
        played(provider(script).paced(100), "slow").await,
        600 + 2 * 100
    );
    assert_eq!(played(provider(script), "slow").await, 200);
    assert_eq!(played(provider(script).paced(100), "tool").await, 600);
}
