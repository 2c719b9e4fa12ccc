//! The delay before a reconnect: doubled after each failure, with jitter, so that many clients that
//! lose their connection at once do not reconnect at once.

use std::time::Duration;

const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(10);

/// The reconnect delays of one [`SessionWatch`](crate::SessionWatch).
#[derive(Debug, Default)]
pub(crate) struct ReconnectBackoff {
    failures: u32,
}

impl ReconnectBackoff {
    /// The delay after one more failure: between half of the doubled step and all of it.
    pub(crate) fn next(&mut self) -> Duration {
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        self.delay(f64::from(random) / f64::from(u32::MAX))
    }

    /// Restarts with the first delay, after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The delay for a random `jitter` between 0 and 1.
    fn delay(&mut self, jitter: f64) -> Duration {
        let step = DELAY_MIN * (1 << self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        step.min(DELAY_MAX).mul_f64(0.5 + jitter / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit_and_reset() {
        let mut backoff = ReconnectBackoff::default();
        let delays: Vec<_> = (0..9).map(|_| backoff.delay(1.0).as_millis()).collect();
        let expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
        assert_eq!(delays, expected);
        backoff.reset();
        assert_eq!(backoff.delay(0.0), Duration::from_millis(50));
    }

    #[test]
    fn delays_have_jitter() {
        let delays: std::collections::HashSet<_> = (0..20)
            .map(|_| ReconnectBackoff::default().next())
            .collect();
        assert!(delays.len() > 10, "{delays:?}");
    }
}
