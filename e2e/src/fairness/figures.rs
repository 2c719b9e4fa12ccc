//! Figures of the campaign: latencies and their percentiles, and the rules by which a resource is
//! judged.

use std::fmt;
use std::time::Duration;

use super::sample::{QuietKind, QuietSample};

/// Samples of a phase below which nothing is judged.
const SAMPLES_MIN: usize = 40;

/// The bounds by which [`violations`] judges.
#[derive(Clone, Copy, Debug)]
pub struct FairnessLimits {
    /// Maximum p95 under attack, as a multiple of the reference.
    pub ratio_max: f64,
    /// A single kind of request is judged only above this p95, because it has few samples.
    pub kind_floor: Duration,
    /// Maximum resident memory of the attacked server, in MiB.
    pub memory_mib: u64,
}

impl Default for FairnessLimits {
    fn default() -> Self {
        Self {
            ratio_max: 2.0,
            kind_floor: Duration::from_millis(50),
            memory_mib: 512,
        }
    }
}

/// A broken rule of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum FairnessViolation {
    /// The phases have too few samples to judge.
    FewSamples(usize),
    /// All requests of the quiet owners together were slower than allowed.
    Slow { ratio: f64 },
    /// One kind of request was slower than allowed.
    SlowKind { kind: QuietKind, ratio: f64 },
    /// Requests of quiet owners were refused or failed.
    Failed { count: usize, first: String },
    /// The attacked server used more memory than the budget.
    Memory { peak_mib: u64 },
    /// The attacked server ended, or did not start again.
    ServerEnded,
}

impl fmt::Display for FairnessViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewSamples(count) => write!(f, "only {count} samples"),
            Self::Slow { ratio } => write!(f, "quiet owners {ratio:.1} times slower"),
            Self::SlowKind { kind, ratio } => write!(f, "{} {ratio:.1} times slower", kind.name()),
            Self::Failed { count, first } => {
                write!(f, "{count} requests of quiet owners failed ({first})")
            }
            Self::Memory { peak_mib } => write!(f, "{peak_mib} MiB"),
            Self::ServerEnded => f.write_str("the server ended or did not start again"),
        }
    }
}

/// The figure that `percent` of all are not above (nearest rank); zero of none.
pub fn percentile(latencies: &mut [Duration], percent: usize) -> Duration {
    latencies.sort_unstable();
    let rank = (latencies.len() * percent).div_ceil(100);
    let found = latencies.get(rank.saturating_sub(1));
    found.copied().unwrap_or_default()
}

/// The percentile of the samples of a kind, or of all.
pub fn quiet_percentile(
    samples: &[QuietSample],
    kind: Option<QuietKind>,
    percent: usize,
) -> Duration {
    let of = |sample: &&QuietSample| kind.is_none_or(|kind| sample.kind == kind);
    let mut latencies: Vec<_> = samples.iter().filter(of).map(|s| s.latency).collect();
    percentile(&mut latencies, percent)
}

/// The p95 under attack divided by the one of the reference.
pub fn ratio(reference: &[QuietSample], attack: &[QuietSample], kind: Option<QuietKind>) -> f64 {
    let [before, after] =
        [reference, attack].map(|samples| quiet_percentile(samples, kind, 95).as_secs_f64());
    after / before.max(1e-6)
}

/// The rules that a resource broke: latency, failures, memory.
pub fn violations(
    reference: &[QuietSample],
    attack: &[QuietSample],
    peak_mib: u64,
    limits: FairnessLimits,
) -> Vec<FairnessViolation> {
    let mut found = Vec::new();
    let fewest = reference.len().min(attack.len());
    if fewest < SAMPLES_MIN {
        found.push(FairnessViolation::FewSamples(fewest));
    }
    let all = ratio(reference, attack, None);
    if all > limits.ratio_max {
        found.push(FairnessViolation::Slow { ratio: all });
    }
    for kind in QuietKind::ALL {
        let ratio = ratio(reference, attack, Some(kind));
        let slow = quiet_percentile(attack, Some(kind), 95) > limits.kind_floor;
        if slow && ratio > limits.ratio_max {
            found.push(FairnessViolation::SlowKind { kind, ratio });
        }
    }
    let failures = reference.iter().chain(attack).filter_map(|sample| {
        let failure = sample.failure.as_ref()?;
        Some(format!("{}: {failure}", sample.kind.name()))
    });
    let failures: Vec<String> = failures.collect();
    if let Some(first) = failures.first() {
        found.push(FairnessViolation::Failed {
            count: failures.len(),
            first: first.clone(),
        });
    }
    if peak_mib > limits.memory_mib {
        found.push(FairnessViolation::Memory { peak_mib });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(kind: QuietKind, count: usize, ms: u64) -> Vec<QuietSample> {
        let sample = QuietSample {
            kind,
            latency: Duration::from_millis(ms),
            failure: None,
        };
        vec![sample; count]
    }

    fn judged(reference: &[QuietSample], attack: &[QuietSample]) -> Vec<FairnessViolation> {
        violations(reference, attack, 100, FairnessLimits::default())
    }

    #[test]
    fn percentile_is_the_nearest_rank() {
        let mut hundred: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut hundred, 95), Duration::from_millis(95));
        assert_eq!(percentile(&mut hundred, 100), Duration::from_millis(100));
        assert_eq!(
            percentile(&mut [Duration::from_secs(1)], 50),
            Duration::from_secs(1)
        );
        assert_eq!(percentile(&mut [], 95), Duration::ZERO);
    }

    #[test]
    fn twice_the_reference_is_allowed_and_more_is_not() {
        let reference = samples(QuietKind::Session, 100, 10);
        assert_eq!(
            judged(&reference, &samples(QuietKind::Session, 100, 20)),
            []
        );
        let slower = judged(&reference, &samples(QuietKind::Session, 100, 30));
        assert_eq!(slower, [FairnessViolation::Slow { ratio: 3.0 }]);
    }

    #[test]
    fn one_starved_kind_is_found_among_fast_ones() {
        let reference = [
            samples(QuietKind::Session, 980, 10),
            samples(QuietKind::Events, 20, 10),
        ];
        let attack = [
            samples(QuietKind::Session, 980, 10),
            samples(QuietKind::Events, 20, 400),
        ];
        let starved = FairnessViolation::SlowKind {
            kind: QuietKind::Events,
            ratio: 40.0,
        };
        assert_eq!(judged(&reference.concat(), &attack.concat()), [starved]);
    }

    #[test]
    fn failures_memory_and_few_samples_are_violations() {
        let reference = samples(QuietKind::Create, 100, 10);
        let mut attack = reference.clone();
        attack[7].failure = Some("status 429".into());
        let limits = FairnessLimits::default();
        assert_eq!(
            violations(&reference, &attack, 513, limits),
            [
                FairnessViolation::Failed {
                    count: 1,
                    first: "create: status 429".into()
                },
                FairnessViolation::Memory { peak_mib: 513 },
            ]
        );
        let few = judged(&reference, &attack[..7]);
        assert_eq!(few, [FairnessViolation::FewSamples(7)]);
    }
}
