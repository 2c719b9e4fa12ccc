//! Random numbers with a seed: every random choice of a test comes from one [`SeededRng`], so that a
//! failure can be repeated. The seed is `TURNWIRE_SEED` or random, and printed; the test runner
//! shows the line when the test fails.

use std::time::Duration;

/// A random number generator (SplitMix64: small, uniform, and the same on every machine).
#[derive(Clone, Debug)]
pub struct SeededRng {
    seed: u64,
    state: u64,
}

impl SeededRng {
    /// A generator with a given seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// A generator seeded from `TURNWIRE_SEED`, else randomly; prints the seed.
    pub fn from_env() -> Self {
        let from_env = std::env::var("TURNWIRE_SEED").ok();
        let seed = from_env
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| getrandom::u64().expect("the system gives random bytes") >> 16);
        println!("TURNWIRE_SEED={seed}");
        Self::new(seed)
    }

    /// The seed that [`Self::new`] was given.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..high`; `low` when the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next_u64() % high.saturating_sub(low).max(1)
    }

    /// An index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.between(0, len as u64) as usize
    }

    /// True with a probability of `percent` in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 100) < percent
    }

    /// A random duration between `low` and `high` milliseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.between(low * 1_000, high * 1_000))
    }

    /// A generator for another task, seeded from this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::SeededRng;

    #[test]
    fn same_seed_gives_same_numbers() {
        let numbers = |seed| {
            let mut rng = SeededRng::new(seed);
            (0..8).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
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
