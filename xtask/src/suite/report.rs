//! The end of a run: the slowest tests, and the line with the counts.

use super::run::Outcome;
use crate::step::clock;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// The closing lines: the slowest tests, the failed ones, the counts.
pub fn report(outcomes: &[Outcome]) -> String {
    let mut slowest: Vec<&Outcome> = outcomes.iter().collect();
    slowest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    let mut text = String::from("slowest tests:\n");
    for outcome in slowest.iter().take(SLOWEST) {
        text += &format!("{:>10}  {}\n", clock(outcome.took), outcome.label);
    }
    let failed: Vec<&Outcome> = outcomes
        .iter()
        .filter(|one| one.failure.is_some())
        .collect();
    for outcome in &failed {
        text += &format!("failed: {}\n", outcome.label);
    }
    let passed = outcomes.len() - failed.len();
    text + &format!("{passed} passed, {} failed\n", failed.len())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn report_lists_slowest_first_and_counts_last() {
        let outcome = |label: &str, millis, failure: Option<&str>| Outcome {
            label: label.to_owned(),
            took: Duration::from_millis(millis),
            failure: failure.map(str::to_owned),
        };
        let text = report(&[outcome("a", 100, None), outcome("b", 2_000, Some("why"))]);
        assert_eq!(
            text,
            "slowest tests:\n     2.0 s  b\n     0.1 s  a\nfailed: b\n1 passed, 1 failed\n"
        );
    }
}
