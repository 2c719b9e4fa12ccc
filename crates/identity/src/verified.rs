//! Tokens whose signature was found right: each is checked once, and looked up afterwards.

use std::collections::HashMap;

use parking_lot::Mutex;
use turnwire_event::Timestamp;

use crate::caller::Caller;
use crate::token::TokenHash;

/// The callers of verified tokens, by the hash of the token. It keeps two halves: the newer one is
/// filled, and replaces the older one when it is full, so that a token in use stays.
#[derive(Debug)]
pub(crate) struct VerifiedTokens {
    halves: Mutex<Halves>,
    half_max: usize,
}

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<TokenHash, Caller>,
    older: HashMap<TokenHash, Caller>,
    /// The key set that checked all of them.
    generation: u64,
}

impl VerifiedTokens {
    /// Keeps at most `max` callers.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            halves: Mutex::default(),
            half_max: (max / 2).max(1),
        }
    }

    /// The caller of a token that the key set `generation` has checked and that has not ended.
    pub(crate) fn get(&self, hash: &TokenHash, generation: u64, now: Timestamp) -> Option<Caller> {
        let mut halves = self.halves.lock();
        if halves.generation != generation {
            return None;
        }
        if let Some(caller) = halves.newer.get(hash) {
            return (!caller.lease.has_expired(now)).then(|| caller.clone());
        }
        let caller = halves.older.remove(hash)?;
        if caller.lease.has_expired(now) {
            return None;
        }
        self.put(&mut halves, *hash, caller.clone());
        Some(caller)
    }

    /// Keeps the caller of a token that the key set `generation` has checked. A change of the set
    /// ends what earlier ones have checked.
    pub(crate) fn insert(&self, hash: TokenHash, caller: Caller, generation: u64) {
        let mut halves = self.halves.lock();
        if halves.generation > generation {
            return;
        }
        if halves.generation < generation {
            *halves = Halves {
                generation,
                ..Halves::default()
            };
        }
        self.put(&mut halves, hash, caller);
    }

    fn put(&self, halves: &mut Halves, hash: TokenHash, caller: Caller) {
        if halves.newer.len() >= self.half_max {
            halves.older = std::mem::take(&mut halves.newer);
        }
        halves.newer.insert(hash, caller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Credential, Lease};
    use crate::scope::ScopeSet;
    use turnwire_event::{Owner, TenantId};

    fn caller(end: i64) -> Caller {
        Caller {
            owner: Owner {
                tenant: TenantId(1),
                principal: "ann".parse().expect("a principal"),
            },
            service: None,
            scopes: ScopeSet::NONE,
            lease: Lease {
                credential: Credential::Jwt("k".into()),
                expires_at: Some(Timestamp::from_millis(end)),
            },
        }
    }

    fn hash(n: usize) -> TokenHash {
        TokenHash::of(&n.to_string())
    }

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    #[test]
    fn verified_token_is_found_until_it_ends() {
        let tokens = VerifiedTokens::new(10);
        tokens.insert(hash(1), caller(1_001), 0);
        assert_eq!(tokens.get(&hash(1), 0, NOW), Some(caller(1_001)));
        assert_eq!(tokens.get(&hash(2), 0, NOW), None);
        let end = Timestamp::from_millis(1_001);
        assert_eq!(tokens.get(&hash(1), 0, end), None);
    }

    #[test]
    fn changed_key_set_ends_what_was_checked() {
        let tokens = VerifiedTokens::new(10);
        tokens.insert(hash(1), caller(9_000), 1);
        assert_eq!(tokens.get(&hash(1), 2, NOW), None);
        tokens.insert(hash(2), caller(9_000), 2);
        // One that the old set has checked meanwhile.
        tokens.insert(hash(3), caller(9_000), 1);
        assert_eq!(tokens.get(&hash(1), 2, NOW), None);
        assert!(tokens.get(&hash(2), 2, NOW).is_some());
        assert_eq!(tokens.get(&hash(3), 2, NOW), None);
    }

    #[test]
    fn number_of_tokens_is_bounded_and_those_in_use_stay() {
        let tokens = VerifiedTokens::new(10);
        tokens.insert(hash(0), caller(9_000), 0);
        for n in 1..1_000 {
            tokens.insert(hash(n), caller(9_000), 0);
            assert!(tokens.get(&hash(0), 0, NOW).is_some(), "after {n}");
        }
        let halves = tokens.halves.lock();
        assert!(halves.newer.len() + halves.older.len() <= 10);
    }
}
