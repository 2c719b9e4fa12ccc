//! [`Rates`]: how much each owner may use per window of time.
//!
//! ```text
//!   left
//!   limit ┤▇▇▖      ▗▇▇▇    what was used comes back evenly: a full limit
//!         │  ▝▖   ▗▇▘       takes one window
//!       0 ┤   ▝▇▇▇▘         nothing left: the next use is refused
//!    debt ┤     ▘           a use whose size is known only afterwards may go below 0
//! ```
//!
//! One number is kept per owner: when all of it will have come back. Owners that have everything back
//! are forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Owners that are remembered at once. An owner with 200 bytes of names takes about 300 bytes, so that
/// they take 30 MB at most; a server has fewer active owners in a minute.
const OWNERS_MAX: usize = 100_000;
/// Owners below this number are not looked through for those that can be forgotten.
const SWEEP_MIN: usize = 1_024;
/// The largest debt, in windows: an owner is never refused for longer.
const DEBT_WINDOWS_MAX: u32 = 60;

/// A limit per window for each owner of type `K`.
#[derive(Debug)]
pub struct Rates<K> {
    limit: u64,
    window: Duration,
    owners: Mutex<OwnersInUse<K>>,
}

#[derive(Debug)]
struct OwnersInUse<K> {
    /// When each owner has everything back.
    full_at: HashMap<K, Instant>,
    /// The number of owners at which those are forgotten that have everything back.
    sweep_at: usize,
}

/// What an owner has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// How much of the limit can be used now.
    pub left: u64,
    /// The time until everything is back.
    pub full_in: Duration,
}

/// The owner has nothing left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is left for {retry_in:?}")]
pub struct RateExceeded {
    /// When the same use is possible, if nothing else is used meanwhile.
    pub retry_in: Duration,
}

impl<K: Clone + Eq + Hash> Rates<K> {
    /// Lets each owner use `limit` per `window`. A limit of 0 means 1.
    pub fn new(limit: u64, window: Duration) -> Self {
        Self {
            limit: limit.max(1),
            window,
            owners: Mutex::new(OwnersInUse {
                full_at: HashMap::new(),
                sweep_at: SWEEP_MIN,
            }),
        }
    }

    /// The amount that an owner may use per window.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Uses one, or refuses.
    pub fn take(&self, owner: &K, now: Instant) -> Result<(), RateExceeded> {
        let mut owners = self.owners.lock();
        let full_in = owners.full_in(owner, now);
        let after = full_in + self.time_of(1);
        if after > self.window {
            let retry_in = after - self.window;
            return Err(RateExceeded { retry_in });
        }
        owners.set(owner, now + after, now)
    }

    /// Gives back one that was taken and not used.
    pub fn give_back(&self, owner: &K) {
        let mut owners = self.owners.lock();
        if let Some(full_at) = owners.full_at.get_mut(owner)
            && let Some(earlier) = full_at.checked_sub(self.time_of(1))
        {
            *full_at = earlier;
        }
    }

    /// Refuses if there is nothing left; for a use that is [charged](Self::charge) afterwards.
    pub fn check(&self, owner: &K, now: Instant) -> Result<(), RateExceeded> {
        let full_in = self.owners.lock().full_in(owner, now);
        let after = full_in + self.time_of(1);
        if after > self.window {
            let retry_in = after - self.window;
            return Err(RateExceeded { retry_in });
        }
        Ok(())
    }

    /// Uses `amount`, also if that is more than is left: the owner is refused until it has come back.
    pub fn charge(&self, owner: &K, amount: u64, now: Instant) {
        let mut owners = self.owners.lock();
        let after = owners.full_in(owner, now) + self.time_of(amount);
        let after = after.min(self.window * (DEBT_WINDOWS_MAX + 1));
        // Without a place for the owner the use is not counted: it has happened already.
        let _ = owners.set(owner, now + after, now);
    }

    /// What `owner` has left.
    pub fn state(&self, owner: &K, now: Instant) -> RateState {
        let full_in = self.owners.lock().full_in(owner, now);
        let left = self.window.saturating_sub(full_in).as_nanos() * u128::from(self.limit);
        RateState {
            left: u64::try_from(left / self.window.as_nanos().max(1)).unwrap_or(u64::MAX),
            full_in,
        }
    }

    /// How long `amount` takes to come back; rounded down, so that the whole limit fits the window.
    fn time_of(&self, amount: u64) -> Duration {
        let nanos = u128::from(amount).saturating_mul(self.window.as_nanos());
        let nanos = nanos / u128::from(self.limit);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl<K: Clone + Eq + Hash> OwnersInUse<K> {
    fn full_in(&self, owner: &K, now: Instant) -> Duration {
        let full_at = self.full_at.get(owner);
        full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    fn set(&mut self, owner: &K, full_at: Instant, now: Instant) -> Result<(), RateExceeded> {
        if let Some(known) = self.full_at.get_mut(owner) {
            *known = full_at;
            return Ok(());
        }
        if self.full_at.len() >= self.sweep_at.min(OWNERS_MAX) {
            self.full_at.retain(|_, at| *at > now);
            self.sweep_at = (2 * self.full_at.len()).max(SWEEP_MIN);
        }
        if self.full_at.len() >= OWNERS_MAX {
            let retry_in = Duration::from_secs(1);
            return Err(RateExceeded { retry_in });
        }
        self.full_at.insert(owner.clone(), full_at);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
