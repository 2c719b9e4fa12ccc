//! Classifies vendors' errors: by their error code, else by the HTTP status.
//!
//! The vendors' error codes do not contradict each other, and compatible servers mix them, so one
//! table serves all. Error messages are never read: they may quote the user.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;

use crate::delta::ModelError;
use crate::dialect::ErrorResponse;

/// Classifies an [`ErrorResponse`]. A rate-limit code in a 4xx body counts before the status, since
/// some servers report a limit with 400 or 403.
pub(crate) fn classify_response(response: ErrorResponse<'_>) -> ModelError {
    let from_status = from_status(response.status, response.retry_after);
    if !(400..500).contains(&response.status) {
        return from_status;
    }
    let body: Option<Value> = serde_json::from_slice(response.body).ok();
    let error = body.as_ref().and_then(|body| body.get("error"));
    match error.and_then(from_error_object) {
        Some(limit) if limit.class == LlmErrorClass::RateLimited => {
            limit.with_retry_after(response.retry_after)
        }
        Some(_) | None => from_status,
    }
}

/// Classifies an error event inside a stream. An unknown error is transient.
pub(crate) fn classify_event(error: &Value) -> ModelError {
    let status = || {
        let code = error.get("code")?;
        let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
        u16::try_from(number)
            .ok()
            .filter(|status| (400..600).contains(status))
    };
    from_error_object(error)
        .or_else(|| Some(from_status(status()?, None)))
        .unwrap_or(ModelError::transient(LlmErrorClass::Provider))
}

/// Classifies the data of an error event: an error object, or an object around it.
pub(crate) fn classify_event_data(data: &str) -> ModelError {
    let error: Value = serde_json::from_str(data).unwrap_or_default();
    classify_event(error.get("error").unwrap_or(&error))
}

/// Classifies an HTTP status.
pub(crate) fn from_status(status: u16, retry_after: Option<Duration>) -> ModelError {
    let error = match status {
        429 => ModelError::transient(LlmErrorClass::RateLimited),
        408 | 409 | 500.. => ModelError::transient(LlmErrorClass::Provider),
        _ => ModelError::from(LlmErrorClass::Provider),
    };
    error.with_retry_after(retry_after)
}

/// Classifies an error object by its `code`, `type` or `status`, the most specific first.
fn from_error_object(error: &Value) -> Option<ModelError> {
    let codes = ["code", "type", "status"];
    let mut codes = codes.iter().filter_map(|name| error.get(name)?.as_str());
    codes.find_map(from_code)
}

fn from_code(code: &str) -> Option<ModelError> {
    match code {
        // The account's quota is used up: waiting does not help.
        "insufficient_quota" | "billing_hard_limit_reached" | "quota_exceeded" => {
            Some(LlmErrorClass::RateLimited.into())
        }
        // The rate limit is exceeded: waiting helps.
        "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" | "RESOURCE_EXHAUSTED" => {
            Some(ModelError::transient(LlmErrorClass::RateLimited))
        }
        // The request itself is rejected: a retry fails the same way.
        "authentication_error"
        | "billing_error"
        | "content_policy_violation"
        | "context_length_exceeded"
        | "exceed_context_size_error"
        | "invalid_api_key"
        | "invalid_prompt"
        | "invalid_request_error"
        | "model_not_found"
        | "not_found_error"
        | "permission_error"
        | "request_too_large"
        | "INVALID_ARGUMENT"
        | "NOT_FOUND"
        | "PERMISSION_DENIED"
        | "UNAUTHENTICATED"
        | "FAILED_PRECONDITION" => Some(LlmErrorClass::Provider.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::delta::RetryHint;

    const PROVIDER: LlmErrorClass = LlmErrorClass::Provider;
    const LIMITED: LlmErrorClass = LlmErrorClass::RateLimited;

    fn classified(status: u16, retry_after: Option<u64>, body: &str) -> (LlmErrorClass, RetryHint) {
        let error = classify_response(ErrorResponse {
            status,
            retry_after: retry_after.map(Duration::from_secs),
            body: body.as_bytes(),
        });
        (error.class, error.retry)
    }

    #[test]
    fn status_decides_class_and_retry() {
        let ten = RetryHint::After(Duration::from_secs(10));
        assert_eq!(classified(429, None, ""), (LIMITED, RetryHint::Backoff));
        assert_eq!(classified(429, Some(10), "{}"), (LIMITED, ten));
        for status in [408, 409, 500, 502, 503, 504, 529] {
            assert_eq!(classified(status, None, ""), (PROVIDER, RetryHint::Backoff));
            assert_eq!(classified(status, Some(10), ""), (PROVIDER, ten));
        }
        for status in [200, 301, 400, 401, 403, 404, 413, 422] {
            let never = (PROVIDER, RetryHint::Never);
            assert_eq!(classified(status, Some(10), "<html>"), never);
        }
    }

    #[test]
    fn exhausted_quota_is_a_permanent_rate_limit() {
        let body =
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        for status in [400, 403, 429] {
            assert_eq!(
                classified(status, Some(10), body),
                (LIMITED, RetryHint::Never)
            );
        }
        let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#;
        assert_eq!(classified(400, None, body), (LIMITED, RetryHint::Backoff));
    }

    #[test]
    fn error_message_is_not_used_for_classification() {
        let body = r#"{"error":{"message":"insufficient_quota","type":"invalid_request_error"}}"#;
        assert_eq!(classified(400, None, body), (PROVIDER, RetryHint::Never));
    }

    #[test]
    fn stream_error_is_classified_by_code_else_by_status() {
        let classify = |error: Value| {
            let error = classify_event(&error);
            (error.class, error.retry)
        };
        let soon = (PROVIDER, RetryHint::Backoff);
        let never = (PROVIDER, RetryHint::Never);
        assert_eq!(classify(json!({"type": "overloaded_error"})), soon);
        assert_eq!(classify(json!({"type": "api_error"})), soon);
        assert_eq!(
            classify(json!({"type": "rate_limit_error"})),
            (LIMITED, RetryHint::Backoff)
        );
        assert_eq!(classify(json!({"type": "invalid_request_error"})), never);
        assert_eq!(
            classify(json!({"code": 400, "type": "exceed_context_size_error"})),
            never
        );
        assert_eq!(classify(json!({"code": 400})), never);
        assert_eq!(
            classify(json!({"code": "429"})),
            (LIMITED, RetryHint::Backoff)
        );
        assert_eq!(classify(json!({"code": 503})), soon);
        assert_eq!(classify(json!({"code": 1_000_000})), soon);
        assert_eq!(
            classify(json!({"code": "insufficient_quota"})),
            (LIMITED, RetryHint::Never)
        );
        assert_eq!(classify(json!("it broke")), soon);
        assert_eq!(classify(Value::Null), soon);
    }
}
