//! A request that a service has is not cut: neither by a tool that is dropped nor by one that
//! waits no longer. Nobody sees its result, it counts while it lives, and it does not live long.

use std::sync::atomic::Ordering;

use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::tool::Tool as _;

const SECOND: Duration = Duration::from_secs(1);

fn live(logs: &LogCapture) -> Vec<String> {
    logs.metrics("engine_tasks_live")
}

// S1-110, S1-111
#[tokio::test(start_paused = true)]
async fn dropped_call_finishes_and_its_result_is_dropped() {
    let logs = LogCapture::start();
    let bench = Bench::new([Step::late(2 * SECOND, 200, envelope(json!({})))]);
    let call = bench.call(json!({}));
    let context = Arc::clone(&call.context);
    let cut = timeout(SECOND / 2, bench.tool.run(call)).await;
    assert!(cut.is_err(), "the tool is dropped while it waits");
    assert_eq!(live(&logs), ["engine_tasks_live 1"]);
    assert_eq!(bench.played.answered.load(Ordering::Relaxed), 0);
    sleep(2 * SECOND).await;
    assert_eq!(bench.played.answered.load(Ordering::Relaxed), 1);
    assert_eq!(live(&logs), ["engine_tasks_live 0"]);
    assert!(context.items.is_empty());
    assert_eq!(bench.asked().len(), 1);
    assert!(logs.metrics("stream_ccs_error_total").is_empty());
}

// S2-051
#[tokio::test(start_paused = true)]
async fn mismatch_of_a_dropped_call_is_counted() {
    let logs = LogCapture::start();
    let foreign = envelope(json!({"principal": "user-99"}));
    let bench = Bench::new([Step::late(2 * SECOND, 200, foreign)]);
    assert!(timeout(SECOND, bench.run(json!({}))).await.is_err());
    sleep(2 * SECOND).await;
    let name = "ps6_envelope_principal_mismatch_total";
    let one = [format!("{name}{{consumer=\"consumer-agent\"}} 1")];
    assert_eq!(logs.metrics(name), one);
}

// D-31
#[tokio::test(start_paused = true)]
async fn silent_service_times_out_after_ten_seconds() {
    let logs = LogCapture::start();
    let bench = Bench::new([Step::Silence]);
    let begun = Instant::now();
    assert_eq!(
        bench.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamTimeout
        ))
    );
    assert_eq!(begun.elapsed(), 10 * SECOND);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(live(&logs), ["engine_tasks_live 0"]);
}

#[tokio::test(start_paused = true)]
async fn timeout_of_a_tool_may_be_shorter_than_of_its_service() {
    let logs = LogCapture::start();
    let def = ToolDef {
        timeout_ms: Some(1_500),
        ..bench::tool()
    };
    let bench = Bench::with([Step::late(3 * SECOND, 200, envelope(json!({})))], &def);
    assert_eq!(bench.tool.timeout(), Some(Duration::from_millis(2_500)));
    let begun = Instant::now();
    assert_eq!(
        bench.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamTimeout
        ))
    );
    assert_eq!(begun.elapsed(), Duration::from_millis(1_500));
    assert_eq!(live(&logs), ["engine_tasks_live 1"]);
    sleep(2 * SECOND).await;
    assert_eq!(bench.played.answered.load(Ordering::Relaxed), 1);
    assert_eq!(live(&logs), ["engine_tasks_live 0"]);
    assert_eq!(logs.metrics("stream_ccs_error_total").len(), 1);
}

// S1-112
#[tokio::test]
async fn panicked_call_is_a_failure_and_leaves_the_gauge() {
    let logs = LogCapture::start();
    let bench = Bench::new([Step::Panic]);
    assert_eq!(
        bench.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamUnavailable
        ))
    );
    assert_eq!(live(&logs), ["engine_tasks_live 0"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_are_limited_and_others_wait_unsent() {
    let steps = (0..257).map(|_| Step::late(4 * SECOND, 200, envelope(json!({}))));
    let bench = Arc::new(Bench::new(steps));
    let calls: Vec<_> = (0..257)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.run(json!({})).await })
        })
        .collect();
    sleep(SECOND).await;
    assert_eq!(bench.asked().len(), 256);
    sleep(4 * SECOND).await;
    assert_eq!(bench.asked().len(), 257, "sent when there is room");
    for call in calls {
        assert_eq!(call.await.expect("it ran"), Ok(offers()));
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_future_is_polled() {
    let bench = Bench::new([]);
    drop(bench.run(json!({})));
    tokio::task::yield_now().await;
    assert!(bench.asked().is_empty());
}
