//! The matrix of responses and their verdicts.

use serde_json::json;
use turnwire_pack::Enricher;

use super::*;
use crate::data_service::envelope::NoVerifier;
use crate::data_service::registry::EnricherRegistry;

fn typing() -> EnricherRegistry {
    let enricher = Enricher {
        enricher_id: "offer_search".into(),
        domain_type: "offer_list".into(),
        service: "market".into(),
        version: "1.2.0".into(),
        items: "items".into(),
        item_id: "id".into(),
        payload_schema: Some(json!({
            "type": "object",
            "properties": {"items": {"type": "array", "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}},
                "required": ["id"],
            }}},
            "required": ["items"],
        })),
    };
    let other = Enricher {
        enricher_id: "receipt_search".into(),
        domain_type: "receipt_list".into(),
        payload_schema: None,
        ..enricher.clone()
    };
    EnricherRegistry::new(&[enricher, other]).expect("two enrichers")
}

fn verdict(status: u16, body: impl Into<bytes::Bytes>) -> Result<ServiceData, ServiceFailure> {
    let typing = typing();
    let enricher = typing
        .get("offer_list", "offer_search")
        .expect("registered");
    let principal = "user-42".parse().expect("a principal");
    let answer = JsonResponse {
        status,
        body: body.into(),
    };
    judge(
        &answer,
        enricher,
        &principal,
        &NoVerifier,
        (&tracing::Span::none(), &EnvelopeFields::default()),
    )
}

/// The default response with some fields changed.
fn with(fields: Value) -> Result<ServiceData, ServiceFailure> {
    let mut envelope = json!({
        "enricher_id": "offer_search", "domain_type": "offer_list", "principal": "user-42",
        "version": "1.2.0", "status": "ok", "partial": [],
        "cache_meta": {"cached": false, "cacheable": true, "ttl": 60, "key": "K"},
        "timing": {"total_ms": 12}, "payload": payload(),
    });
    for (key, value) in fields.as_object().expect("fields") {
        envelope[key] = value.clone();
    }
    verdict(200, envelope.to_string())
}

