//! The report of the campaign: one line per resource, and the p95 of each kind of request.

use std::fmt::Write as _;
use std::time::Duration;

use super::figures::{FairnessLimits, FairnessViolation, quiet_percentile, ratio, violations};
use super::greedy::GreedyReport;
use super::resource::SharedResource;
use super::sample::{QuietKind, QuietSample};

/// Everything that was measured about one resource.
#[derive(Debug)]
pub struct ResourceReport {
    pub resource: SharedResource,
    pub reference: Vec<QuietSample>,
    pub attack: Vec<QuietSample>,
    /// The load in the reference phases and in the attacks.
    pub greedy: [GreedyReport; 2],
    /// Peak memory of the attacked server over all attacks.
    pub peak_mib: u64,
    /// True if the attacked server ended, or could not be started.
    pub ended: bool,
}

impl ResourceReport {
    /// A report before the first phase.
    pub fn new(resource: SharedResource) -> Self {
        Self {
            resource,
            reference: Vec::new(),
            attack: Vec::new(),
            greedy: [GreedyReport::default(); 2],
            peak_mib: 0,
            ended: false,
        }
    }

    /// The rules that the resource broke.
    pub fn violations(&self, limits: FairnessLimits) -> Vec<FairnessViolation> {
        let ended = self.ended.then_some(FairnessViolation::ServerEnded);
        let judged = violations(&self.reference, &self.attack, self.peak_mib, limits);
        ended.into_iter().chain(judged).collect()
    }

    /// The line of the resource in the first table.
    fn row(&self, limits: FairnessLimits) -> String {
        let figure =
            |samples: &[QuietSample], percent| ms(quiet_percentile(samples, None, percent));
        let rate = |greedy: GreedyReport| greedy.answered as f64 / greedy.seconds.max(1e-3);
        let failed = self.reference.iter().chain(&self.attack);
        let failed = failed.filter(|sample| sample.failure.is_some()).count();
        let [reference, attack] = self.greedy;
        let broken = self.violations(limits);
        let verdict = match broken.is_empty() {
            true => "pass".to_owned(),
            false => {
                let texts: Vec<String> = broken.iter().map(ToString::to_string).collect();
                format!("FAIL: {}", texts.join("; "))
            }
        };
        format!(
            "| {} | {} / {} | {} / {} | {:.2} | {} of {} | {:.0}/s, {} / {:.0}/s, {} | {} | {verdict} |",
            self.resource.name(),
            figure(&self.reference, 50),
            figure(&self.attack, 50),
            figure(&self.reference, 95),
            figure(&self.attack, 95),
            ratio(&self.reference, &self.attack, None),
            failed,
            self.reference.len() + self.attack.len(),
            rate(reference),
            reference.refused,
            rate(attack),
            attack.refused,
            self.peak_mib,
        )
    }

    /// The p95 of each kind, reference and attack.
    fn kinds(&self) -> String {
        let kinds = QuietKind::ALL.map(|kind| {
            let p95 = |samples| ms(quiet_percentile(samples, Some(kind), 95));
            format!("{} / {}", p95(&self.reference), p95(&self.attack))
        });
        format!("| {} | {} |", self.resource.name(), kinds.join(" | "))
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

/// The tables of all resources.
pub fn tables(reports: &[ResourceReport], limits: FairnessLimits) -> String {
    let mut text = String::from(
        "Quiet owners, in ms: reference / attack. Greedy owner: answers a second, refusals (429).\n\n\
         | resource | p50 | p95 | p95 ratio | quiet failed | greedy | peak MiB | verdict |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for report in reports {
        let _ = writeln!(text, "{}", report.row(limits));
    }
    let names = QuietKind::ALL.map(QuietKind::name).join(" | ");
    let _ = writeln!(
        text,
        "\np95 by kind of request, in ms: reference / attack.\n\n| resource | {names} |\n|{}",
        "---|".repeat(QuietKind::ALL.len() + 1)
    );
    for report in reports {
        let _ = writeln!(text, "{}", report.kinds());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(attack_ms: u64) -> ResourceReport {
        let sample = |ms| QuietSample {
            kind: QuietKind::Create,
            latency: Duration::from_millis(ms),
            failure: None,
        };
        ResourceReport {
            reference: vec![sample(10); 50],
            attack: vec![sample(attack_ms); 50],
            peak_mib: 90,
            ..ResourceReport::new(SharedResource::Lists)
        }
    }

    #[test]
    fn row_has_figures_and_verdict() {
        let limits = FairnessLimits::default();
        assert_eq!(
            report(15).row(limits),
            "| lists | 10.0 / 15.0 | 10.0 / 15.0 | 1.50 | 0 of 100 | 0/s, 0 / 0/s, 0 | 90 | pass |"
        );
        let slow = report(40).row(limits);
        assert!(
            slow.ends_with("| 90 | FAIL: quiet owners 4.0 times slower |"),
            "{slow}"
        );
    }

    #[test]
    fn ended_server_is_a_violation() {
        let mut report = report(10);
        report.ended = true;
        let found = report.violations(FairnessLimits::default());
        assert_eq!(found, [FairnessViolation::ServerEnded]);
    }
}
