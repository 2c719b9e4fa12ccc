//! The frames of failures in both versions, compared byte for byte.

use turnwire_event::code::TurnStatus;
use turnwire_event::{Body, Event};

use super::*;
use crate::pc3::tests::{DONE, USAGE, block, event, projected, turn_cancelled, turn_completed};
use WireVersion::{V04, V05};

// S1-099, S1-089, S1-093
#[test]
fn error_has_only_the_fields_of_its_code() {
    let error = |code| TurnError {
        failed: vec![
            TurnError::sub_agent("offers"),
            ErrorCode::InternalError.into(),
        ],
        sub_agent_id: Some("offers".into()),
        ..TurnError {
            code,
            ..TurnError::envelope("offer_feed", Reason::UpstreamTimeout)
        }
    };
    for (code, new, old) in [
        (
            ErrorCode::InternalError,
            "INTERNAL_ERROR\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::ModelUnavailable,
            "MODEL_UNAVAILABLE\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::RateLimitError,
            "RATE_LIMIT_ERROR\"",
            "RATE_LIMIT_ERROR\"",
        ),
        (
            ErrorCode::SubAgentFailed,
            "SUB_AGENT_FAILED\",\"sub_agent_id\":\"offers\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::CcsEnvelopeError,
            "CCS_ENVELOPE_ERROR\",\"enricher_id\":\"offer_feed\",\"reason\":\"upstream_timeout\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::PartialFanOut,
            "PARTIAL_FAN_OUT\",\"failed\":[{\"code\":\"SUB_AGENT_FAILED\",\"sub_agent_id\":\"offers\"}]",
            "INTERNAL_ERROR\"",
        ),
    ] {
        for (version, detail) in [(V05, new), (V04, old)] {
            let name = version.as_str();
            let payload = format!(",\"error\":{{\"code\":\"{detail}}},\"is_final\":true");
            let wanted = block(0, "usage", name, USAGE) + &block(1, "error", name, &payload) + DONE;
            assert_eq!(
                projected(
                    turn_completed(TurnStatus::Failed, Some(error(code))),
                    version
                ),
                wanted
            );
        }
    }
}

// S1-100
#[test]
fn failure_without_error_is_internal() {
    let text = projected(turn_completed(TurnStatus::Failed, None), V05);
    assert!(
        text.contains("{\"code\":\"INTERNAL_ERROR\"},\"is_final\":true}"),
        "{text}"
    );
}

// S1-091
#[test]
fn enricher_reason_is_one_of_five() {
    for (reason, word) in [
        (Reason::UpstreamUnavailable, "upstream_unavailable"),
        (Reason::UpstreamTimeout, "upstream_timeout"),
        (Reason::UpstreamPartial, "upstream_partial"),
        (Reason::Unauthorized, "unauthorized"),
        (Reason::InvalidRequest, "invalid_request"),
    ] {
        let body = Body::ErrorReported(TurnError::envelope("offer_feed", reason));
        let text = projected(body.clone(), V05);
        assert!(
            text.contains(&format!(",\"reason\":\"{word}\"}},\"is_final\":false}}")),
            "{text}"
        );
        let stored = String::from_utf8(event(body).to_bytes()).expect("text");
        let odd = stored.replace(word, "KeyError at /srv/app.py");
        assert!(Event::read(odd.as_bytes()).is_err(), "{odd}");
    }
}

// S1-092, S1-096
#[test]
fn fan_out_failures_have_their_own_fields() {
    let failed = TurnError::fan_out(vec![
        TurnError::sub_agent("shop"),
        TurnError::envelope("points", Reason::Unauthorized),
        TurnError::fan_out(vec![TurnError::sub_agent("inner")]),
    ]);
    let detail = "{\"code\":\"PARTIAL_FAN_OUT\",\"failed\":[\
                  {\"code\":\"SUB_AGENT_FAILED\",\"sub_agent_id\":\"shop\"},\
                  {\"code\":\"CCS_ENVELOPE_ERROR\",\"enricher_id\":\"points\",\"reason\":\"unauthorized\"}]}";
    let payload = |ends| format!(",\"error\":{detail},\"is_final\":{ends}");
    let reported = projected(Body::ErrorReported(failed.clone()), V05);
    assert_eq!(reported, block(0, "error", "0.5", &payload(false)));
    let last = projected(turn_completed(TurnStatus::Failed, Some(failed)), V05);
    assert!(
        last.ends_with(&(block(1, "error", "0.5", &payload(true)) + DONE)),
        "{last}"
    );
}

