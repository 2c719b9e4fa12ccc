//! A collector that is away, slow, busy or picky: turns go on, and every lost span is counted.

use std::time::{Duration, Instant};

use turnwire_e2e::chat::{MetricsSnapshot, until};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::collector::{Collector, CollectorAnswer};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

const DROPPED: &str = "turnwire_otel_dropped_total";
const EXPORTED: &str = "turnwire_otel_exported_total";

async fn fixture(variables: Vec<(String, String)>, more: &[(&str, &str)]) -> ServerFixture {
    let script = ModelScript::new().on("", [ScriptStep::text("Hello.")]);
    let mut options = ServerOptions::script(script);
    options.env = variables;
    let more = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    options.env.extend(more);
    ServerFixture::new(options).await
}

/// The number of dropped spans with this reason.
async fn dropped(fixture: &ServerFixture, reason: &str) -> u64 {
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    metrics
        .by(DROPPED, "reason")
        .get(reason)
        .copied()
        .unwrap_or(0)
}

/// Runs turns, which must not wait for the collector.
async fn turns(fixture: &ServerFixture, count: usize) {
    for _ in 0..count {
        let started = Instant::now();
        fixture.turn("hi").await;
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "the turn waited"
        );
    }
}

// S2-079
#[tokio::test]
async fn spans_for_a_collector_that_is_away_are_dropped_and_counted() {
    let collector = Collector::start().await;
    let variables = collector.variables();
    drop(collector);
    let more = [("OTEL_BSP_EXPORT_TIMEOUT", "300")];
    let fixture = fixture(variables, &more).await;
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    let reasons = metrics
        .series(DROPPED)
        .map(|(labels, value)| (labels["reason"].clone(), value));
    let mut reasons: Vec<(String, f64)> = reasons.collect();
    reasons.sort_by(|one, other| one.0.cmp(&other.0));
    let names = [
        "limit",
        "queue_full",
        "refused",
        "rejected",
        "shutdown",
        "unavailable",
    ];
    assert_eq!(
        reasons,
        names.map(|name| (name.to_owned(), 0.0)),
        "every reason begins at 0"
    );
    turns(&fixture, 3).await;
    until("the loss is counted", || async {
        dropped(&fixture, "unavailable").await >= 9
    })
    .await;
    assert_eq!(MetricsSnapshot::read(&fixture.api).await.sum(EXPORTED), 0.0);
    let log = fixture.server.stderr();
    assert!(log.contains("the collector does not take spans"), "{log}");
    fixture.check_history().await;
}

// S2-079
#[tokio::test]
async fn queue_that_is_full_drops_and_no_turn_waits() {
    let collector = Collector::start().await;
    collector.answer_always(CollectorAnswer::Hang);
    let more = [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "4"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2"),
    ];
    let fixture = fixture(collector.variables(), &more).await;
    turns(&fixture, 5).await;
    until("the loss is counted", || async {
        dropped(&fixture, "queue_full").await >= 5
    })
    .await;
    fixture.check_history().await;
}

#[tokio::test]
async fn busy_collector_gets_the_batch_again_after_its_pause() {
    let collector = Collector::start().await;
    collector.answer_next(CollectorAnswer::Status(503, Some(1)));
    collector.answer_next(CollectorAnswer::Status(429, None));
    let fixture = fixture(collector.variables(), &[]).await;
    let begun = Instant::now();
    turns(&fixture, 1).await;
    let spans = collector
        .spans_until("the turn", |spans| {
            spans
                .iter()
                .any(|span| span.name == "invoke_agent orchestrator")
        })
        .await;
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "Retry-After was honoured"
    );
    let mut ids: Vec<&str> = spans.iter().map(|span| span.span_id.as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "no span twice");
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    assert_eq!(metrics.sum(DROPPED), 0.0);
}

// S2-079
#[tokio::test]
async fn refused_and_rejected_spans_are_counted() {
    let collector = Collector::start().await;
    let key = [(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Bearer%20sk-of-the-collector",
    )];
    let fixture = fixture(collector.variables(), &key).await;
    collector.answer_always(CollectorAnswer::Status(400, None));
    turns(&fixture, 1).await;
    until("a refused batch", || async {
        dropped(&fixture, "refused").await >= 3
    })
    .await;
    collector.answer_always(CollectorAnswer::Partial(1));
    let before = collector.heads().len();
    turns(&fixture, 1).await;
    until("rejected spans", || async {
        dropped(&fixture, "rejected").await >= 1
    })
    .await;
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    assert!(metrics.sum(EXPORTED) >= 1.0 || collector.heads().len() > before);
    let heads = collector.heads();
    assert!(
        heads
            .iter()
            .all(|head| head.contains("authorization: bearer sk-of-the-collector")),
        "{heads:?}"
    );
    let log = fixture.server.stderr();
    assert!(
        log.contains("status 400") && !log.contains("sk-of-the-collector"),
        "{log}"
    );
}

#[tokio::test]
async fn slow_collector_delays_no_end_of_the_process() {
    let collector = Collector::start().await;
    collector.answer_always(CollectorAnswer::Hang);
    let mut fixture = fixture(collector.variables(), &[]).await;
    turns(&fixture, 2).await;
    let begun = Instant::now();
    fixture.server.sigterm();
    assert!(fixture.server.wait(Duration::from_secs(60)).await.success());
    // At most the second after the drain, and the ends of connections.
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn collector_that_is_late_gets_every_span() {
    let collector = Collector::start().await;
    collector.answer_always(CollectorAnswer::Late(Duration::from_millis(300)));
    let fixture = fixture(collector.variables(), &[]).await;
    turns(&fixture, 4).await;
    let is_turn = |name: &str| name == "invoke_agent orchestrator";
    collector
        .spans_until("four turns", |spans| {
            spans.iter().filter(|span| is_turn(&span.name)).count() == 4
        })
        .await;
    assert_eq!(MetricsSnapshot::read(&fixture.api).await.sum(DROPPED), 0.0);
}
