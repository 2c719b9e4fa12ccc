//! A request that a service has received is not cut off, neither by a dropped tool nor by one that
//! timed out. Its result is dropped, its task counts in the gauge, and it ends soon.

use std::sync::atomic::Ordering;

use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::tool::Tool as _;

const SECOND: Duration = Duration::from_secs(1);

fn live(logs: &LogCapture) -> Vec<String> {
    logs.metrics("turnwire_engine_tasks_live")
}

// S1-110, S1-111
#[tokio::test(start_paused = true)]
async fn dropped_call_finishes_and_its_result_is_dropped() {
    let logs = LogCapture::start();
    let fixture = ToolFixture::new([Step::late(2 * SECOND, 200, envelope(json!({})))]);
    let call = fixture.call(json!({}));
    let context = Arc::clone(&call.context);
    let cut = timeout(SECOND / 2, fixture.tool.run(call)).await;
    assert!(cut.is_err(), "the tool is dropped while it waits");
    assert_eq!(live(&logs), ["turnwire_engine_tasks_live 1"]);
    assert_eq!(fixture.played.answered.load(Ordering::Relaxed), 0);
    sleep(2 * SECOND).await;
    assert_eq!(fixture.played.answered.load(Ordering::Relaxed), 1);
    assert_eq!(live(&logs), ["turnwire_engine_tasks_live 0"]);
    assert_eq!(context.items.len(), 0);
    assert_eq!(fixture.requests().len(), 1);
    assert!(logs.metrics("turnwire_stream_ccs_error_total").is_empty());
}

// S2-051
#[tokio::test(start_paused = true)]
async fn mismatch_of_a_dropped_call_is_counted() {
    let logs = LogCapture::start();
    let foreign = envelope(json!({"principal": "user-99"}));
    let fixture = ToolFixture::new([Step::late(2 * SECOND, 200, foreign)]);
    assert!(timeout(SECOND, fixture.run(json!({}))).await.is_err());
    sleep(2 * SECOND).await;
    let name = "turnwire_ps6_envelope_principal_mismatch_total";
    let one = [format!("{name}{{consumer=\"consumer-agent\"}} 1")];
    assert_eq!(logs.metrics(name), one);
}

// D-31
#[tokio::test(start_paused = true)]
async fn silent_service_times_out_after_ten_seconds() {
    let logs = LogCapture::start();
    let fixture = ToolFixture::new([Step::Silence]);
    let begun = Instant::now();
    assert_eq!(
        fixture.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamTimeout
        ))
    );
    assert_eq!(begun.elapsed(), 10 * SECOND);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(live(&logs), ["turnwire_engine_tasks_live 0"]);
}

#[tokio::test(start_paused = true)]
async fn timeout_of_a_tool_may_be_shorter_than_of_its_service() {
    let logs = LogCapture::start();
    let def = ToolDef {
        timeout_ms: Some(1_500),
        ..fake_service::tool()
    };
    let fixture = ToolFixture::with([Step::late(3 * SECOND, 200, envelope(json!({})))], &def);
    assert_eq!(fixture.tool.timeout(), Some(Duration::from_millis(2_500)));
    let begun = Instant::now();
    assert_eq!(
        fixture.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamTimeout
        ))
    );
    assert_eq!(begun.elapsed(), Duration::from_millis(1_500));
    assert_eq!(live(&logs), ["turnwire_engine_tasks_live 1"]);
    sleep(2 * SECOND).await;
    assert_eq!(fixture.played.answered.load(Ordering::Relaxed), 1);
    assert_eq!(live(&logs), ["turnwire_engine_tasks_live 0"]);
    assert_eq!(logs.metrics("turnwire_stream_ccs_error_total").len(), 1);
}

// S1-112
#[tokio::test]
async fn panicked_call_is_a_failure_and_leaves_the_gauge() {
    let logs = LogCapture::start();
    let fixture = ToolFixture::new([Step::Panic]);
    assert_eq!(
        fixture.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamUnavailable
        ))
    );
    assert_eq!(live(&logs), ["turnwire_engine_tasks_live 0"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_are_limited_and_others_wait_unsent() {
    let steps = (0..65).map(|_| Step::late(4 * SECOND, 200, envelope(json!({}))));
    let fixture = Arc::new(ToolFixture::new(steps));
    let calls: Vec<_> = (0..65)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move { fixture.run(json!({})).await })
        })
        .collect();
    sleep(SECOND).await;
    assert_eq!(fixture.requests().len(), 64, "the share of one owner");
    sleep(4 * SECOND).await;
    assert_eq!(fixture.requests().len(), 65, "sent when there is room");
    for call in calls {
        assert_eq!(call.await.expect("it ran"), Ok(offers()));
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_future_is_polled() {
    let fixture = ToolFixture::new([]);
    drop(fixture.run(json!({})));
    tokio::task::yield_now().await;
    assert!(fixture.requests().is_empty());
}
