//! The pauses before a server, or an event stream of one, is opened again. They double, so that a
//! server that exits at once does not keep the machine busy, and vary, so that many servers that
//! failed together do not restart together.

use std::time::Duration;

use tokio::time::Instant;

const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// After a connection of this length the pauses start from [`PAUSE_MIN`] again.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The restarts of one server or stream.
#[derive(Debug, Default)]
pub(crate) struct RestartPolicy {
    failures: u32,
    connected_at: Option<Instant>,
}

impl RestartPolicy {
    /// Notes that a connection is open.
    pub(crate) fn connected(&mut self) {
        self.connected_at = Some(Instant::now());
    }

    /// The pause before the next attempt.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        self.pause(f64::from(random) / f64::from(u32::MAX))
    }

    /// Half of the step for a `random` of 0, the whole step for 1.
    fn pause(&mut self, random: f64) -> Duration {
        let connected_at = self.connected_at.take();
        if connected_at.is_some_and(|at| at.elapsed() >= STABLE_AFTER) {
            self.failures = 0;
        }
        let step = PAUSE_MIN
            .saturating_mul(1 << self.failures.min(10))
            .min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(0.5 + random / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_to_a_limit_and_reset_when_stable() {
        let mut restarts = RestartPolicy::default();
        let pauses: Vec<_> = (0..8).map(|_| restarts.pause(1.0).as_millis()).collect();
        let expected = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
        assert_eq!(pauses, expected);
        restarts.connected();
        tokio::time::advance(STABLE_AFTER - Duration::from_secs(1)).await;
        assert_eq!(restarts.pause(0.0), Duration::from_secs(15));
        restarts.connected();
        tokio::time::advance(STABLE_AFTER).await;
        assert_eq!(restarts.pause(0.0), Duration::from_millis(250));
    }
}
