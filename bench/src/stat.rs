//! Medians, percentiles and how numbers are printed.

/// The middle of some figures; the mean of the two middle ones if they are even in number, 0 of
/// none.
pub fn median(figures: &[f64]) -> f64 {
    let sorted = sorted(figures);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (len, half) if len % 2 == 1 => sorted[half],
        (_, half) => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The figure that `percent` of all are not above (nearest rank), 0 of none.
pub fn percentile(figures: &[f64], percent: f64) -> f64 {
    let sorted = sorted(figures);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A number with the digits that matter: `1.37M`, `414k`, `9.85k`, `17.2`, `0.042`.
pub fn short(figure: f64) -> String {
    let (scaled, unit) = match figure.abs() {
        size if size >= 1e6 => (figure / 1e6, "M"),
        size if size >= 1e3 => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    let digits = match scaled.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{scaled:.digits$}{unit}")
}

/// A share of one as per cent.
pub fn share(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_percentiles_of_known_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred, 95.0), 95.0);
        assert_eq!(percentile(&hundred, 100.0), 100.0);
        assert_eq!(percentile(&[7.0], 50.0), 7.0);
    }

    #[test]
    fn numbers_print_three_significant_digits() {
        for (figure, text) in [
            (1_370_000.0, "1.37M"),
            (414_000.0, "414k"),
            (9_850.0, "9.85k"),
            (17.2, "17.2"),
            (0.042, "0.042"),
        ] {
            assert_eq!(short(figure), text);
        }
    }
}
