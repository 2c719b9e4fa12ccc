//! Rates at their edges: the last use that fits, the first that does not, and what comes back.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn refused(seconds: f64) -> Result<(), RateExceeded> {
    let retry_in = Duration::from_secs_f64(seconds);
    Err(RateExceeded { retry_in })
}

#[test]
fn whole_limit_can_be_used_at_once_and_comes_back_evenly() {
    for limit in [1, 3, 7, 60, 1_000_003] {
        let (rates, now) = (Rates::new(limit, MINUTE), Instant::now());
        rates.charge(&"ann", limit - 1, now);
        assert_eq!(rates.take(&"ann", now), Ok(()), "{limit}");
        assert!(rates.take(&"ann", now).is_err(), "{limit}");
        assert_eq!(rates.state(&"ann", now).left, 0, "{limit}");
    }
    let (rates, now) = (Rates::new(6, MINUTE), Instant::now());
    for used in 1..=6 {
        assert_eq!(rates.take(&"ann", now), Ok(()));
        let full_in = Duration::from_secs(10 * used);
        let left = 6 - used;
        assert_eq!(rates.state(&"ann", now), RateState { left, full_in });
    }
    assert_eq!(rates.take(&"ann", now), refused(10.0));
    let just_before = now + Duration::from_millis(9_999);
    assert_eq!(rates.take(&"ann", just_before), refused(0.001));
    let back = now + Duration::from_secs(10);
    assert_eq!(rates.state(&"ann", back).left, 1);
    assert_eq!(rates.take(&"ann", back), Ok(()));
    assert_eq!(rates.take(&"ann", back), refused(10.0));
}

#[test]
fn owners_do_not_share_and_a_refusal_uses_nothing() {
    let (rates, now) = (Rates::new(1, MINUTE), Instant::now());
    assert_eq!(rates.take(&"ann", now), Ok(()));
    for _ in 0..5 {
        assert_eq!(rates.take(&"ann", now), refused(60.0));
    }
    assert_eq!(rates.take(&"bob", now), Ok(()));
}

#[test]
fn what_is_given_back_can_be_used_again() {
    let (rates, now) = (Rates::new(2, MINUTE), Instant::now());
    assert_eq!(rates.take(&"ann", now), Ok(()));
    assert_eq!(rates.take(&"ann", now), Ok(()));
    rates.give_back(&"ann");
    assert_eq!(rates.state(&"ann", now).left, 1);
    assert_eq!(rates.take(&"ann", now), Ok(()));
    assert!(rates.take(&"ann", now).is_err());
    rates.give_back(&"nobody");
}

#[test]
fn charge_may_make_a_debt_that_is_bounded() {
    let (rates, now) = (Rates::new(1_000, MINUTE), Instant::now());
    rates.charge(&"ann", 999, now);
    assert_eq!(rates.check(&"ann", now), Ok(()), "one is left");
    rates.charge(&"ann", 1, now);
    assert_eq!(rates.check(&"ann", now), refused(0.06), "none is left");
    rates.charge(&"ann", 1_000, now);
    assert_eq!(rates.check(&"ann", now), refused(60.06));
    rates.charge(&"ann", u64::MAX, now);
    assert_eq!(rates.check(&"ann", now), refused(3_600.06));
    assert_eq!(rates.state(&"ann", now).left, 0);
}

#[test]
fn owners_that_have_everything_back_are_forgotten() {
    let (rates, now) = (Rates::new(1_000, MINUTE), Instant::now());
    for owner in 0..SWEEP_MIN {
        assert_eq!(rates.take(&owner, now), Ok(()));
    }
    let later = now + Duration::from_secs(1);
    assert_eq!(rates.take(&SWEEP_MIN, later), Ok(()));
    assert_eq!(rates.owners.lock().full_at.len(), 1);
}

#[test]
fn owners_above_the_bound_are_refused_while_the_others_go_on() {
    let (rates, now) = (Rates::new(2, MINUTE), Instant::now());
    for owner in 0..OWNERS_MAX {
        assert_eq!(rates.take(&owner, now), Ok(()));
    }
    assert_eq!(rates.take(&OWNERS_MAX, now), refused(1.0));
    assert_eq!(rates.take(&0, now), Ok(()));
    assert_eq!(rates.owners.lock().full_at.len(), OWNERS_MAX);
}
