//! A tool in front of a data service: what it sends, what it gives, what it leaves behind.

mod bench;
mod detached;
mod leak;

use serde_json::json;
use turnwire_dial::DialError;
use turnwire_event::code::{Reason, ToolErrorClass};

use super::*;
use crate::checked::TOLD_CHARS_MAX;
use crate::stage::{Ears, Sink, call};

use bench::{Bench, Step, envelope, offers};

fn unavailable(class: ToolErrorClass, reason: Reason) -> ToolFailure {
    ToolFailure {
        class,
        told: "data unavailable".to_owned(),
        fault: Some(Fault {
            enricher_id: "offer_search".to_owned(),
            reason,
        }),
        fatal: false,
    }
}

#[tokio::test]
async fn s2_038_the_payload_is_the_result_and_its_items_go_on_the_shelf() {
    let bench = Bench::new([Step::answer(envelope(json!({})))]);
    let call = bench.call(json!({"query": "oat milk"}));
    let scene = Arc::clone(&call.scene);
    assert_eq!(bench.tool.run(call).await, Ok(offers()));
    let found = scene
        .shelf
        .find("offer_list", &["OFF_2", "OFF_1"])
        .expect("both");
    assert_eq!(*found[0], json!({"id": "OFF_2", "title": "Granola"}));
    assert_eq!(scene.shelf.len(), 2);
    assert!(bench.sink.taken().is_empty(), "a result is no event");
}

#[tokio::test]
async fn s2_039_a_partial_payload_comes_with_a_caveat() {
    let bench = Bench::new([Step::answer(envelope(json!({
        "status": "partial",
        "partial": [{"source": "FIDORA", "critical": false, "reason": "upstream_timeout"}],
    })))]);
    let call = bench.call(json!({}));
    let scene = Arc::clone(&call.scene);
    let given = bench.tool.run(call).await;
    assert_eq!(given, Ok(json!({"data": offers(), "caveat": true})));
    assert_eq!(scene.shelf.len(), 2);
}

#[tokio::test]
async fn s2_047_s2_048_the_principal_is_the_turns_and_nothing_in_the_input_changes_it() {
    let steps = [(); 3].map(|()| Step::answer(envelope(json!({}))));
    let bench = Bench::new(steps);
    for input in [
        json!({"query": "oat milk"}),
        json!({"query": "oat milk", "principal": "user-99"}),
        json!({"principal": {"id": "user-99"}, "query": "oat milk"}),
    ] {
        assert_eq!(bench.run(input).await, Ok(offers()));
    }
    let asked = json!({
        "principal": "user-42",
        "enricher_id": "offer_search",
        "domain_type": "offer_list",
        "version": "1.2.0",
        "params": {"query": "oat milk"},
        "trace": {
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
            "span_id": "b7ad6b7169203331",
        },
    });
    assert_eq!(bench.asked(), [asked.clone(), asked.clone(), asked]);
}

