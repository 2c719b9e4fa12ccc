//! What an error of Google's means: its status in words, and the time it asks us to wait.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;

use crate::delta::{Again, ModelError};
use crate::dialect::{Refused, trouble};

/// The longest time that is believed: quotas are by the day.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// An answer that is no stream.
pub(super) fn refused(refused: Refused<'_>) -> ModelError {
    let by_status = trouble::refused(refused);
    let body: Option<Value> = serde_json::from_slice(refused.body).ok();
    match body.as_ref().and_then(error_of) {
        Some(error) => by_details(by_status, error),
        None => by_status,
    }
}

/// The error in a body. Without `alt=sse` an answer is a list of frames, and so is its error.
fn error_of(body: &Value) -> Option<&Value> {
    body.get("error").or_else(|| body.get(0)?.get("error"))
}

/// An error inside a stream.
pub(super) fn of(error: &Value) -> ModelError {
    by_details(trouble::in_stream(error), error)
}

/// What the error says of itself in its details.
fn by_details(error: ModelError, said: &Value) -> ModelError {
    if error.class == LlmErrorClass::RateLimited && is_spent(said) {
        return LlmErrorClass::RateLimited.into();
    }
    match (error.again, wait(said)) {
        (Again::Soon, Some(wait)) => ModelError {
            again: Again::After(wait),
            ..error
        },
        (Again::Soon | Again::Never | Again::After(_), _) => error,
    }
}

/// The vendor let nothing of the answer through, or not even the question in.
pub(super) fn withheld() -> ModelError {
    LlmErrorClass::Provider.into()
}

/// The model wrote a call that is none. Another try may do better.
pub(super) fn slipped() -> ModelError {
    ModelError::passing(LlmErrorClass::Provider)
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

/// The time the vendor asks us to wait, written `3.5s`.
fn wait(error: &Value) -> Option<Duration> {
    let delay = details(error).find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    Some(wait.min(WAIT_MAX))
}

/// Whether a day's quota is gone: waiting as long as is asked for would not bring it back.
fn is_spent(error: &Value) -> bool {
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
    fn the_vendor_says_how_long_to_wait() {
        let told = |delay: &str| of(&exhausted(json!([retry_info(delay)]))).again;
        assert_eq!(told("34.5s"), Again::After(Duration::from_millis(34_500)));
        assert_eq!(told("0s"), Again::After(Duration::ZERO));
        assert_eq!(told("1e300s"), Again::Soon);
        assert_eq!(told("99999999s"), Again::After(WAIT_MAX));
        for odd in ["", "s", "-1s", "NaNs", "3 minutes"] {
            assert_eq!(told(odd), Again::Soon, "{odd}");
        }
    }

    #[test]
    fn a_minutes_quota_passes_and_a_days_does_not() {
        let minute = quota("GenerateRequestsPerMinutePerProjectPerModel");
        let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
        let minute = of(&exhausted(json!([minute, retry_info("2s")])));
        assert_eq!(minute.class, RATE);
        assert_eq!(minute.again, Again::After(Duration::from_secs(2)));
        let day = of(&exhausted(json!([day, retry_info("2s")])));
        assert_eq!(day, RATE.into());
    }

    #[test]
    fn other_errors_are_told_by_their_status() {
        let told = |code: u16, status: &str| {
            let error = of(&json!({"code": code, "status": status, "message": "m"}));
            (error.class, error.again)
        };
        assert_eq!(told(503, "UNAVAILABLE"), (PROVIDER, Again::Soon));
        assert_eq!(told(500, "INTERNAL"), (PROVIDER, Again::Soon));
        assert_eq!(told(400, "INVALID_ARGUMENT"), (PROVIDER, Again::Never));
        assert_eq!(told(403, "PERMISSION_DENIED"), (PROVIDER, Again::Never));
        assert_eq!(of(&json!("?")), ModelError::passing(PROVIDER));
    }

    #[test]
    fn a_refusal_says_it_in_its_body_alone_or_in_a_list() {
        let body = |inside: Value| inside.to_string();
        let refused = |status, retry_after, body: &str| {
            refused(Refused {
                status,
                retry_after,
                body: body.as_bytes(),
            })
        };
        let alone = body(json!({"error": exhausted(json!([retry_info("7s")]))}));
        let list = body(json!([{"error": exhausted(json!([retry_info("7s")]))}]));
        let seven = Again::After(Duration::from_secs(7));
        assert_eq!(refused(429, None, &alone).again, seven);
        assert_eq!(refused(429, None, &list).again, seven);
        // The header is the nearer word.
        let one = Some(Duration::from_secs(1));
        let by_header = refused(429, one, &alone).again;
        assert_eq!(by_header, Again::After(Duration::from_secs(1)));
        assert_eq!(refused(404, None, "{}").again, Again::Never);
        assert_eq!(refused(503, None, "<html>"), ModelError::passing(PROVIDER));
    }
}
