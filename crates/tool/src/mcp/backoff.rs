//! How long to wait before a server is started again: doubled each time, so that one that dies at
//! once does not keep the machine busy, and spread, so that many that died together do not come
//! back together.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A server that lived so long was well.
const WELL: Duration = Duration::from_secs(60);

/// The waits of one server.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Starts over if the life that ends now was long.
    pub(crate) fn lived(&mut self, since: Instant) {
        if since.elapsed() >= WELL {
            self.failures = 0;
        }
    }

    /// The wait before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        self.wait(f64::from(random) / f64::from(u32::MAX))
    }

    /// The wait for a throw of the dice between 0 and 1: between half and the whole of the step.
    fn wait(&mut self, dice: f64) -> Duration {
        let step = FIRST
            .saturating_mul(1 << self.failures.min(10))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(0.5 + dice / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_to_a_limit_and_start_over_after_a_good_life() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..8).map(|_| backoff.wait(1.0).as_millis()).collect();
        let expected = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
        assert_eq!(waits, expected);
        let born = Instant::now();
        tokio::time::advance(WELL - Duration::from_secs(1)).await;
        backoff.lived(born);
        assert_eq!(backoff.wait(0.0), Duration::from_secs(15));
        tokio::time::advance(Duration::from_secs(1)).await;
        backoff.lived(born);
        assert_eq!(backoff.wait(0.0), Duration::from_millis(250));
    }
}
