//! Reading an envelope, and verifying it for a principal.

use serde_json::json;

use super::*;

fn principal() -> Principal {
    "user-42".parse().expect("a principal")
}

fn full() -> Value {
    json!({
        "enricher_id": "offer_search",
        "domain_type": "offer_list",
        "principal": "user-42",
        "version": "1.2.0",
        "status": "ok",
        "partial": [{"source": "FIDORA", "critical": true, "reason": "upstream_timeout"}],
        "cache_meta": {"cached": false, "cacheable": true, "ttl": 60, "key": "K"},
        "timing": {"total_ms": 12},
        "payload": {"items": [{"id": "OFF_1"}]},
        "reason": null,
    })
}

/// The payload of an envelope, or why it is rejected.
fn open(
    envelope: &Value,
    hook: &dyn EnvelopeVerifier,
) -> Result<Option<Value>, Option<PrincipalMismatch>> {
    let body = envelope.to_string();
    opened(body.as_bytes(), hook).map_err(|refused| match refused {
        EnvelopeRejection::Mismatch(kind) => Some(kind),
        EnvelopeRejection::NotAnEnvelope => None,
    })
}

fn opened(body: &[u8], hook: &dyn EnvelopeVerifier) -> Result<Option<Value>, EnvelopeRejection> {
    let verified = Envelope::read(body)?.verify(&principal(), hook)?;
    Ok(verified.payload())
}

#[test]
fn ignored_text_that_is_not_utf_8_is_no_envelope_and_hides_no_mismatch() {
    let body = full().to_string();
    let ignored = |body: &str| [b"{\"more\": [\"\xff\"], ", &body.as_bytes()[1..]].concat();
    let refused = opened(&ignored(&body), &NoVerifier).expect_err("not JSON");
    assert_eq!(refused, EnvelopeRejection::NotAnEnvelope);
    let other = ignored(&body.replace("user-42", "user-43"));
    let refused = opened(&other, &NoVerifier).expect_err("for somebody else");
    let mismatch = EnvelopeRejection::Mismatch(PrincipalMismatch::Principal);
    assert_eq!(refused, mismatch);
}

// S2-036
#[test]
fn all_fields_are_read_and_unknown_ones_ignored() {
    let mut envelope = full();
    envelope["signature"] = json!("from a later version");
    envelope["payload"]["more"] = json!([1, {"deep": null}]);
    let body = envelope.to_string();
    let read = Envelope::read(body.as_bytes()).expect("an envelope");
    let verified = read.verify(&principal(), &NoVerifier).expect("ours");
    assert_eq!(verified.pair(), ("offer_list", "offer_search"));
    assert_eq!(verified.fields.version, "1.2.0");
    assert_eq!(verified.fields.status, EnvelopeStatus::Ok);
    assert_eq!(verified.reason(), None);
    assert_eq!(verified.payload(), Some(envelope["payload"].clone()));
}

// S2-036
#[test]
fn trace_fields_may_be_missing_or_invalid() {
    let fields = ["partial", "cache_meta", "timing", "reason"];
    for field in fields {
        let mut envelope = full();
        envelope
            .as_object_mut()
            .expect("an object")
            .shift_remove(field);
        assert!(open(&envelope, &NoVerifier).is_ok(), "without {field}");
        for odd in [
            json!(null),
            json!(7),
            json!("x"),
            json!([[]]),
            json!({"a": 1}),
        ] {
            envelope[field] = odd;
            assert!(
                open(&envelope, &NoVerifier).is_ok(),
                "{field} {}",
                envelope[field]
            );
        }
    }
}

// S2-036
#[test]
fn other_bodies_are_not_an_envelope() {
    for field in ["enricher_id", "domain_type", "version", "status"] {
        let mut envelope = full();
        envelope
            .as_object_mut()
            .expect("an object")
            .shift_remove(field);
        assert_eq!(open(&envelope, &NoVerifier), Err(None), "without {field}");
        envelope[field] = json!(7);
        assert_eq!(open(&envelope, &NoVerifier), Err(None), "wrong {field}");
    }
    let good = full().to_string();
    let twice = good.replace("\"version\"", "\"principal\":\"user-42\",\"version\"");
    let long = format!("{good} x");
    for garbage in [
        "",
        "null",
        "[]",
        "\"user-99\"",
        "\u{feff}{}",
        "<html>",
        &good[1..],
        &twice,
        &long,
    ] {
        let refused = opened(garbage.as_bytes(), &NoVerifier);
        assert_eq!(refused, Err(EnvelopeRejection::NotAnEnvelope), "{garbage}");
    }
    assert!(Envelope::read(b"\xff\xfe").is_err());
}

