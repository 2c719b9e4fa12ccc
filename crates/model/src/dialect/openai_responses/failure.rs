//! What an error in a stream of Responses means: its class, and whether asking again may help.

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;

use crate::delta::ModelError;
use crate::dialect::trouble;

/// An error: its object, or only its code.
pub(super) fn of(error: Option<Value>) -> ModelError {
    let error = match error.unwrap_or_default() {
        code @ (Value::String(_) | Value::Number(_)) => json!({"code": code}),
        error => error,
    };
    let code = error.get("code").and_then(Value::as_str);
    if code.is_some_and(is_of_the_request) {
        return LlmErrorClass::Provider.into();
    }
    trouble::in_stream(&error)
}

/// Codes that only an answer that failed has: it did for what was asked.
fn is_of_the_request(code: &str) -> bool {
    let begins = ["invalid_", "image_", "unsupported_", "empty_", "failed_to_"];
    begins.iter().any(|begin| code.starts_with(begin))
        || code.contains("policy")
        || code == "data_residency_mismatch"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::Again;

    #[test]
    fn an_error_in_the_stream_says_its_class_and_whether_to_ask_again() {
        let rate = LlmErrorClass::RateLimited;
        let provider = LlmErrorClass::Provider;
        let cases = [
            (json!({"code": "server_error"}), provider, Again::Soon),
            (
                json!({"code": "vector_store_timeout"}),
                provider,
                Again::Soon,
            ),
            (json!({"code": "rate_limit_exceeded"}), rate, Again::Soon),
            (json!("rate_limit_exceeded"), rate, Again::Soon),
            (json!({"type": "insufficient_quota"}), rate, Again::Never),
            (json!({"code": "invalid_prompt"}), provider, Again::Never),
            (json!({"code": "bio_policy"}), provider, Again::Never),
            (json!({"code": 503}), provider, Again::Soon),
            (json!(400), provider, Again::Never),
            (json!({"message": "?"}), provider, Again::Soon),
            (Value::Null, provider, Again::Soon),
        ];
        for (error, class, again) in cases {
            let expected = ModelError::new(class, again);
            assert_eq!(of(Some(error.clone())), expected, "{error}");
        }
        assert_eq!(of(None), ModelError::passing(provider));
    }
}
