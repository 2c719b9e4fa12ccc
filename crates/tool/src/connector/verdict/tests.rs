//! The whole matrix: every kind of answer, and what it is worth.

use serde_json::json;
use turnwire_pack::Enricher;

use super::*;
use crate::connector::envelope::NoVerify;
use crate::connector::typing::Typing;

fn typing() -> Typing {
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
    Typing::new(&[enricher, other]).expect("two enrichers")
}

fn verdict(status: u16, body: impl Into<bytes::Bytes>) -> Result<Given, Lapse> {
    let typing = typing();
    let typed = typing
        .get("offer_list", "offer_search")
        .expect("registered");
    let principal = "user-42".parse().expect("a principal");
    let answer = Answer {
        status,
        body: body.into(),
    };
    judge(
        &answer,
        typed,
        &principal,
        &NoVerify,
        &tracing::Span::none(),
    )
}

/// The usual answer with some fields changed.
fn with(fields: Value) -> Result<Given, Lapse> {
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

fn reason(given: Result<Given, Lapse>) -> Reason {
    given.expect_err("nothing of use").reason()
}

#[test]
fn s2_038_ok_gives_the_payload() {
    assert_eq!(with(json!({})), Ok(Given::Whole(payload())));
    assert_eq!(
        with(json!({"reason": "upstream_timeout"})),
        Ok(Given::Whole(payload()))
    );
}

#[test]
fn s2_039_partial_gives_the_payload_with_a_caveat() {
    assert_eq!(
        with(json!({"status": "partial"})),
        Ok(Given::Part(payload()))
    );
}

#[test]
fn s2_040_error_gives_nothing_though_there_is_a_payload() {
    assert_eq!(with(json!({"status": "error"})), Err(Lapse::Error(None)));
    assert_eq!(
        reason(with(json!({"status": "error"}))),
        Reason::UpstreamUnavailable
    );
}

#[test]
fn s2_041_parts_are_never_looked_into() {
    let critical = json!([{"source": "FIDORA", "critical": true, "reason": "upstream_timeout"}]);
    for partial in [
        critical,
        json!("?"),
        json!(null),
        json!([{"critical": "maybe"}]),
    ] {
        assert_eq!(
            with(json!({"partial": partial})),
            Ok(Given::Whole(payload()))
        );
        let part = with(json!({"status": "partial", "partial": partial}));
        assert_eq!(part, Ok(Given::Part(payload())));
    }
}

#[test]
fn s2_042_minor_versions_are_tolerated_and_major_ones_are_not() {
    for version in ["1.2.0", "1.9.0", "1.0.0", "1", "1.2.0-rc.1", "1.x"] {
        assert_eq!(
            with(json!({"version": version})),
            Ok(Given::Whole(payload())),
            "{version}"
        );
    }
    for version in ["2.0.0", "0.9.0", "10.0.0", "v1.2.0", "", "one"] {
        assert_eq!(
            with(json!({"version": version})),
            Err(Lapse::Version),
            "{version}"
        );
    }
    assert_eq!(
        reason(with(json!({"version": "2.0.0"}))),
        Reason::UpstreamUnavailable
    );
}

#[test]
fn s2_043_caching_decides_nothing() {
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

#[test]
fn s2_037_an_answer_to_another_question_is_none() {
    for pair in [
        json!({"enricher_id": "receipt_search", "domain_type": "receipt_list"}),
        json!({"enricher_id": "receipt_search"}),
        json!({"domain_type": "receipt_list"}),
        json!({"enricher_id": "unheard_of"}),
    ] {
        assert_eq!(with(pair.clone()), Err(Lapse::OtherPair), "{pair}");
        assert_eq!(reason(with(pair)), Reason::UpstreamUnavailable);
    }
}

#[test]
fn s1_084_a_payload_that_is_not_what_was_promised_is_none() {
    for payload in [
        json!({}),
        json!([]),
        json!({"items": [{"title": "no id"}]}),
        json!("x"),
    ] {
        let given = with(json!({"payload": payload}));
        assert_eq!(given, Err(Lapse::Schema), "{payload}");
        let part = with(json!({"payload": payload, "status": "partial"}));
        assert_eq!(part, Err(Lapse::Schema));
        assert_eq!(reason(given), Reason::UpstreamUnavailable);
    }
    assert_eq!(with(json!({"payload": null})), Err(Lapse::Empty));
}

#[test]
fn s1_091_a_payload_larger_than_an_agent_takes_is_unavailable() {
    let of_bytes = |bytes: usize| {
        let around = json!({"items": [{"id": ""}]}).to_string().len();
        json!({"items": [{"id": "x".repeat(bytes - around)}]})
    };
    for status in ["ok", "partial"] {
        let most = with(json!({"status": status, "payload": of_bytes(PAYLOAD_BYTES_MAX)}));
        assert!(most.is_ok(), "{status}");
        let more = with(json!({"status": status, "payload": of_bytes(PAYLOAD_BYTES_MAX + 1)}));
        assert_eq!(more, Err(Lapse::TooLarge));
        assert_eq!(reason(more), Reason::UpstreamUnavailable);
    }
    assert_eq!(Lapse::TooLarge.class(), ToolErrorClass::EnvelopeError);
}

#[test]
fn s1_091_every_reason_is_passed_on_and_an_unknown_one_is_unavailable() {
    let reasons = [
        ("upstream_unavailable", Reason::UpstreamUnavailable),
        ("upstream_timeout", Reason::UpstreamTimeout),
        ("upstream_partial", Reason::UpstreamPartial),
        ("unauthorized", Reason::Unauthorized),
        ("invalid_request", Reason::InvalidRequest),
    ];
    for (word, expected) in reasons {
        let lapse = with(json!({"status": "error", "reason": word})).expect_err("an error");
        assert_eq!(lapse, Lapse::Error(Some(expected)));
        assert_eq!(lapse.reason(), expected);
        assert_eq!(lapse.class(), ToolErrorClass::EnvelopeError);
    }
    let lapse = with(json!({"status": "error", "reason": "cosmic_rays"})).expect_err("an error");
    assert_eq!(lapse, Lapse::UnknownReason);
    assert_eq!(lapse.reason(), Reason::UpstreamUnavailable);
}

#[test]
fn s2_049_refusals_of_the_service_have_their_reasons() {
    let missing = verdict(400, r#"{"error":"missing_principal"}"#).expect_err("a refusal");
    assert_eq!(missing, Lapse::MissingPrincipal);
    assert_eq!(missing.reason(), Reason::InvalidRequest);
    let refused = verdict(403, r#"{"error":"principal_mismatch","for":"user-99"}"#);
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused, Lapse::PrincipalRefused);
    assert_eq!(refused.reason(), Reason::Unauthorized);
    for lapse in [missing, refused] {
        assert_eq!(lapse.class(), ToolErrorClass::EnvelopeError);
    }
}

#[test]
fn other_statuses_and_garbage_are_unavailable() {
    let good = json!({
        "enricher_id": "offer_search", "domain_type": "offer_list", "principal": "user-42",
        "version": "1.2.0", "status": "ok", "payload": payload(),
    });
    for status in [
        100, 199, 300, 301, 400, 401, 403, 404, 429, 500, 502, 503, 504,
    ] {
        let given = verdict(status, good.to_string());
        assert_eq!(given, Err(Lapse::Http(status)));
        assert_eq!(reason(given), Reason::UpstreamUnavailable);
    }
    assert_eq!(
        verdict(400, r#"{"error":"principal_mismatch"}"#),
        Err(Lapse::Http(400))
    );
    assert_eq!(verdict(201, good.to_string()), Ok(Given::Whole(payload())));
    for garbage in [
        "",
        "{",
        "null",
        "<html></html>",
        r#"{"principal":"user-42"}"#,
    ] {
        assert_eq!(verdict(200, garbage), Err(Lapse::Garbled));
    }
    assert_eq!(with(json!({"status": "fine"})), Err(Lapse::Garbled));
    assert_eq!(Lapse::Garbled.reason(), Reason::UpstreamUnavailable);
}

#[test]
fn s2_035_what_the_door_says_has_its_reason() {
    assert_eq!(
        Lapse::from(DialError::Timeout).reason(),
        Reason::UpstreamTimeout
    );
    for error in [
        DialError::Refused,
        DialError::Unreachable,
        DialError::TooLarge { max_bytes: 1 },
        DialError::Encoded,
        DialError::Setup,
    ] {
        assert_eq!(Lapse::from(error).reason(), Reason::UpstreamUnavailable);
    }
}

#[test]
fn s2_051_whom_it_is_for_is_settled_before_anything_else() {
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
        assert_eq!(lapse, Lapse::Mismatch(Mismatch::Principal));
        assert_eq!(lapse.reason(), Reason::Unauthorized);
        assert_eq!(lapse.class(), ToolErrorClass::PrincipalMismatch);
    }
}

#[test]
fn any_byte_may_be_lost_or_changed_and_nothing_breaks() {
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
            Err(Lapse::Garbled),
            "cut at {at}"
        );
        for other in [0, b' ', b'"', b'\\', b'{', b'9', 0x80, 0xff] {
            let mut changed = good.clone();
            changed[at] = other;
            let given = verdict(200, changed.clone());
            let ours = changed == good || !principal.contains(&at);
            assert!(
                ours || given.is_err(),
                "{at}: {:?}",
                String::from_utf8_lossy(&changed)
            );
        }
    }
}