// S2-050, S2-082
#[test]
fn envelope_for_another_principal_is_rejected() {
    let others = [
        json!("user-99"),
        json!("USER-42"),
        json!("user-42 "),
        json!("user-4"),
        json!(""),
        json!(null),
        json!(42),
        json!(["user-42"]),
        json!({"id": "user-42"}),
    ];
    for other in others {
        let mut envelope = full();
        envelope["principal"] = other;
        assert_eq!(
            open(&envelope, &NoVerifier),
            Err(Some(PrincipalMismatch::Principal))
        );
    }
    let mut envelope = full();
    envelope
        .as_object_mut()
        .expect("an object")
        .shift_remove("principal");
    assert_eq!(
        open(&envelope, &NoVerifier),
        Err(Some(PrincipalMismatch::Principal))
    );
}

// S2-051
#[test]
fn no_other_fault_hides_a_principal_mismatch() {
    let foreign = full().to_string().replace("user-42", "user-99");
    let good = full().to_string();
    let twice = |first: &str, second: &str| {
        let both = format!("\"principal\":{first},\"principal\":{second}");
        good.replace("\"principal\":\"user-42\"", &both)
    };
    let odd = [
        foreign.replace("\"ok\"", "\"OK\""),
        foreign.replace("\"1.2.0\"", "1.2"),
        foreign.replace("\"version\"", "\"v\""),
        foreign.replace("\"enricher_id\"", "\"domain_type\""),
        foreign.replace("\"reason\":null", "\"reason\":\"\\ud800\""),
        format!("{foreign} x"),
        foreign[..foreign.len() - 1].to_owned(),
        twice("\"user-99\"", "\"user-42\""),
        twice("\"user-42\"", "\"user-99\""),
        twice("null", "\"user-42\""),
        twice("\"user-42\"", "7"),
        r#"{"principal":"user-99"}"#.to_owned(),
        r#"{"status":"fine"}"#.to_owned(),
        "{}".to_owned(),
    ];
    for body in odd {
        let refused = opened(body.as_bytes(), &NoVerifier);
        assert_eq!(
            refused,
            Err(EnvelopeRejection::Mismatch(PrincipalMismatch::Principal)),
            "{body}"
        );
    }
    let mut bytes = foreign.into_bytes();
    let title = bytes.windows(5).position(|w| w == b"OFF_1");
    bytes[title.expect("there")] = 0xff;
    let refused = opened(&bytes, &NoVerifier);
    assert_eq!(
        refused,
        Err(EnvelopeRejection::Mismatch(PrincipalMismatch::Principal))
    );
}

// S2-050
#[test]
fn principal_is_compared_before_the_payload_is_parsed() {
    // Deeper than the parser allows: parsing it fails, ignoring it does not.
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let body = |principal: &str| {
        full()
            .to_string()
            .replace("user-42", principal)
            .replace(r#"{"items":[{"id":"OFF_1"}]}"#, &deep)
    };
    let foreign = body("user-99");
    let read = Envelope::read(foreign.as_bytes()).expect("an envelope");
    let refused = read.verify(&principal(), &NoVerifier).err();
    assert_eq!(
        refused,
        Some(EnvelopeRejection::Mismatch(PrincipalMismatch::Principal))
    );
    let own = body("user-42");
    let read = Envelope::read(own.as_bytes()).expect("an envelope");
    let verified = read.verify(&principal(), &NoVerifier).expect("ours");
    assert_eq!(verified.payload(), None);
}

// S2-054
#[test]
fn verifier_sees_the_claim_and_decides() {
    struct Sealed;
    impl EnvelopeVerifier for Sealed {
        fn verify(&self, claim: EnvelopeClaim<'_>) -> Result<(), PrincipalMismatch> {
            assert_eq!(claim.principal, "user-42");
            assert_eq!(claim.enricher_id, "offer_search");
            assert_eq!(claim.domain_type, "offer_list");
            assert_eq!(claim.version, "1.2.0");
            let body: Value = serde_json::from_slice(claim.body).expect("all of it");
            if body["seal"] == json!("good") {
                Ok(())
            } else {
                Err(PrincipalMismatch::Unverified)
            }
        }
    }
    let mut envelope = full();
    assert_eq!(
        open(&envelope, &Sealed),
        Err(Some(PrincipalMismatch::Unverified))
    );
    envelope["seal"] = json!("good");
    assert_eq!(
        open(&envelope, &Sealed),
        Ok(Some(json!({"items": [{"id": "OFF_1"}]})))
    );
}
