//! How long to wait before coming back: doubled each time, with jitter, so that a thousand
//! clients cut at once do not return at once.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// The waits of one watch.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after one more failure: between half and the whole of the doubled step.
    pub(crate) fn next(&mut self) -> Duration {
        self.wait(dice())
    }

    /// Starts over, after something worked.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait for a throw of the dice between 0 and 1.
    fn wait(&mut self, dice: f64) -> Duration {
        let step = FIRST
            .saturating_mul(1 << self.failures.min(10))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(0.5 + dice / 2.0)
    }
}

fn dice() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_start_over() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..9).map(|_| backoff.wait(1.0).as_millis()).collect();
        let expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
        assert_eq!(waits, expected);
        backoff.reset();
        assert_eq!(backoff.wait(0.0), Duration::from_millis(50));
    }

    #[test]
    fn waits_are_spread() {
        let waits: std::collections::HashSet<_> =
            (0..20).map(|_| Backoff::default().next()).collect();
        assert!(waits.len() > 10, "{waits:?}");
    }
}
