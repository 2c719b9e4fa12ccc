//! The table from errors to problems, and that every error answer is a problem.

use axum::body::to_bytes;
use turnwire_event::{ApprovalId, TurnId, Ulid};

use super::*;

async fn body(response: Response) -> Value {
    let bytes = to_bytes(response.into_body(), 1 << 20)
        .await
        .expect("a body");
    serde_json::from_slice(&bytes).expect("a problem is JSON")
}

//
#[tokio::test]
async fn every_session_error_has_its_code_and_status() {
    for (error, code, status, retry) in [
        (Error::SessionNotFound, "session_not_found", 404, None),
        (Error::TurnNotFound, "turn_not_found", 404, None),
        (Error::MessageNotFound, "message_not_found", 404, None),
        (Error::ToolCallNotFound, "not_found", 404, None),
        (Error::ApprovalNotFound, "approval_not_found", 404, None),
        (Error::JobNotFound, "job_not_found", 404, None),
        (
            Error::JobPaused("daily".parse().expect("a name")),
            "job_paused",
            409,
            None,
        ),
        (Error::TurnNotPaused, "turn_not_paused", 409, None),
        (
            Error::ApprovalResolved(ApprovalId(Ulid(1))),
            "approval_resolved",
            409,
            None,
        ),
        (
            Error::ApprovalInputMismatch(ApprovalId(Ulid(1))),
            "approval_input_mismatch",
            409,
            None,
        ),
        (
            Error::TurnInFlight(TurnId(Ulid(1))),
            "turn_in_flight",
            409,
            None,
        ),
        (Error::InvalidCursor, "invalid_cursor", 400, None),
        (Error::CursorExpired, "cursor_expired", 410, None),
        (Error::Quarantined, "session_quarantined", 503, Some("60")),
        (Error::DatabaseDamaged, "database_damaged", 503, Some("60")),
        (Error::FolderLost, "data_folder_lost", 503, Some("60")),
        (Error::StorageFull, "storage_full", 507, Some("5")),
        (Error::Draining, "draining", 503, Some("5")),
        (Error::TooMany, "too_many_requests", 429, Some("1")),
        (Error::TooManyReads, "too_many_requests", 429, Some("1")),
        (Error::TooManyWrites, "too_many_requests", 429, Some("1")),
        (Error::Internal, "internal", 500, None),
    ] {
        let response = with_problem_body(RequestFault::from(error).into_response(), "abc");
        assert_eq!(response.status().as_u16(), status, "{code}");
        let header = |name| {
            let value: Option<&HeaderValue> = response.headers().get(name);
            value.map(|v| v.to_str().expect("text").to_owned())
        };
        assert_eq!(
            header(header::CONTENT_TYPE).as_deref(),
            Some("application/problem+json")
        );
        assert_eq!(header(header::RETRY_AFTER).as_deref(), retry, "{code}");
        assert_eq!(
            header(header::WWW_AUTHENTICATE).is_some(),
            status == 401,
            "{code}"
        );
        let body = body(response).await;
        assert_eq!(body["code"], code);
        assert_eq!(body["status"], status);
        assert_eq!(body["type"], format!("/problems/{code}"));
        assert_eq!(body["trace_id"], "abc");
        assert!(body["title"].is_string() && body["detail"].is_string());
    }
}

// D-38
#[tokio::test]
async fn busy_session_names_its_turn() {
    let fault = RequestFault::from(Error::TurnInFlight(TurnId(Ulid(1))));
    let body = body(with_problem_body(fault.into_response(), "abc")).await;
    let expected = json!({
        "type": "/problems/turn_in_flight",
        "title": "A turn is already in flight",
        "status": 409,
        "detail": "The session is busy with a turn; wait for it or cancel it.",
        "code": "turn_in_flight",
        "trace_id": "abc",
        "turn_id": "00000000000000000000000001",
        "response_id": "resp_00000000000000000000000001",
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn foreign_errors_become_problems_and_keep_status() {
    for (status, code) in [
        (StatusCode::NOT_FOUND, "not_found"),
        (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
        (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
        (StatusCode::BAD_REQUEST, "invalid_request"),
        (StatusCode::UPGRADE_REQUIRED, "invalid_request"),
        (StatusCode::BAD_GATEWAY, "internal"),
    ] {
        let theirs = (status, [(header::ALLOW, "GET")], "panicked at /src/x.rs").into_response();
        let response = with_problem_body(theirs, "abc");
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[header::ALLOW], "GET");
        let body = body(response).await;
        assert_eq!(body["code"], code);
        assert_eq!(body["status"], status.as_u16());
        assert!(!body.to_string().contains("panicked"), "{body}");
    }
}

#[tokio::test]
async fn successful_answers_pass_unchanged() {
    let response = with_problem_body((StatusCode::ACCEPTED, "text").into_response(), "abc");
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let bytes = to_bytes(response.into_body(), 100).await.expect("a body");
    assert_eq!(bytes, "text");
}
