//! Which turns are recorded: `OTEL_TRACES_SAMPLER` and its argument. A pure function of the trace id
//! and the caller's flag, so that every server of a trace decides alike.

/// Of the 128 bits of a trace id the last 56 are random, by W3C Trace Context Level 2.
const RANDOM_BITS: u32 = 56;

/// A sampler of the OpenTelemetry specification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// True if the flag of the caller decides, where the caller sent a trace.
    is_parent_based: bool,
    /// The least random number of a trace that is recorded; 2^56 records none.
    threshold: u64,
}

impl Default for Sampler {
    /// The default of the specification: `parentbased_always_on`.
    fn default() -> Self {
        Self::new(true, 1.0)
    }
}

impl Sampler {
    /// Records the share `ratio` of traces; with `is_parent_based` those without a caller's trace only,
    /// and of the others those that their caller records.
    pub fn new(is_parent_based: bool, ratio: f64) -> Self {
        let all = (1_u64 << RANDOM_BITS) as f64;
        let skipped = 1.0 - ratio.clamp(0.0, 1.0);
        Self {
            is_parent_based,
            threshold: (skipped * all) as u64,
        }
    }

    /// The sampler of this name in the specification. `argument` is its ratio, where it has one.
    pub fn named(name: &str, argument: Option<f64>) -> Option<Self> {
        let ratio = argument.unwrap_or(1.0);
        Some(match name {
            "always_on" => Self::new(false, 1.0),
            "always_off" => Self::new(false, 0.0),
            "traceidratio" => Self::new(false, ratio),
            "parentbased_always_on" => Self::new(true, 1.0),
            "parentbased_always_off" => Self::new(true, 0.0),
            "parentbased_traceidratio" => Self::new(true, ratio),
            _ => return None,
        })
    }

    /// Whether the trace with this id is recorded; `caller` is the flag of the caller, if it sent a
    /// trace.
    pub fn is_sampled(&self, trace_id: [u8; 16], caller: Option<bool>) -> bool {
        match caller {
            Some(flag) if self.is_parent_based => flag,
            _ => {
                let random = u128::from_be_bytes(trace_id) as u64 & ((1 << RANDOM_BITS) - 1);
                random >= self.threshold
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_of_the_caller_decides_if_the_sampler_is_parent_based() {
        for (name, caller, expected) in [
            ("always_on", Some(false), true),
            ("always_off", Some(true), false),
            ("parentbased_always_on", Some(false), false),
            ("parentbased_always_on", None, true),
            ("parentbased_always_off", Some(true), true),
            ("parentbased_always_off", None, false),
        ] {
            let sampler = Sampler::named(name, None).expect("a sampler");
            assert_eq!(
                sampler.is_sampled([7; 16], caller),
                expected,
                "{name} {caller:?}"
            );
        }
        assert_eq!(Sampler::named("jaeger_remote", None), None);
        assert_eq!(
            Sampler::default(),
            Sampler::named("parentbased_always_on", None).expect("one")
        );
    }

    #[test]
    fn ratio_selects_its_share_of_trace_ids() {
        for (ratio, least, most) in [
            (0.0, 0, 0),
            (0.1, 850, 1_150),
            (0.5, 4_700, 5_300),
            (1.0, 10_000, 10_000),
        ] {
            let sampler = Sampler::new(true, ratio);
            let sampled = (0..10_000_u64).filter(|_| {
                let mut id = [0; 16];
                getrandom::fill(&mut id).expect("random bytes");
                sampler.is_sampled(id, None)
            });
            let sampled = sampled.count();
            assert!((least..=most).contains(&sampled), "{ratio}: {sampled}");
        }
        // A trace that a low ratio records is recorded by every higher one.
        let id = [0xff; 16];
        assert!(Sampler::new(false, 0.001).is_sampled(id, None));
        assert!(!Sampler::new(false, 0.999).is_sampled([0; 16], None));
    }
}