#[tokio::test]
async fn a_turn_without_a_trace_sends_an_empty_one() {
    let bench = Bench::new([Step::answer(envelope(json!({})))]);
    let mut call = bench.call(json!({}));
    let mut scene = crate::stage::scene();
    scene.trace = None;
    call.scene = Arc::new(scene);
    assert!(bench.tool.run(call).await.is_ok());
    assert_eq!(bench.asked()[0]["trace"], json!({}));
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_told_and_nothing_is_sent() {
    let bench = Bench::new([]);
    for (input, told) in [
        (json!({"query": 5}), "/query"),
        (json!({"colour": "red"}), "colour"),
        (json!([]), "object"),
        (json!({"query": "x".repeat(70_000)}), "65536"),
    ] {
        let failure = bench.run(input).await.expect_err("does not fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert_eq!(failure.fault, None);
        assert!(failure.told.contains(told), "{}", failure.told);
        assert!(failure.told.chars().count() <= TOLD_CHARS_MAX);
    }
    assert!(bench.asked().is_empty());
}

#[tokio::test]
async fn s2_040_s1_091_s1_145_a_failure_names_enricher_and_reason_and_is_counted_by_them() {
    let cases = [
        (
            envelope(json!({"status": "error"})),
            Reason::UpstreamUnavailable,
        ),
        (
            envelope(json!({"status": "error", "reason": "upstream_timeout"})),
            Reason::UpstreamTimeout,
        ),
        (
            envelope(json!({"status": "error", "reason": "upstream_partial"})),
            Reason::UpstreamPartial,
        ),
        (
            envelope(json!({"status": "error", "reason": "cosmic_rays"})),
            Reason::UpstreamUnavailable,
        ),
        (
            envelope(json!({"version": "2.0.0"})),
            Reason::UpstreamUnavailable,
        ),
        (
            envelope(json!({"payload": {"items": 5}})),
            Reason::UpstreamUnavailable,
        ),
        (json!("garbage"), Reason::UpstreamUnavailable),
    ];
    let ears = Ears::open();
    let bench = Bench::new(cases.iter().map(|(body, _)| Step::answer(body.clone())));
    for (_, reason) in &cases {
        let call = bench.call(json!({}));
        let scene = Arc::clone(&call.scene);
        let failure = unavailable(ToolErrorClass::EnvelopeError, *reason);
        assert_eq!(bench.tool.run(call).await, Err(failure));
        assert!(scene.shelf.is_empty());
    }
    let labels = |reason: &str| {
        format!(
            "stream_ccs_error_total{{vertical=\"\",sub_agent_id=\"shop\",dm_type=\"\",\
             experiment_arm=\"\",agent_definition_version=\"market@1\",\
             enricher_id=\"offer_search\",reason=\"{reason}\"}}"
        )
    };
    let mut counted = ears.counted("stream_ccs_error_total");
    counted.sort();
    let expected = [
        format!("{} 1", labels("upstream_partial")),
        format!("{} 1", labels("upstream_timeout")),
        format!("{} 5", labels("upstream_unavailable")),
    ];
    assert_eq!(counted, expected);
    let one = |name: &str| {
        [format!(
            "{name}{{enricher_id=\"offer_search\",consumer=\"consumer-agent\"}} 1"
        )]
    };
    let skew = "ps6_envelope_version_mismatch_total";
    assert_eq!(ears.counted(skew), one(skew), "S2-042");
    let unknown = "ps6_envelope_reason_unknown_total";
    assert_eq!(ears.counted(unknown), one(unknown), "D-29");
}

#[tokio::test]
async fn s2_051_s2_052_a_mismatch_is_thrown_away_counted_and_written_down_once() {
    let ears = Ears::open();
    let bench = Bench::new([Step::answer(envelope(json!({"principal": "user-99"})))]);
    let name = "ps6_envelope_principal_mismatch_total";
    let counted = |n: u8| [format!("{name}{{consumer=\"consumer-agent\"}} {n}")];
    assert_eq!(
        ears.counted(name),
        counted(0),
        "there before anything happens"
    );
    let call = bench.call(json!({}));
    let scene = Arc::clone(&call.scene);
    assert_eq!(
        bench.tool.run(call).await,
        Err(unavailable(
            ToolErrorClass::PrincipalMismatch,
            Reason::Unauthorized
        ))
    );
    assert_eq!(ears.counted(name), counted(1));
    assert!(scene.shelf.is_empty());
    assert_eq!(bench.asked().len(), 1, "no second try");
    let heard = ears.heard();
    let lines: Vec<&str> = heard
        .lines()
        .filter(|line| line.contains("security"))
        .collect();
    let [line] = lines.as_slice() else {
        panic!("one line, not {lines:?}");
    };
    assert!(
        line.contains("ERROR") && line.contains("offer_search"),
        "{line}"
    );
    assert!(line.contains(&scene.turn_id.to_string()), "{line}");
    for secret in ["user-99", "OFF_1", "LEAK"] {
        assert!(!heard.contains(secret), "{heard}");
    }
}

#[tokio::test]
async fn s2_043_caching_and_timing_are_fields_of_the_span_and_nothing_else() {
    let ears = Ears::open();
    // What is logged inside the call shows the span with its fields.
    let bench = Bench::new([Step::answer(envelope(json!({"payload": {"items": 5}})))]);
    bench.run(json!({})).await.expect_err("does not fit");
    let heard = ears.heard();
    for field in [
        "ccs.call{",
        "enricher_id=offer_search",
        "domain_type=offer_list",
        "cached=\"false\"",
        "cacheable=\"true\"",
        "ttl=\"60\"",
        "LEAK_CACHE",
        "total_ms=\"12\"",
    ] {
        assert!(heard.contains(field), "{field} in {heard}");
    }
}

#[tokio::test]
async fn s2_049_refusals_of_the_service_are_failures_of_the_envelope() {
    let bench = Bench::new([
        Step::status(400, json!({"error": "missing_principal"})),
        Step::status(403, json!({"error": "principal_mismatch"})),
        Step::status(503, json!({"error": "missing_principal"})),
    ]);
    for reason in [
        Reason::InvalidRequest,
        Reason::Unauthorized,
        Reason::UpstreamUnavailable,
    ] {
        let failure = unavailable(ToolErrorClass::EnvelopeError, reason);
        assert_eq!(bench.run(json!({})).await, Err(failure));
    }
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_no_answer_in_time_a_timeout() {
    let bench = Bench::new([
        Step::Lost(DialError::Unreachable),
        Step::Lost(DialError::TooLarge { max_bytes: 1 }),
        Step::Lost(DialError::Timeout),
    ]);
    for reason in [
        Reason::UpstreamUnavailable,
        Reason::UpstreamUnavailable,
        Reason::UpstreamTimeout,
    ] {
        let failure = unavailable(ToolErrorClass::EnvelopeError, reason);
        assert_eq!(bench.run(json!({})).await, Err(failure));
    }
}

#[tokio::test]
async fn s2_044_the_tool_says_that_it_asks_a_data_service() {
    let bench = Bench::new([]);
    assert_eq!(bench.tool.tool_type(), ToolType::Ccs);
    assert_eq!(bench.tool.name(), "search_offers");
    assert_eq!(bench.tool.status(), Some("searching_offers"));
    assert!(bench.tool.remember());
    assert_eq!(bench.tool.timeout(), Some(Duration::from_secs(11)));
}
