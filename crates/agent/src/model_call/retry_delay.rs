//! Trying again: how long to wait after a call that failed before it said anything. Pure.
//!
//! The wait doubles, up to a bound, and is spread over its whole length, so that a thousand turns
//! that were refused at once do not come back at once.

use std::time::Duration;

use turnwire_event::CallId;
use turnwire_model::Again;

use crate::options::Retries;

/// The longest a provider's own time is waited for: a person waits too, and half a minute without
/// a word is as good as a failure.
const AFTER_MAX: Duration = Duration::from_secs(30);

/// How long to wait before the next try; none if there is none. `tried` is how often the model has
/// been asked, `dice` is between 0 and 1.
pub(crate) fn wait(retries: Retries, again: Again, tried: u32, dice: f64) -> Option<Duration> {
    if tried >= retries.attempts {
        return None;
    }
    // Beyond 2^16 times the base the bound has long been reached.
    let doubled = 1_u32 << tried.saturating_sub(1).min(16);
    match again {
        Again::Never => None,
        Again::Soon => {
            let most = retries.base.saturating_mul(doubled).min(retries.max);
            Some(most.mul_f64(dice))
        }
        Again::After(time) if time > AFTER_MAX => None,
        // Not before its time, and not all at once at it.
        Again::After(time) => Some(time + retries.base.min(retries.max).mul_f64(dice)),
    }
}

/// A number from 0 to 1, without 1, that is thrown with a call's name: as good as random, because
/// names are, and known wherever names are given out one by one.
pub(crate) fn dice(call: CallId) -> f64 {
    let id = call.0.0;
    let mut mixed = (id >> 64) as u64 ^ id as u64;
    // Every bit of the name moves every bit of the throw (splitmix64).
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

    const RETRIES: Retries = Retries {
        attempts: 6,
        base: Duration::from_millis(500),
        max: Duration::from_secs(3),
    };

    #[test]
    fn waits_double_up_to_their_bound_and_tries_end() {
        let wait = |tried| wait(RETRIES, Again::Soon, tried, 1.0).map(|wait| wait.as_millis());
        let waits: Vec<_> = (1..=6).map(wait).collect();
        let expected = [Some(500), Some(1000), Some(2000), Some(3000), Some(3000)];
        assert_eq!(waits[..5], expected);
        assert_eq!(waits[5], None);
    }

    #[test]
    fn a_wait_is_spread_over_its_whole_length() {
        let wait = |dice| wait(RETRIES, Again::Soon, 2, dice);
        assert_eq!(wait(0.0), Some(Duration::ZERO));
        assert_eq!(wait(0.25), Some(Duration::from_millis(250)));
    }

    #[test]
    fn a_providers_own_time_is_kept_unless_it_is_too_long() {
        let after = |ms| wait(RETRIES, Again::After(Duration::from_millis(ms)), 1, 0.5);
        assert_eq!(after(0), Some(Duration::from_millis(250)));
        assert_eq!(after(30_000), Some(Duration::from_millis(30_250)));
        assert_eq!(after(30_001), None);
    }

    #[test]
    fn what_will_not_pass_is_not_tried_again() {
        assert_eq!(wait(RETRIES, Again::Never, 1, 0.5), None);
        let none = Retries {
            attempts: 0,
            ..RETRIES
        };
        assert_eq!(wait(none, Again::Soon, 1, 0.5), None);
    }

    #[test]
    fn wild_settings_break_nothing() {
        let wild = Retries {
            attempts: u32::MAX,
            base: Duration::MAX,
            max: Duration::from_millis(u64::MAX),
        };
        assert!(wait(wild, Again::Soon, u32::MAX - 1, 0.999).is_some());
        assert!(wait(wild, Again::After(AFTER_MAX), 1, 0.999).is_some());
    }

    #[test]
    fn throws_are_spread_evenly_even_where_names_are_counted() {
        let mut tenths = [0; 10];
        for n in 0..1_000 {
            let dice = dice(CallId(Ulid(n)));
            assert!((0.0..1.0).contains(&dice), "{dice}");
            tenths[(dice * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|&n| (70..130).contains(&n)), "{tenths:?}");
    }
}
