//! Chance with a seed: every random choice of a test comes from one `SeededRng`, so that a failure
//! can be played again. The seed is taken from `TURNWIRE_SEED` or drawn fresh, and printed;
//! the test runner shows the line when the test fails.

use std::time::Duration;

/// A stream of random numbers (SplitMix64: tiny, even, and the same on every machine).
#[derive(Clone, Debug)]
pub struct SeededRng {
    seed: u64,
    state: u64,
}

impl SeededRng {
    /// A stream from a known seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// A stream from `TURNWIRE_SEED`, else from a fresh seed; says which.
    pub fn from_env() -> Self {
        let given = std::env::var("TURNWIRE_SEED").ok();
        let seed = given
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| getrandom::u64().expect("the system gives random bytes") >> 16);
        println!("TURNWIRE_SEED={seed}");
        Self::new(seed)
    }

    /// The seed it began with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..high`; `low` when the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.roll() % high.saturating_sub(low).max(1)
    }

    /// An index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.between(0, len as u64) as usize
    }

    /// True in so many of a hundred throws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 100) < percent
    }

    /// A time between two numbers of milliseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.between(low * 1_000, high * 1_000))
    }

    /// A stream of its own for a task, settled by this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.roll())
    }
}

#[cfg(test)]
mod tests {
    use super::SeededRng;

    #[test]
    fn same_seed_gives_same_numbers() {
        let throws = |seed| {
            let mut rng = SeededRng::new(seed);
            (0..8).map(|_| rng.roll()).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
    }

    #[test]
    fn numbers_cover_their_range_inclusively() {
        let mut rng = SeededRng::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..1_000 {
            seen[rng.between(10, 15) as usize - 10] += 1;
        }
        assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
        assert_eq!(rng.between(3, 3), 3);
    }
}
