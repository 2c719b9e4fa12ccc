//! A tool of a data service: its requests, results, failures, metrics and logs.

mod fake_service;
mod detached;
mod leak;
mod sent;

use serde_json::json;
use turnwire_dial::DialError;
use turnwire_event::code::{Reason, ToolErrorClass};

use super::*;
use crate::input::MESSAGE_CHARS_MAX;
use crate::tests::support::{EventSink, LogCapture, call};
use crate::tool::Tool as _;

use fake_service::{Step, ToolFixture, envelope, offers};

fn unavailable(class: ToolErrorClass, reason: Reason) -> ToolFailure {
    ToolFailure {
        class,
        message: "data unavailable".to_owned(),
        fault: Some(Box::new(ServiceFault {
            enricher_id: "offer_search".to_owned(),
            reason,
        })),
        fatal: false,
    }
}

// S2-038
#[tokio::test]
async fn payload_is_the_result_and_its_items_are_stored() {
    let fixture = ToolFixture::new([Step::answer(envelope(json!({})))]);
    let call = fixture.call(json!({"query": "oat milk"}));
    let context = Arc::clone(&call.context);
    assert_eq!(fixture.tool.run(call).await, Ok(offers()));
    let found = context
        .items
        .get("offer_list", &["OFF_2", "OFF_1"])
        .expect("both");
    assert_eq!(*found[0], json!({"id": "OFF_2", "title": "Granola"}));
    assert_eq!(context.items.len(), 2);
    assert!(fixture.sink.emissions().is_empty(), "a result is no event");
}

// S2-039
#[tokio::test]
async fn partial_payload_has_a_caveat() {
    let fixture = ToolFixture::new([Step::answer(envelope(json!({
        "status": "partial",
        "partial": [{"source": "FIDORA", "critical": false, "reason": "upstream_timeout"}],
    })))]);
    let call = fixture.call(json!({}));
    let context = Arc::clone(&call.context);
    let result = fixture.tool.run(call).await;
    assert_eq!(result, Ok(json!({"data": offers(), "caveat": true})));
    assert_eq!(context.items.len(), 2);
}