fn payload() -> Value {
    json!({"items": [{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2"}]})
}

fn reason(result: Result<ServiceData, ServiceFailure>) -> Reason {
    result.expect_err("nothing of use").reason()
}

// S2-038, S2-082
#[test]
fn ok_returns_the_payload() {
    assert_eq!(with(json!({})), Ok(ServiceData::Complete(payload())));
    assert_eq!(
        with(json!({"reason": "upstream_timeout"})),
        Ok(ServiceData::Complete(payload()))
    );
}

// S2-039
#[test]
fn partial_returns_a_partial_payload() {
    assert_eq!(
        with(json!({"status": "partial"})),
        Ok(ServiceData::Partial(payload()))
    );
}

// S2-040
#[test]
fn error_returns_nothing_despite_a_payload() {
    assert_eq!(
        with(json!({"status": "error"})),
        Err(ServiceFailure::Error(None))
    );
    assert_eq!(
        reason(with(json!({"status": "error"}))),
        Reason::UpstreamUnavailable
    );
}

// S2-041
#[test]
fn partial_field_is_not_parsed() {
    let critical = json!([{"source": "FIDORA", "critical": true, "reason": "upstream_timeout"}]);
    for partial in [
        critical,
        json!("?"),
        json!(null),
        json!([{"critical": "maybe"}]),
    ] {
        assert_eq!(
            with(json!({"partial": partial})),
            Ok(ServiceData::Complete(payload()))
        );
        let part = with(json!({"status": "partial", "partial": partial}));
        assert_eq!(part, Ok(ServiceData::Partial(payload())));
    }
}

// S2-042
#[test]
fn other_major_version_is_rejected() {
    for version in ["1.2.0", "1.9.0", "1.0.0", "1", "1.2.0-rc.1", "1.x"] {
        assert_eq!(
            with(json!({"version": version})),
            Ok(ServiceData::Complete(payload())),
            "{version}"
        );
    }
    for version in ["2.0.0", "0.9.0", "10.0.0", "v1.2.0", "", "one"] {
        assert_eq!(
            with(json!({"version": version})),
            Err(ServiceFailure::Version),
            "{version}"
        );
    }
    assert_eq!(
        reason(with(json!({"version": "2.0.0"}))),
        Reason::UpstreamUnavailable
    );
}

// S2-043
#[test]
fn cache_fields_do_not_affect_the_verdict() {
    let metas = [
        json!({"cached": true, "cacheable": false, "ttl": 0, "key": "other"}),
        json!({"cached": "yes", "ttl": -1}),
        json!(null),
        json!([]),
    ];
    for meta in metas {
        assert_eq!(
            with(json!({"cache_meta": meta, "timing": meta})),
            with(json!({}))
        );
    }
}

// S2-037
#[test]
fn envelope_of_another_enricher_is_rejected() {
    for pair in [
        json!({"enricher_id": "receipt_search", "domain_type": "receipt_list"}),
        json!({"enricher_id": "receipt_search"}),
        json!({"domain_type": "receipt_list"}),
        json!({"enricher_id": "unheard_of"}),
    ] {
        assert_eq!(
            with(pair.clone()),
            Err(ServiceFailure::OtherEnricher),
            "{pair}"
        );
        assert_eq!(reason(with(pair)), Reason::UpstreamUnavailable);
    }
}

// S1-084
#[test]
fn payload_that_violates_its_schema_is_rejected() {
    for payload in [
        json!({}),
        json!([]),
        json!({"items": [{"title": "no id"}]}),
        json!("x"),
    ] {
        let result = with(json!({"payload": payload}));
        assert_eq!(result, Err(ServiceFailure::Schema), "{payload}");
        let part = with(json!({"payload": payload, "status": "partial"}));
        assert_eq!(part, Err(ServiceFailure::Schema));
        assert_eq!(reason(result), Reason::UpstreamUnavailable);
    }
    assert_eq!(with(json!({"payload": null})), Err(ServiceFailure::Empty));
}

// S1-091
#[test]
fn payload_beyond_the_limit_is_unavailable() {
    let of_bytes = |bytes: usize| {
        let around = json!({"items": [{"id": ""}]}).to_string().len();
        json!({"items": [{"id": "x".repeat(bytes - around)}]})
    };
    for status in ["ok", "partial"] {
        let most = with(json!({"status": status, "payload": of_bytes(PAYLOAD_BYTES_MAX)}));
        assert!(most.is_ok(), "{status}");
        let more = with(json!({"status": status, "payload": of_bytes(PAYLOAD_BYTES_MAX + 1)}));
        assert_eq!(more, Err(ServiceFailure::TooLarge));
        assert_eq!(reason(more), Reason::UpstreamUnavailable);
    }
    assert_eq!(
        ServiceFailure::TooLarge.class(),
        ToolErrorClass::EnvelopeError
    );
}

// S1-091
#[test]
fn reasons_are_kept_and_unusable_ones_are_unavailable() {
    let reasons = [
        ("upstream_unavailable", Reason::UpstreamUnavailable),
        ("upstream_timeout", Reason::UpstreamTimeout),
        ("upstream_partial", Reason::UpstreamPartial),
        ("unauthorized", Reason::Unauthorized),
        ("invalid_request", Reason::InvalidRequest),
    ];
    for (word, expected) in reasons {
        let lapse = with(json!({"status": "error", "reason": word})).expect_err("an error");
        assert_eq!(lapse, ServiceFailure::Error(Some(expected)));
        assert_eq!(lapse.reason(), expected);
        assert_eq!(lapse.class(), ToolErrorClass::EnvelopeError);
    }
    let lapse = with(json!({"status": "error", "reason": "cosmic_rays"})).expect_err("an error");
    assert_eq!(
        lapse,
        ServiceFailure::UnknownReason(ReasonToken::new("cosmic_rays"))
    );
    assert_eq!(lapse.reason().as_str(), "cosmic_rays");
    assert_eq!(lapse.reason().label(), "other");
    for unusable in ["", "host db-7 is down", "/var/lib", &"r".repeat(65)] {
        let lapse = with(json!({"status": "error", "reason": unusable})).expect_err("an error");
        assert_eq!(lapse, ServiceFailure::UnknownReason(None), "{unusable}");
        assert_eq!(lapse.reason(), Reason::UpstreamUnavailable);
    }
}

// S2-049
#[test]
fn rejections_of_the_service_have_their_reasons() {
    let missing = verdict(400, r#"{"error":"missing_principal"}"#).expect_err("a refusal");
    assert_eq!(missing, ServiceFailure::MissingPrincipal);
    assert_eq!(missing.reason(), Reason::InvalidRequest);
    let refused = verdict(403, r#"{"error":"principal_mismatch","for":"user-99"}"#);
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused, ServiceFailure::PrincipalRefused);
    assert_eq!(refused.reason(), Reason::Unauthorized);
    assert_eq!(missing.class(), ToolErrorClass::EnvelopeError);
    assert_eq!(refused.class(), ToolErrorClass::PrincipalMismatch);
}

#[test]
fn other_statuses_and_bodies_are_unavailable() {
    let good = json!({
        "enricher_id": "offer_search", "domain_type": "offer_list", "principal": "user-42",
        "version": "1.2.0", "status": "ok", "payload": payload(),
    });
    for status in [
        100, 199, 300, 301, 400, 401, 403, 404, 429, 500, 502, 503, 504,
    ] {
        let result = verdict(status, good.to_string());
        assert_eq!(result, Err(ServiceFailure::Http(status)));
        assert_eq!(reason(result), Reason::UpstreamUnavailable);
    }
    assert_eq!(
        verdict(400, r#"{"error":"principal_mismatch"}"#),
        Err(ServiceFailure::Http(400))
    );
    assert_eq!(
        verdict(201, good.to_string()),
        Ok(ServiceData::Complete(payload()))
    );
    for garbage in [
        "",
        "{",
        "null",
        "<html></html>",
        r#"{"principal":"user-42"}"#,
    ] {
        assert_eq!(verdict(200, garbage), Err(ServiceFailure::NotAnEnvelope));
    }
    assert_eq!(
        with(json!({"status": "fine"})),
        Err(ServiceFailure::NotAnEnvelope)
    );
    assert_eq!(
        ServiceFailure::NotAnEnvelope.reason(),
        Reason::UpstreamUnavailable
    );
}

// S2-035
#[test]
fn dial_errors_have_their_reasons() {
    assert_eq!(
        ServiceFailure::from(DialError::Timeout).reason(),
        Reason::UpstreamTimeout
    );
    for error in [
        DialError::Refused,
        DialError::Unreachable,
        DialError::TooLarge { max_bytes: 1 },
        DialError::UnexpectedEncoding,
        DialError::Setup,
    ] {
        assert_eq!(
            ServiceFailure::from(error).reason(),
            Reason::UpstreamUnavailable
        );
    }
}

// S2-051
#[test]
fn principal_is_checked_before_anything_else() {
    let faults = [
        json!({}),
        json!({"version": "2.0.0"}),
        json!({"enricher_id": "unheard_of"}),
        json!({"status": "error", "reason": "upstream_timeout"}),
        json!({"status": "partial"}),
        json!({"payload": {}}),
        json!({"payload": null}),
        json!({"status": "OK"}),
        json!({"version": 1.2}),
        json!({"enricher_id": null}),
    ];
    for mut fault in faults {
        fault["principal"] = json!("user-99");
        let lapse = with(fault).expect_err("for somebody else");
        assert_eq!(
            lapse,
            ServiceFailure::Mismatch(PrincipalMismatch::Principal)
        );
        assert_eq!(lapse.reason(), Reason::Unauthorized);
        assert_eq!(lapse.class(), ToolErrorClass::PrincipalMismatch);
    }
}

#[test]
fn changed_or_missing_bytes_never_panic() {
    let envelope = json!({
        "principal": "user-42", "enricher_id": "offer_search", "domain_type": "offer_list",
        "version": "1.2.0", "status": "ok", "payload": payload(),
    });
    let good = envelope.to_string().into_bytes();
    let principal = 1..good
        .windows(8)
        .position(|w| w == b"enricher")
        .expect("there")
        - 2;
    for at in 0..good.len() {
        assert_eq!(
            verdict(200, good[..at].to_vec()),
            Err(ServiceFailure::NotAnEnvelope),
            "cut at {at}"
        );
        for other in [0, b' ', b'"', b'\\', b'{', b'9', 0x80, 0xff] {
            let mut changed = good.clone();
            changed[at] = other;
            let result = verdict(200, changed.clone());
            let ours = changed == good || !principal.contains(&at);
            assert!(
                ours || result.is_err(),
                "{at}: {:?}",
                String::from_utf8_lossy(&changed)
            );
        }
    }
}
