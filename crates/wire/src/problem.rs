//! Errors of the REST API (RFC 9457): a closed list of codes, each with its status and title, and
//! the body of an error response. The meaning of a code does not depend on the endpoint.

pub mod help;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The `content-type` of an error response.
pub const MEDIA_TYPE: &str = "application/problem+json";

macro_rules! codes {
    ($($variant:ident = $name:literal, $status:literal, $title:literal;)+) => {
        /// The stable code of a failed request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is its code")]
        pub enum Code { $($variant),+ }

        impl Code {
            /// Every code, ordered by HTTP status.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The HTTP status of the response.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// The meaning of the code in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// The path of the description: `/problems/<code>`.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$variant => concat!("/problems/", $name)),+ }
            }

            /// Parses a code of the wire.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

codes! {
    MalformedJson = "malformed_json", 400, "The body is not JSON";
    InvalidCursor = "invalid_cursor", 400, "The cursor is malformed";
    TenantRequired = "tenant_required", 400, "A tenant is required";
    TenantInvalid = "tenant_invalid", 400, "The tenant is not a UUID";
    Unauthorized = "unauthorized", 401, "Not authorised";
    HostNotAllowed = "host_not_allowed", 403, "The Host header is not allowed";
    OriginNotAllowed = "origin_not_allowed", 403, "The Origin header is not allowed";
    NotFound = "not_found", 404, "No such path";
    SessionNotFound = "session_not_found", 404, "No such session";
    TurnNotFound = "turn_not_found", 404, "No such turn";
    MessageNotFound = "message_not_found", 404, "No such message";
    ApprovalNotFound = "approval_not_found", 404, "No such approval";
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here";
    RequestTimeout = "request_timeout", 408, "The request took too long to arrive";
    TurnInFlight = "turn_in_flight", 409, "A turn is already in flight";
    TurnNotPaused = "turn_not_paused", 409, "The turn is not paused";
    ApprovalResolved = "approval_resolved", 409, "The approval is already decided";
    StreamingDisabled = "streaming_disabled", 409, "Streaming is disabled";
    StepConflict = "step_conflict", 409, "The step exists with other content";
    WireVersionMismatch = "wire_version_mismatch", 409, "The turn is bound to another wire version";
    CursorExpired = "cursor_expired", 410, "The cursor has expired";
    ReplayExpired = "replay_expired", 410, "The replay has expired";
    BodyTooLarge = "body_too_large", 413, "The body is too large";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be JSON";
    InvalidRequest = "invalid_request", 422, "The request is invalid";
    UnknownField = "unknown_field", 422, "Unknown field";
    UnsupportedContent = "unsupported_content", 422, "The content type is not supported";
    InvalidFilter = "invalid_filter", 422, "The filter names something unknown";
    IdempotencyMismatch = "idempotency_mismatch", 422, "The key was used with another body";
    ModeUnsupported = "mode_unsupported", 422, "The mode is not supported";
    QueueFull = "queue_full", 429, "Too many turns are waiting";
    TooManyRequests = "too_many_requests", 429, "Too many requests";
    Internal = "internal", 500, "Internal server error";
    Draining = "draining", 503, "The server is shutting down";
    SessionQuarantined = "session_quarantined", 503, "The session is quarantined";
    StorageFull = "storage_full", 507, "The disk is full";
}

/// The body of every error response (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The path that describes the code.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The meaning of the code in a few words.
    pub title: Cow<'static, str>,
    /// The HTTP status of the response.
    pub status: u16,
    /// The cause of this error, and what to do about it.
    pub detail: String,
    /// The code; text, so that a client can read codes that it does not know.
    pub code: Cow<'static, str>,
    /// Identifies the request in the server's log.
    pub trace_id: String,
    /// Further members of some codes: the running turn, the field, the position in the body.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Problem {
    /// A problem without further members.
    pub fn new(code: Code, detail: impl Into<String>, trace_id: impl Into<String>) -> Self {
        Self {
            kind: code.kind().into(),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code: code.name().into(),
            trace_id: trace_id.into(),
            extra: Map::new(),
        }
    }

    /// The code, if this version knows it.
    pub fn code(&self) -> Option<Code> {
        Code::named(&self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    //
    #[test]
    fn every_code_has_its_status() {
        let table: Vec<(&str, u16)> = Code::ALL.iter().map(|c| (c.name(), c.status())).collect();
        let expected = [
            ("malformed_json", 400),
            ("invalid_cursor", 400),
            ("tenant_required", 400),
            ("tenant_invalid", 400),
            ("unauthorized", 401),
            ("host_not_allowed", 403),
            ("origin_not_allowed", 403),
            ("not_found", 404),
            ("session_not_found", 404),
            ("turn_not_found", 404),
            ("message_not_found", 404),
            ("approval_not_found", 404),
            ("method_not_allowed", 405),
            ("request_timeout", 408),
            ("turn_in_flight", 409),
            ("turn_not_paused", 409),
            ("approval_resolved", 409),
            ("streaming_disabled", 409),
            ("step_conflict", 409),
            ("wire_version_mismatch", 409),
            ("cursor_expired", 410),
            ("replay_expired", 410),
            ("body_too_large", 413),
            ("unsupported_media_type", 415),
            ("invalid_request", 422),
            ("unknown_field", 422),
            ("unsupported_content", 422),
            ("invalid_filter", 422),
            ("idempotency_mismatch", 422),
            ("mode_unsupported", 422),
            ("queue_full", 429),
            ("too_many_requests", 429),
            ("internal", 500),
            ("draining", 503),
            ("session_quarantined", 503),
            ("storage_full", 507),
        ];
        assert_eq!(table, expected);
        for &code in Code::ALL {
            assert_eq!(Code::named(code.name()), Some(code));
            assert_eq!(code.kind(), format!("/problems/{}", code.name()));
            assert!(!code.title().is_empty() && !code.title().ends_with('.'));
        }
    }

    //
    #[test]
    fn problem_members_are_in_order_before_extras() {
        let mut problem = Problem::new(Code::TurnInFlight, "Wait for it or cancel it.", "ab");
        problem.extra.insert("turn_id".into(), json!("01T"));
        let text = serde_json::to_string(&problem).expect("plain data");
        assert_eq!(
            text,
            "{\"type\":\"/problems/turn_in_flight\",\"title\":\"A turn is already in flight\",\
             \"status\":409,\"detail\":\"Wait for it or cancel it.\",\"code\":\"turn_in_flight\",\
             \"trace_id\":\"ab\",\"turn_id\":\"01T\"}"
        );
        let read: Problem = serde_json::from_str(&text).expect("its own text");
        assert_eq!(read, problem);
        assert_eq!(read.code(), Some(Code::TurnInFlight));
    }
}
