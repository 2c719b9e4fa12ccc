//! Classifies Google's errors: by the status text, and by the retry delay in the error's details.
//! The shared table is in [`crate::dialect::error_class`].

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;

use crate::delta::ModelError;
use crate::dialect::{ErrorResponse, error_class};

/// Upper limit of the retry delay: quotas are per day.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// Classifies an [`ErrorResponse`] of the vendor.
pub(super) fn classify_response(response: ErrorResponse<'_>) -> ModelError {
    let from_status = error_class::classify_response(response);
    let body: Option<Value> = serde_json::from_slice(response.body).ok();
    match body.as_ref().and_then(error_object) {
        Some(error) => with_details(from_status, error),
        None => from_status,
    }
}

/// The error object of a body. Without `alt=sse` a response is a list of frames, and so is its
/// error.
fn error_object(body: &Value) -> Option<&Value> {
    body.get("error").or_else(|| body.get(0)?.get("error"))
}

/// Classifies an error inside a stream.
pub(super) fn classify(error: &Value) -> ModelError {
    with_details(error_class::classify_event(error), error)
}

/// Refines the classification by the error's details.
fn with_details(error: ModelError, details: &Value) -> ModelError {
    if error.class == LlmErrorClass::RateLimited && is_daily_quota_exhausted(details) {
        return LlmErrorClass::RateLimited.into();
    }
    error.with_retry_after(retry_delay(details))
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

/// The retry delay that the vendor asks for, written `3.5s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let delay = details(error).find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    let retry_delay = Duration::try_from_secs_f64(seconds).ok()?;
    Some(retry_delay.min(RETRY_DELAY_MAX))
}

/// True if a daily quota is exhausted: the requested delay would not help.
fn is_daily_quota_exhausted(error: &Value) -> bool {
    let violations = details(error).filter_map(|detail| detail["violations"].as_array());
    let mut ids = violations
        .flatten()
        .filter_map(|violation| violation["quotaId"].as_str());
    ids.any(|id| id.contains("PerDay"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::delta::RetryHint;

    const RATE: LlmErrorClass = LlmErrorClass::RateLimited;
    const PROVIDER: LlmErrorClass = LlmErrorClass::Provider;

    fn exhausted(details: Value) -> Value {
        json!({"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details})
    }

    fn retry_info(delay: &str) -> Value {
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    }

    fn quota(id: &str) -> Value {
        let violations = [json!({"quotaMetric": "m", "quotaId": id})];
        json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations})
    }

    #[test]
    fn retry_delay_is_read_from_the_details() {
        let retry = |delay: &str| classify(&exhausted(json!([retry_info(delay)]))).retry;
        assert_eq!(
            retry("34.5s"),
            RetryHint::After(Duration::from_millis(34_500))
        );
        assert_eq!(retry("0s"), RetryHint::After(Duration::ZERO));
        assert_eq!(retry("1e300s"), RetryHint::Backoff);
        assert_eq!(retry("99999999s"), RetryHint::After(RETRY_DELAY_MAX));
        for odd in ["", "s", "-1s", "NaNs", "3 minutes"] {
            assert_eq!(retry(odd), RetryHint::Backoff, "{odd}");
        }
    }

    #[test]
    fn minute_quota_is_transient_and_daily_quota_permanent() {
        let minute = quota("GenerateRequestsPerMinutePerProjectPerModel");
        let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
        let minute = classify(&exhausted(json!([minute, retry_info("2s")])));
        assert_eq!(minute.class, RATE);
        assert_eq!(minute.retry, RetryHint::After(Duration::from_secs(2)));
        let day = classify(&exhausted(json!([day, retry_info("2s")])));
        assert_eq!(day, RATE.into());
    }

    #[test]
    fn error_without_details_is_classified_by_status() {
        let retry = |code: u16, status: &str| {
            let error = classify(&json!({"code": code, "status": status, "message": "m"}));
            (error.class, error.retry)
        };
        assert_eq!(retry(503, "UNAVAILABLE"), (PROVIDER, RetryHint::Backoff));
        assert_eq!(retry(500, "INTERNAL"), (PROVIDER, RetryHint::Backoff));
        assert_eq!(retry(400, "INVALID_ARGUMENT"), (PROVIDER, RetryHint::Never));
        assert_eq!(
            retry(403, "PERMISSION_DENIED"),
            (PROVIDER, RetryHint::Never)
        );
        assert_eq!(classify(&json!("?")), ModelError::transient(PROVIDER));
    }

    #[test]
    fn error_response_is_read_from_an_object_or_a_list() {
        let body = |inside: Value| inside.to_string();
        let classify_status = |status, retry_after, body: &str| {
            classify_response(ErrorResponse {
                status,
                retry_after,
                body: body.as_bytes(),
            })
        };
        let alone = body(json!({"error": exhausted(json!([retry_info("7s")]))}));
        let list = body(json!([{"error": exhausted(json!([retry_info("7s")]))}]));
        let seven = RetryHint::After(Duration::from_secs(7));
        assert_eq!(classify_status(429, None, &alone).retry, seven);
        assert_eq!(classify_status(429, None, &list).retry, seven);
        // The header counts before the body.
        let one = Some(Duration::from_secs(1));
        let by_header = classify_status(429, one, &alone).retry;
        assert_eq!(by_header, RetryHint::After(Duration::from_secs(1)));
        assert_eq!(classify_status(404, None, "{}").retry, RetryHint::Never);
        assert_eq!(
            classify_status(503, None, "<html>"),
            ModelError::transient(PROVIDER)
        );
    }
}