// S1-095, S1-137, D-22
#[test]
fn reported_failure_has_a_frame_in_0_5_only() {
    for (error, detail) in [
        (
            ErrorCode::InternalError.into(),
            "INTERNAL_ERROR\"".to_owned(),
        ),
        (
            ErrorCode::RateLimitError.into(),
            "RATE_LIMIT_ERROR\"".to_owned(),
        ),
        (
            TurnError::sub_agent("shop"),
            "SUB_AGENT_FAILED\",\"sub_agent_id\":\"shop\"".to_owned(),
        ),
        (
            TurnError::envelope("offer_search", Reason::UpstreamTimeout),
            "CCS_ENVELOPE_ERROR\",\"enricher_id\":\"offer_search\",\"reason\":\"upstream_timeout\""
                .to_owned(),
        ),
        (
            TurnError::fan_out(Vec::new()),
            "PARTIAL_FAN_OUT\",\"failed\":[]".to_owned(),
        ),
    ] {
        let body = Body::ErrorReported(error);
        let payload = format!(",\"error\":{{\"code\":\"{detail}}},\"is_final\":false");
        assert_eq!(
            projected(body.clone(), V05),
            block(0, "error", "0.5", &payload)
        );
        assert_eq!(projected(body, V04), "");
    }
}

// S1-028, S1-090, S1-114, C-03
#[test]
fn cancel_has_one_frame_of_its_own() {
    for (code, name) in [
        (CancelCode::RequestCancelled, "REQUEST_CANCELLED"),
        (CancelCode::IdleTimeout, "IDLE_TIMEOUT"),
    ] {
        let payload = format!(",\"error\":{{\"code\":\"{name}\"}}");
        let wanted = block(0, "cancelled", "0.5", &payload) + DONE;
        assert_eq!(projected(turn_cancelled(code), V05), wanted);
        // S1-137, D-22: in 0.4 a cancel is an error.
        let wanted = block(0, "error", "0.4", &(payload + ",\"is_final\":true")) + DONE;
        assert_eq!(projected(turn_cancelled(code), V04), wanted);
    }
}

#[test]
fn end_after_a_crash_says_what_was_kept() {
    let kept_until = "evt_00010000000002.00000C".parse().ok();
    let partial = |partial: &mut PartialMessage| partial.kept_until = kept_until;
    let Body::TurnCompleted(mut failed) = turn_completed(TurnStatus::Failed, None) else {
        panic!("not an end")
    };
    let mut message = PartialMessage {
        message_id: None,
        bytes: 0,
        kept_until: None,
    };
    partial(&mut message);
    failed.partial = Some(message);
    let Body::TurnCancelled(mut cancelled) = turn_cancelled(CancelCode::RequestCancelled) else {
        panic!("not a cancel")
    };
    partial(&mut cancelled.partial);
    let kept = ",\"kept_until\":\"evt_00010000000002.00000C\"";
    for (version, kept) in [(V05, kept), (V04, "")] {
        let name = version.as_str();
        let payload = format!(",\"error\":{{\"code\":\"INTERNAL_ERROR\"}},\"is_final\":true{kept}");
        let wanted = block(0, "usage", name, USAGE) + &block(1, "error", name, &payload) + DONE;
        assert_eq!(
            projected(Body::TurnCompleted(failed.clone()), version),
            wanted
        );
        let text = projected(Body::TurnCancelled(cancelled.clone()), version);
        assert_eq!(text.contains("kept_until"), !kept.is_empty(), "{text}");
    }
}