// S2-047, S2-048
#[tokio::test]
async fn input_cannot_change_the_principal() {
    let steps = [(); 3].map(|()| Step::answer(envelope(json!({}))));
    let fixture = ToolFixture::new(steps);
    for input in [
        json!({"query": "oat milk"}),
        json!({"query": "oat milk", "principal": "user-99"}),
        json!({"principal": {"id": "user-99"}, "query": "oat milk"}),
    ] {
        assert_eq!(fixture.run(input).await, Ok(offers()));
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
    assert_eq!(fixture.requests(), [asked.clone(), asked.clone(), asked]);
}

#[tokio::test]
async fn turn_without_a_trace_sends_empty_trace_fields() {
    let fixture = ToolFixture::new([Step::answer(envelope(json!({})))]);
    let mut call = fixture.call(json!({}));
    let mut context = crate::tests::support::context();
    context.trace = None;
    call.context = Arc::new(context);
    assert!(fixture.tool.run(call).await.is_ok());
    assert_eq!(fixture.requests()[0]["trace"], json!({}));
}

#[tokio::test]
async fn invalid_input_is_described_and_nothing_is_sent() {
    let fixture = ToolFixture::new([]);
    for (input, message) in [
        (json!({"query": 5}), "/query"),
        (json!({"colour": "red"}), "colour"),
        (json!([]), "object"),
        (json!({"query": "x".repeat(70_000)}), "65536"),
    ] {
        let failure = fixture.run(input).await.expect_err("does not fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert_eq!(failure.fault, None);
        assert!(failure.message.contains(message), "{}", failure.message);
        assert!(failure.message.chars().count() <= MESSAGE_CHARS_MAX);
    }
    assert!(fixture.requests().is_empty());
}

// S2-040, S1-091, S1-145
#[tokio::test]
async fn failure_has_enricher_and_reason_and_is_counted() {
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
            Reason::parse("cosmic_rays").expect("a code"),
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
    let logs = LogCapture::start();
    let fixture = ToolFixture::new(cases.iter().map(|(body, _)| Step::answer(body.clone())));
    for (_, reason) in &cases {
        let call = fixture.call(json!({}));
        let context = Arc::clone(&call.context);
        let failure = unavailable(ToolErrorClass::EnvelopeError, *reason);
        assert_eq!(fixture.tool.run(call).await, Err(failure));
        assert_eq!(context.items.len(), 0);
    }
    let labels = |reason: &str| {
        format!(
            "turnwire_stream_ccs_error_total{{vertical=\"\",sub_agent_id=\"shop\",dm_type=\"\",\
             experiment_arm=\"\",agent_definition_version=\"market@1\",\
             enricher_id=\"offer_search\",reason=\"{reason}\"}}"
        )
    };
    let mut counted = logs.metrics("turnwire_stream_ccs_error_total");
    counted.sort();
    let expected = [
        format!("{} 1", labels("other")),
        format!("{} 1", labels("upstream_partial")),
        format!("{} 1", labels("upstream_timeout")),
        format!("{} 4", labels("upstream_unavailable")),
    ];
    assert_eq!(counted, expected);
    let one = |name: &str| {
        [format!(
            "{name}{{enricher_id=\"offer_search\",consumer=\"consumer-agent\"}} 1"
        )]
    };
    let skew = "turnwire_ps6_envelope_version_mismatch_total";
    assert_eq!(logs.metrics(skew), one(skew), "S2-042");
    let unknown = "turnwire_ps6_envelope_reason_unknown_total";
    assert_eq!(logs.metrics(unknown), one(unknown), "D-29");
}

// S2-051, S2-052, S2-053
#[tokio::test]
async fn mismatch_is_dropped_counted_and_logged_once() {
    let logs = LogCapture::start();
    let fixture = ToolFixture::new([Step::answer(envelope(json!({"principal": "user-99"})))]);
    let name = "turnwire_ps6_envelope_principal_mismatch_total";
    let counted = |n: u8| [format!("{name}{{consumer=\"consumer-agent\"}} {n}")];
    assert_eq!(
        logs.metrics(name),
        counted(0),
        "there before anything happens"
    );
    let call = fixture.call(json!({}));
    let context = Arc::clone(&call.context);
    assert_eq!(
        fixture.tool.run(call).await,
        Err(unavailable(
            ToolErrorClass::PrincipalMismatch,
            Reason::Unauthorized
        ))
    );
    assert_eq!(logs.metrics(name), counted(1));
    assert_eq!(context.items.len(), 0);
    assert_eq!(fixture.requests().len(), 1, "no second try");
    let received = logs.log();
    let lines: Vec<&str> = received
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
    assert!(line.contains(&context.turn_id.to_string()), "{line}");
    for secret in ["user-99", "OFF_1", "LEAK"] {
        assert!(!received.contains(secret), "{received}");
    }
}

// 001 AC-7
#[tokio::test]
async fn refused_principal_is_counted_and_logged_as_an_incident() {
    let logs = LogCapture::start();
    let refused = json!({"error": "principal_mismatch"});
    let fixture = ToolFixture::new([Step::status(403, refused)]);
    let name = "turnwire_ps6_principal_refused_total";
    let counted = |n: u8| [format!("{name}{{consumer=\"consumer-agent\"}} {n}")];
    assert_eq!(logs.metrics(name), counted(0), "there from the start");
    let call = fixture.call(json!({}));
    let context = Arc::clone(&call.context);
    let failure = unavailable(ToolErrorClass::PrincipalMismatch, Reason::Unauthorized);
    assert_eq!(fixture.tool.run(call).await, Err(failure));
    assert_eq!(logs.metrics(name), counted(1));
    let received = logs.log();
    let mut lines = received.lines().filter(|line| line.contains("security"));
    let line = lines.next().expect("a line");
    assert!(
        line.contains("WARN") && line.contains(&context.turn_id.to_string()),
        "{line}"
    );
}

// S2-043
#[tokio::test]
async fn cache_and_timing_are_recorded_in_the_span_only() {
    let logs = LogCapture::start();
    // A log line inside the call shows the span with its fields.
    let fixture = ToolFixture::new([Step::answer(envelope(json!({"payload": {"items": 5}})))]);
    fixture.run(json!({})).await.expect_err("does not fit");
    let received = logs.log();
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
        assert!(received.contains(field), "{field} in {received}");
    }
}

// S2-049
#[tokio::test]
async fn rejections_of_the_service_have_their_classes() {
    let fixture = ToolFixture::new([
        Step::status(400, json!({"error": "missing_principal"})),
        Step::status(403, json!({"error": "principal_mismatch"})),
        Step::status(503, json!({"error": "missing_principal"})),
    ]);
    for (class, reason) in [
        (ToolErrorClass::EnvelopeError, Reason::InvalidRequest),
        (ToolErrorClass::PrincipalMismatch, Reason::Unauthorized),
        (ToolErrorClass::EnvelopeError, Reason::UpstreamUnavailable),
    ] {
        let failure = unavailable(class, reason);
        assert_eq!(fixture.run(json!({})).await, Err(failure));
    }
}

#[tokio::test]
async fn unreachable_service_and_late_response_have_reasons() {
    let fixture = ToolFixture::new([
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
        assert_eq!(fixture.run(json!({})).await, Err(failure));
    }
}

// S2-044
#[tokio::test]
async fn tool_has_the_type_of_a_data_service() {
    let fixture = ToolFixture::new([]);
    assert_eq!(fixture.tool.tool_type(), ToolType::Ccs);
    assert_eq!(fixture.tool.name(), "search_offers");
    assert_eq!(fixture.tool.status(), Some("searching_offers"));
    assert!(fixture.tool.remember());
    assert_eq!(fixture.tool.timeout(), Some(Duration::from_secs(11)));
}
