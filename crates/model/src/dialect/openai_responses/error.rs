//! Classifies an error inside a Responses stream, and decides whether a retry may help. The shared
//! table is in [`crate::dialect::error_class`].

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;

use crate::delta::ModelError;
use crate::dialect::error_class;

/// Classifies an error object or a bare error code.
pub(super) fn classify(error: Option<Value>) -> ModelError {
    let error = match error.unwrap_or_default() {
        code @ (Value::String(_) | Value::Number(_)) => json!({"code": code}),
        error => error,
    };
    let code = error.get("code").and_then(Value::as_str);
    if code.is_some_and(is_request_error) {
        return LlmErrorClass::Provider.into();
    }
    error_class::classify_event(&error)
}

/// True for codes that reject the request itself; only failed answers have them.
fn is_request_error(code: &str) -> bool {
    let prefixes = ["invalid_", "image_", "unsupported_", "empty_", "failed_to_"];
    prefixes.iter().any(|prefix| code.starts_with(prefix))
        || code.contains("policy")
        || code == "data_residency_mismatch"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::RetryHint;

    #[test]
    fn stream_error_code_decides_class_and_retry() {
        let rate = LlmErrorClass::RateLimited;
        let provider = LlmErrorClass::Provider;
        let cases = [
            (
                json!({"code": "server_error"}),
                provider,
                RetryHint::Backoff,
            ),
            (
                json!({"code": "vector_store_timeout"}),
                provider,
                RetryHint::Backoff,
            ),
            (
                json!({"code": "rate_limit_exceeded"}),
                rate,
                RetryHint::Backoff,
            ),
            (json!("rate_limit_exceeded"), rate, RetryHint::Backoff),
            (
                json!({"type": "insufficient_quota"}),
                rate,
                RetryHint::Never,
            ),
            (
                json!({"code": "invalid_prompt"}),
                provider,
                RetryHint::Never,
            ),
            (json!({"code": "bio_policy"}), provider, RetryHint::Never),
            (json!({"code": 503}), provider, RetryHint::Backoff),
            (json!(400), provider, RetryHint::Never),
            (json!({"message": "?"}), provider, RetryHint::Backoff),
            (Value::Null, provider, RetryHint::Backoff),
        ];
        for (error, class, again) in cases {
            let expected = ModelError::new(class, again);
            assert_eq!(classify(Some(error.clone())), expected, "{error}");
        }
        assert_eq!(classify(None), ModelError::transient(provider));
    }
}
