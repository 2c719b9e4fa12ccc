//! What a vendor's error means: by the word it uses, else by the HTTP status.
//!
//! The vendors' words are disjoint where they matter, and compatible servers mix them, so one
//! table serves all. Only words are looked at, never a message: that may quote the person.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;

use crate::delta::{Again, ModelError};
use crate::dialect::Refused;

/// The account has nothing left: waiting does not help.
const SPENT: [&str; 3] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "quota_exceeded",
];

/// Too much at once.
const TOO_MUCH: [&str; 4] = [
    "rate_limit_error",
    "rate_limit_exceeded",
    "too_many_requests",
    "RESOURCE_EXHAUSTED",
];

/// Refused for what the request is.
const REFUSED: [&str; 17] = [
    "authentication_error",
    "billing_error",
    "content_policy_violation",
    "context_length_exceeded",
    "exceed_context_size_error",
    "invalid_api_key",
    "invalid_prompt",
    "invalid_request_error",
    "model_not_found",
    "not_found_error",
    "permission_error",
    "request_too_large",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "FAILED_PRECONDITION",
];

/// What an answer that is no stream means: a word about limits in a 4xx body counts before the
/// status, since some servers say «limit» with 400 or 403.
pub(crate) fn refused(refused: Refused<'_>) -> ModelError {
    let by_status = by_status(refused.status, refused.retry_after);
    if !(400..500).contains(&refused.status) {
        return by_status;
    }
    let body: Option<Value> = serde_json::from_slice(refused.body).ok();
    let said = body.as_ref().and_then(|body| body.get("error"));
    match said.and_then(by_words) {
        Some(limit) if limit.class == LlmErrorClass::RateLimited => {
            not_before(limit, refused.retry_after)
        }
        Some(_) | None => by_status,
    }
}

/// What an error inside a stream means. One that says nothing known may pass.
pub(crate) fn in_stream(error: &Value) -> ModelError {
    let status = || {
        let code = error.get("code")?;
        let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
        u16::try_from(number)
            .ok()
            .filter(|status| (400..600).contains(status))
    };
    by_words(error)
        .or_else(|| Some(by_status(status()?, None)))
        .unwrap_or(ModelError::passing(LlmErrorClass::Provider))
}

/// What a status means.
pub(crate) fn by_status(status: u16, retry_after: Option<Duration>) -> ModelError {
    let error = match status {
        429 => ModelError::passing(LlmErrorClass::RateLimited),
        408 | 409 | 500.. => ModelError::passing(LlmErrorClass::Provider),
        _ => ModelError::from(LlmErrorClass::Provider),
    };
    not_before(error, retry_after)
}

/// What the error's code, type or status means, the most telling first.
fn by_words(error: &Value) -> Option<ModelError> {
    let words = ["code", "type", "status"];
    let mut words = words.iter().filter_map(|name| error.get(name)?.as_str());
    words.find_map(by_word)
}

fn by_word(word: &str) -> Option<ModelError> {
    if SPENT.contains(&word) {
        Some(LlmErrorClass::RateLimited.into())
    } else if TOO_MUCH.contains(&word) {
        Some(ModelError::passing(LlmErrorClass::RateLimited))
    } else if REFUSED.contains(&word) {
        Some(LlmErrorClass::Provider.into())
    } else {
        None
    }
}

/// The vendor's own time, where the call may be tried again at all.
fn not_before(error: ModelError, retry_after: Option<Duration>) -> ModelError {
    match (error.again, retry_after) {
        (Again::Soon, Some(after)) => ModelError {
            again: Again::After(after),
            ..error
        },
        (Again::Soon | Again::Never | Again::After(_), _) => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROVIDER: LlmErrorClass = LlmErrorClass::Provider;
    const LIMITED: LlmErrorClass = LlmErrorClass::RateLimited;

    fn told(status: u16, retry_after: Option<u64>, body: &str) -> (LlmErrorClass, Again) {
        let error = refused(Refused {
            status,
            retry_after: retry_after.map(Duration::from_secs),
            body: body.as_bytes(),
        });
        (error.class, error.again)
    }

    #[test]
    fn a_status_says_whether_to_try_again() {
        let ten = Again::After(Duration::from_secs(10));
        assert_eq!(told(429, None, ""), (LIMITED, Again::Soon));
        assert_eq!(told(429, Some(10), "{}"), (LIMITED, ten));
        for status in [408, 409, 500, 502, 503, 504, 529] {
            assert_eq!(told(status, None, ""), (PROVIDER, Again::Soon));
            assert_eq!(told(status, Some(10), ""), (PROVIDER, ten));
        }
        for status in [200, 301, 400, 401, 403, 404, 413, 422] {
            let never = (PROVIDER, Again::Never);
            assert_eq!(told(status, Some(10), "<html>"), never);
        }
    }

    #[test]
    fn a_spent_account_is_a_limit_that_does_not_pass() {
        let body =
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        for status in [400, 403, 429] {
            assert_eq!(told(status, Some(10), body), (LIMITED, Again::Never));
        }
        let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#;
        assert_eq!(told(400, None, body), (LIMITED, Again::Soon));
    }

    #[test]
    fn the_message_is_not_read() {
        let body = r#"{"error":{"message":"insufficient_quota","type":"invalid_request_error"}}"#;
        assert_eq!(told(400, None, body), (PROVIDER, Again::Never));
    }

    #[test]
    fn an_error_in_a_stream_is_told_by_its_word_else_by_its_number() {
        let said = |error: Value| {
            let error = in_stream(&error);
            (error.class, error.again)
        };
        let soon = (PROVIDER, Again::Soon);
        let never = (PROVIDER, Again::Never);
        assert_eq!(said(json!({"type": "overloaded_error"})), soon);
        assert_eq!(said(json!({"type": "api_error"})), soon);
        assert_eq!(
            said(json!({"type": "rate_limit_error"})),
            (LIMITED, Again::Soon)
        );
        assert_eq!(said(json!({"type": "invalid_request_error"})), never);
        assert_eq!(
            said(json!({"code": 400, "type": "exceed_context_size_error"})),
            never
        );
        assert_eq!(said(json!({"code": 400})), never);
        assert_eq!(said(json!({"code": "429"})), (LIMITED, Again::Soon));
        assert_eq!(said(json!({"code": 503})), soon);
        assert_eq!(said(json!({"code": 1_000_000})), soon);
        assert_eq!(
            said(json!({"code": "insufficient_quota"})),
            (LIMITED, Again::Never)
        );
        assert_eq!(said(json!("it broke")), soon);
        assert_eq!(said(Value::Null), soon);
    }
}
