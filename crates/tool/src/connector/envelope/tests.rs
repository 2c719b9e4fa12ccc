//! An envelope is read as it comes and opened only for whom it is.

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

/// What becomes of an envelope: its payload, or why not.
fn open(envelope: &Value, hook: &dyn Verify) -> Result<Option<Value>, Option<Mismatch>> {
    let body = envelope.to_string();
    opened(body.as_bytes(), hook).map_err(|refused| match refused {
        Refused::Mismatch(kind) => Some(kind),
        Refused::Garbled(Garbled) => None,
    })
}

fn opened(body: &[u8], hook: &dyn Verify) -> Result<Option<Value>, Refused> {
    let verified = Envelope::read(body)?.verify(&principal(), hook)?;
    Ok(verified.payload())
}

#[test]
fn s2_036_every_field_is_read_and_others_are_tolerated() {
    let mut envelope = full();
    envelope["signature"] = json!("from a later version");
    envelope["payload"]["more"] = json!([1, {"deep": null}]);
    let body = envelope.to_string();
    let read = Envelope::read(body.as_bytes()).expect("an envelope");
    let verified = read.verify(&principal(), &NoVerify).expect("ours");
    assert_eq!(verified.pair(), ("offer_list", "offer_search"));
    assert_eq!(verified.version(), "1.2.0");
    assert_eq!(verified.status(), Status::Ok);
    assert_eq!(verified.reason(), None);
    assert_eq!(verified.payload(), Some(envelope["payload"].clone()));
}

#[test]
fn s2_036_what_only_traces_need_may_be_missing_or_odd() {
    let fields = ["partial", "cache_meta", "timing", "reason"];
    for field in fields {
        let mut envelope = full();
        envelope
            .as_object_mut()
            .expect("an object")
            .shift_remove(field);
        assert!(open(&envelope, &NoVerify).is_ok(), "without {field}");
        for odd in [
            json!(null),
            json!(7),
            json!("x"),
            json!([[]]),
            json!({"a": 1}),
        ] {
            envelope[field] = odd;
            assert!(
                open(&envelope, &NoVerify).is_ok(),
                "{field} {}",
                envelope[field]
            );
        }
    }
}

#[test]
fn s2_036_what_is_no_envelope_is_garbage() {
    for field in ["enricher_id", "domain_type", "version", "status"] {
        let mut envelope = full();
        envelope
            .as_object_mut()
            .expect("an object")
            .shift_remove(field);
        assert_eq!(open(&envelope, &NoVerify), Err(None), "without {field}");
        envelope[field] = json!(7);
        assert_eq!(open(&envelope, &NoVerify), Err(None), "wrong {field}");
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
        let refused = opened(garbage.as_bytes(), &NoVerify);
        assert_eq!(refused, Err(Garbled.into()), "{garbage}");
    }
    assert!(Envelope::read(b"\xff\xfe").is_err());
}

#[test]
fn s2_050_an_envelope_for_somebody_else_is_never_opened() {
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
        assert_eq!(open(&envelope, &NoVerify), Err(Some(Mismatch::Principal)));
    }
    let mut envelope = full();
    envelope
        .as_object_mut()
        .expect("an object")
        .shift_remove("principal");
    assert_eq!(open(&envelope, &NoVerify), Err(Some(Mismatch::Principal)));
}

#[test]
fn s2_051_no_other_fault_hides_whom_it_is_for() {
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
        let refused = opened(body.as_bytes(), &NoVerify);
        assert_eq!(refused, Err(Mismatch::Principal.into()), "{body}");
    }
    let mut bytes = foreign.into_bytes();
    let title = bytes.windows(5).position(|w| w == b"OFF_1");
    bytes[title.expect("there")] = 0xff;
    let refused = opened(&bytes, &NoVerify);
    assert_eq!(refused, Err(Mismatch::Principal.into()));
}

#[test]
fn s2_050_the_principal_is_compared_before_the_payload_is_read() {
    // Deeper than anything reads: whoever reads it fails, whoever does not, does not.
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let body = |principal: &str| {
        full()
            .to_string()
            .replace("user-42", principal)
            .replace(r#"{"items":[{"id":"OFF_1"}]}"#, &deep)
    };
    let foreign = body("user-99");
    let read = Envelope::read(foreign.as_bytes()).expect("an envelope");
    let refused = read.verify(&principal(), &NoVerify).err();
    assert_eq!(refused, Some(Mismatch::Principal.into()));
    let own = body("user-42");
    let read = Envelope::read(own.as_bytes()).expect("an envelope");
    let verified = read.verify(&principal(), &NoVerify).expect("ours");
    assert_eq!(verified.payload(), None);
}

#[test]
fn s2_054_a_hook_sees_the_claim_and_its_word_counts() {
    struct Sealed;
    impl Verify for Sealed {
        fn verify(&self, claim: Claim<'_>) -> Result<(), Mismatch> {
            assert_eq!(claim.principal, "user-42");
            assert_eq!(claim.enricher_id, "offer_search");
            assert_eq!(claim.domain_type, "offer_list");
            assert_eq!(claim.version, "1.2.0");
            let body: Value = serde_json::from_slice(claim.body).expect("all of it");
            if body["seal"] == json!("good") {
                Ok(())
            } else {
                Err(Mismatch::Unverified)
            }
        }
    }
    let mut envelope = full();
    assert_eq!(open(&envelope, &Sealed), Err(Some(Mismatch::Unverified)));
    envelope["seal"] = json!("good");
    assert_eq!(
        open(&envelope, &Sealed),
        Ok(Some(json!({"items": [{"id": "OFF_1"}]})))
    );
}
