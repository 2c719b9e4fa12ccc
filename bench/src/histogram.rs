//! A histogram as `/metrics` writes it, and its percentiles.
//!
//! Only counts per bucket are known, so a percentile is taken inside its bucket by proportion, as
//! if the samples were spread evenly over it.

/// How many samples were at most so large, bound by bound; the last bound is infinite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Reads the histogram `name` from the text of `/metrics`, all labels together; one that
    /// nothing was recorded in yet is empty.
    pub fn read(text: &str, name: &str) -> Self {
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for (bound, count) in text.lines().filter_map(|line| bucket(line, name)) {
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += count,
                None => buckets.push((bound, count)),
            }
        }
        buckets.sort_by(|one, two| one.0.total_cmp(&two.0));
        Self { buckets }
    }

    /// The samples recorded since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let count_before = |bound: f64| {
            let earlier = before.buckets.iter().find(|(known, _)| *known == bound);
            earlier.map_or(0, |(_, count)| *count)
        };
        let buckets = self.buckets.iter();
        Self {
            buckets: buckets
                .map(|&(bound, count)| (bound, count.saturating_sub(count_before(bound))))
                .collect(),
        }
    }

    /// The number of samples in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// What `percent` of all samples are not above, at most the last finite bound. Without samples it
    /// is infinite, so that a figure that was not measured reaches no target.
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = percent / 100.0 * self.count() as f64;
        let (mut low, mut below) = (0.0, 0);
        for &(bound, count) in &self.buckets {
            if count > below && count as f64 >= rank {
                let part = (rank - below as f64) / (count - below) as f64;
                return match bound.is_finite() {
                    true => low + (bound - low) * part,
                    false => low,
                };
            }
            (low, below) = (bound, count);
        }
        f64::INFINITY
    }
}

/// The bound and the count of a line, if it is a bucket of `name`.
fn bucket(line: &str, name: &str) -> Option<(f64, u64)> {
    let labels = line.strip_prefix(name)?.strip_prefix("_bucket{")?;
    let (labels, count) = labels.rsplit_once("} ")?;
    let bound = labels.split("le=\"").nth(1)?.split('"').next()?;
    let bound = match bound {
        "+Inf" => f64::INFINITY,
        number => number.parse().ok()?,
    };
    Some((bound, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "a_ms_bucket{le=\"1\"} 5\na_ms_bucket{le=\"2\"} 5\n\
                          a_ms_bucket{le=\"+Inf\"} 5\n";
    const AFTER: &str = "# TYPE a_ms histogram\na_ms_bucket{le=\"1\"} 45\na_ms_bucket{le=\"2\"} 95\n\
                         a_ms_bucket{le=\"+Inf\"} 105\na_ms_sum 3\nb_a_ms_bucket{le=\"1\"} 7\n";

    #[test]
    fn percentiles_interpolate_inside_their_bucket() {
        let before = Histogram::read(BEFORE, "a_ms");
        let since = Histogram::read(AFTER, "a_ms").since(&before);
        assert_eq!(since.count(), 100);
        assert_eq!(since.percentile(20.0), 0.5);
        assert_eq!(since.percentile(65.0), 1.5);
        assert_eq!(since.percentile(90.0), 2.0);
        assert_eq!(since.percentile(99.0), 2.0);
    }

    #[test]
    fn percentile_without_samples_reaches_no_target() {
        assert_eq!(Histogram::read("", "a_ms").percentile(95.0), f64::INFINITY);
    }

    #[test]
    fn histogram_labels_are_merged() {
        let text = "a_ms_bucket{k=\"x\",le=\"1\"} 1\na_ms_bucket{k=\"y\",le=\"1\"} 2\n\
                    a_ms_bucket{k=\"x\",le=\"+Inf\"} 1\na_ms_bucket{k=\"y\",le=\"+Inf\"} 3\n";
        let read = Histogram::read(text, "a_ms");
        assert_eq!(read.buckets, [(1.0, 3), (f64::INFINITY, 4)]);
    }
}
