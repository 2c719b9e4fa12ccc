//! A request that a service has is not cut: neither by a tool that is dropped nor by one that
//! waits no longer. Nobody sees its result, it counts while it lives, and it does not live long.

use std::sync::atomic::Ordering;

use tokio::time::{Instant, sleep, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn live(ears: &Ears) -> Vec<String> {
    ears.counted("engine_tasks_live")
}

#[tokio::test(start_paused = true)]
async fn s1_110_s1_111_a_dropped_call_is_finished_by_itself_and_its_result_thrown_away() {
    let ears = Ears::open();
    let bench = Bench::new([Step::late(2 * SECOND, 200, envelope(json!({})))]);
    let call = bench.call(json!({}));
    let scene = Arc::clone(&call.scene);
    let cut = timeout(SECOND / 2, bench.tool.run(call)).await;
    assert!(cut.is_err(), "the tool is dropped while it waits");
    assert_eq!(live(&ears), ["engine_tasks_live 1"]);
    assert_eq!(bench.played.answered.load(Ordering::Relaxed), 0);
    sleep(2 * SECOND).await;
    assert_eq!(bench.played.answered.load(Ordering::Relaxed), 1);
    assert_eq!(live(&ears), ["engine_tasks_live 0"]);
    assert!(scene.shelf.is_empty());
    assert_eq!(bench.asked().len(), 1);
    assert!(ears.counted("stream_ccs_error_total").is_empty());
}

#[tokio::test(start_paused = true)]
async fn s2_051_a_mismatch_counts_also_when_nobody_waits() {
    let ears = Ears::open();
    let foreign = envelope(json!({"principal": "user-99"}));
    let bench = Bench::new([Step::late(2 * SECOND, 200, foreign)]);
    assert!(timeout(SECOND, bench.run(json!({}))).await.is_err());
    sleep(2 * SECOND).await;
    let name = "ps6_envelope_principal_mismatch_total";
    let one = [format!("{name}{{consumer=\"consumer-agent\"}} 1")];
    assert_eq!(ears.counted(name), one);
}

#[tokio::test(start_paused = true)]
async fn d_31_a_silent_service_is_a_timeout_after_ten_seconds_and_leaves_nothing_behind() {
    let ears = Ears::open();
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
    assert_eq!(live(&ears), ["engine_tasks_live 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_wait_less_than_its_service_may_take() {
    let ears = Ears::open();
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
    assert_eq!(live(&ears), ["engine_tasks_live 1"]);
    sleep(2 * SECOND).await;
    assert_eq!(bench.played.answered.load(Ordering::Relaxed), 1);
    assert_eq!(live(&ears), ["engine_tasks_live 0"]);
    assert_eq!(ears.counted("stream_ccs_error_total").len(), 1);
}

#[tokio::test]
async fn s1_112_a_call_that_breaks_is_a_failure_and_counts_no_longer() {
    let ears = Ears::open();
    let bench = Bench::new([Step::Panic]);
    assert_eq!(
        bench.run(json!({})).await,
        Err(unavailable(
            ToolErrorClass::EnvelopeError,
            Reason::UpstreamUnavailable
        ))
    );
    assert_eq!(live(&ears), ["engine_tasks_live 0"]);
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_are_bounded_and_one_too_many_waits_unsent() {
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
