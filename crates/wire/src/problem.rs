//! Errors of the REST API (RFC 9457): a closed list of codes, each with its status and title, and
//! the body of an error response. The meaning of a code does not depend on the endpoint.

mod code;
pub mod help;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use code::Code;

/// The `content-type` of an error response.
pub const MEDIA_TYPE: &str = "application/problem+json";

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
            ("forbidden", 403),
            ("host_not_allowed", 403),
            ("origin_not_allowed", 403),
            ("not_found", 404),
            ("session_not_found", 404),
            ("turn_not_found", 404),
            ("message_not_found", 404),
            ("approval_not_found", 404),
            ("job_not_found", 404),
            ("method_not_allowed", 405),
            ("request_timeout", 408),
            ("turn_in_flight", 409),
            ("job_paused", 409),
            ("turn_not_paused", 409),
            ("approval_resolved", 409),
            ("approval_input_mismatch", 409),
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
            ("quota_exceeded", 429),
            ("internal", 500),
            ("draining", 503),
            ("auth_unavailable", 503),
            ("session_quarantined", 503),
            ("database_damaged", 503),
            ("data_folder_lost", 503),
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
