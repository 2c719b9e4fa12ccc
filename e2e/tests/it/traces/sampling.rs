//! Which turns are recorded, and what unsampled ones tell the services that they call.

use turnwire_e2e::engine::{EngineFixture, asks, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::collector::Collector;

use super::spans::{CALLER, TRACE_ID, engine, has};

/// Asks a question with this flag of a caller, or without a trace; returns the flag that the data
/// service got.
async fn flag_sent(engine: &EngineFixture, caller: Option<&str>) -> String {
    let mut question = ChatSubmit::new("offers");
    if let Some(flag) = caller {
        let parent = format!("00-{TRACE_ID}-{CALLER}-{flag}");
        question = question.header("traceparent", &parent);
    }
    engine.submit(question).await;
    let calls = engine.ccs.take();
    let mut lines = calls[0].head.lines();
    let line = lines.find(|line| line.starts_with("traceparent"));
    line.and_then(|line| line.rsplit('-').next())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn ratio_decides_for_own_traces_and_the_caller_for_others() {
    let script = || working(asks(&["shop"], "Done."));
    for (ratio, own) in [("0", "00"), ("1", "01")] {
        let collector = Collector::start().await;
        let variables = [
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", ratio),
        ];
        let engine = engine(script(), &collector, &variables).await;
        assert_eq!(flag_sent(&engine, None).await, own);
        assert_eq!(flag_sent(&engine, Some("00")).await, "00");
        // The last one is recorded in any case: what came before it has been decided by then.
        assert_eq!(flag_sent(&engine, Some("01")).await, "01");
        let spans = collector
            .spans_until("the caller's trace", |spans| {
                spans
                    .iter()
                    .any(|s| s.trace_id == TRACE_ID && s.name == "invoke_agent orchestrator")
            })
            .await;
        let own_turns = spans
            .iter()
            .filter(|span| span.name == "invoke_agent orchestrator" && span.trace_id != TRACE_ID);
        assert_eq!(own_turns.count(), usize::from(ratio == "1"));
        let of_caller = spans
            .iter()
            .filter(|span| span.name == "invoke_agent orchestrator" && span.trace_id == TRACE_ID);
        assert_eq!(of_caller.count(), 1, "the unsampled one has no span");
    }
}

#[tokio::test]
async fn disabled_export_sends_nothing() {
    let collector = Collector::start().await;
    for (name, value) in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ] {
        let engine = engine(
            working(asks(&["shop"], "Done.")),
            &collector,
            &[(name, value)],
        )
        .await;
        assert_eq!(
            flag_sent(&engine, Some("01")).await,
            "01",
            "passed on all the same"
        );
        let log = engine.server.stderr();
        assert_eq!(
            log.contains("OTEL_EXPORTER_OTLP_PROTOCOL must be"),
            value == "grpc",
            "{log}"
        );
    }
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(collector.heads(), Vec::<String>::new());
    assert!(!has(&collector.spans(), "commit"));
}
