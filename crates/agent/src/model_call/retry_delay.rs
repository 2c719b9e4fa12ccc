//! The delay before the next attempt of a model call that failed without output. Pure functions.
//!
//! The delay doubles with each attempt, up to a bound, and is spread over its whole length, so that
//! a thousand turns that were refused at the same time do not retry at the same time.

use std::time::Duration;

use turnwire_event::CallId;
use turnwire_model::RetryHint;

use crate::options::RetryOptions;

/// The longest delay that a provider may ask for: the user waits too, and half a minute without
/// output is as good as a failure.
const PROVIDER_DELAY_MAX: Duration = Duration::from_secs(30);

/// The delay before the next attempt; `None` if there is no further attempt. `attempts` is how
/// often the model was called, [`jitter`] is between 0 and 1.
pub(crate) fn retry_delay(
    retries: RetryOptions,
    hint: RetryHint,
    attempts: u32,
    jitter: f64,
) -> Option<Duration> {
    if attempts >= retries.attempts {
        return None;
    }
    // Beyond 2^16 times the base the bound has long been reached.
    let factor = 1_u32 << attempts.saturating_sub(1).min(16);
    match hint {
        RetryHint::Never => None,
        RetryHint::Backoff => {
            let longest = retries
                .base_delay
                .saturating_mul(factor)
                .min(retries.max_delay);
            Some(longest.mul_f64(jitter))
        }
        RetryHint::After(delay) if delay > PROVIDER_DELAY_MAX => None,
        // Not before the provider's time, and not all turns exactly at it.
        RetryHint::After(delay) => {
            Some(delay + retries.base_delay.min(retries.max_delay).mul_f64(jitter))
        }
    }
}

/// A number in `0.0..1.0` derived from the id of a call: as good as random, because ids are, and
/// reproducible in tests that count ids.
pub(crate) fn jitter(call: CallId) -> f64 {
    let id = call.0.0;
    let mut mixed = (id >> 64) as u64 ^ id as u64;
    // Every bit of the id changes every bit of the result (splitmix64).
    mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use turnwire_event::Ulid;

    use super::*;

    const RETRIES: RetryOptions = RetryOptions {
        attempts: 6,
        base_delay: Duration::from_millis(500),
        max_delay: Duration::from_secs(3),
    };

    #[test]
    fn delays_double_up_to_the_bound_and_attempts_end() {
        let delay = |attempts| {
            let delay = retry_delay(RETRIES, RetryHint::Backoff, attempts, 1.0);
            delay.map(|delay| delay.as_millis())
        };
        let delays: Vec<_> = (1..=6).map(delay).collect();
        let expected = [Some(500), Some(1000), Some(2000), Some(3000), Some(3000)];
        assert_eq!(delays[..5], expected);
        assert_eq!(delays[5], None);
    }

    #[test]
    fn delay_is_spread_over_its_whole_length() {
        let delay = |jitter| retry_delay(RETRIES, RetryHint::Backoff, 2, jitter);
        assert_eq!(delay(0.0), Some(Duration::ZERO));
        assert_eq!(delay(0.25), Some(Duration::from_millis(250)));
    }

    #[test]
    fn provider_delay_is_kept_unless_it_is_too_long() {
        let after = |ms| retry_delay(RETRIES, RetryHint::After(Duration::from_millis(ms)), 1, 0.5);
        assert_eq!(after(0), Some(Duration::from_millis(250)));
        assert_eq!(after(30_000), Some(Duration::from_millis(30_250)));
        assert_eq!(after(30_001), None);
    }

    #[test]
    fn permanent_failure_is_not_retried() {
        assert_eq!(retry_delay(RETRIES, RetryHint::Never, 1, 0.5), None);
        let no_attempts = RetryOptions {
            attempts: 0,
            ..RETRIES
        };
        assert_eq!(retry_delay(no_attempts, RetryHint::Backoff, 1, 0.5), None);
    }

    #[test]
    fn extreme_settings_do_not_overflow() {
        let extreme = RetryOptions {
            attempts: u32::MAX,
            base_delay: Duration::MAX,
            max_delay: Duration::from_millis(u64::MAX),
        };
        assert!(retry_delay(extreme, RetryHint::Backoff, u32::MAX - 1, 0.999).is_some());
        assert!(retry_delay(extreme, RetryHint::After(PROVIDER_DELAY_MAX), 1, 0.999).is_some());
    }

    #[test]
    fn jitter_of_counted_ids_is_spread_evenly() {
        let mut tenths = [0; 10];
        for n in 0..1_000 {
            let jitter = jitter(CallId(Ulid(n)));
            assert!((0.0..1.0).contains(&jitter), "{jitter}");
            tenths[(jitter * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|&n| (70..130).contains(&n)), "{tenths:?}");
    }
}
