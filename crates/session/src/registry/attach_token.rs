//! Attach tokens: 128 random bits, valid once, for one session and owner, for a short time.
//!
//! [`AttachTokens`] stores only their hashes: neither a log nor a memory dump contains a usable
//! token. Each owner has a share of them.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use turnwire_event::{Owner, SessionId, Ulid};
use turnwire_fair::FairSlot;

use crate::error::{Error, SharedResource};
use crate::submit::owner_limit::OwnerLimit;

/// The SHA-256 of a token.
type TokenHash = [u8; 32];

struct AttachGrant {
    session: SessionId,
    owner: Owner,
    expires: Instant,
    _permit: FairSlot<Owner>,
}

/// The attach tokens that were issued and neither used nor expired.
pub(crate) struct AttachTokens {
    issued: Mutex<IssuedTokens>,
    ttl: Duration,
    limit: OwnerLimit,
}

#[derive(Default)]
struct IssuedTokens {
    grants: HashMap<TokenHash, AttachGrant>,
    /// Every token in the order in which they expire. Used ones stay while an older one is unused,
    /// up to [`USED_MAX`](Self::USED_MAX) beside as many as there are grants.
    by_expiry: VecDeque<(Instant, TokenHash)>,
}

impl IssuedTokens {
    /// Used tokens in `by_expiry` that are not worth a search.
    const USED_MAX: usize = 64;

    /// Takes out the tokens that have expired: the first of the list, as all live equally long.
    fn remove_expired(&mut self, now: Instant) {
        while let Some((_, hash)) = self.by_expiry.pop_front_if(|(expires, _)| *expires <= now) {
            self.grants.remove(&hash);
        }
    }

    /// Takes out a token that is used, and those before it in the list that are; all used ones once
    /// they are more than the others.
    fn remove(&mut self, hash: &TokenHash) -> Option<AttachGrant> {
        let grant = self.grants.remove(hash);
        let grants = &self.grants;
        let is_used = |(_, hash): &mut (Instant, TokenHash)| !grants.contains_key(hash);
        while self.by_expiry.pop_front_if(is_used).is_some() {}
        if self.by_expiry.len() > 2 * grants.len() + Self::USED_MAX {
            self.by_expiry.retain(|(_, hash)| grants.contains_key(hash));
        }
        grant
    }
}

impl AttachTokens {
    /// An empty set that accepts `max` tokens, `max_per_owner` of each owner, each valid for `ttl`.
    pub(crate) fn new(ttl: Duration, max: usize, max_per_owner: usize) -> Self {
        Self {
            issued: Mutex::default(),
            ttl,
            limit: OwnerLimit::new(SharedResource::AttachTokens, max, max_per_owner),
        }
    }

    /// Issues a token for `session`.
    pub(crate) fn issue(&self, session: SessionId, owner: &Owner) -> Result<String, Error> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|_| Error::Internal)?;
        let token = format!("atk_{}", Ulid(u128::from_be_bytes(random)));
        let (now, hash) = (Instant::now(), hash(&token));
        let expires = now + self.ttl;
        let mut issued = self.issued.lock();
        issued.remove_expired(now);
        let grant = AttachGrant {
            session,
            owner: owner.clone(),
            expires,
            _permit: self.limit.try_acquire(owner)?,
        };
        issued.grants.insert(hash, grant);
        issued.by_expiry.push_back((expires, hash));
        Ok(token)
    }

    /// Consumes a token if `admit` accepts its owner, and returns the owner with what `admit` gave:
    /// a refused caller can use the token later. Of two callers that race with the same token, one
    /// succeeds. `admit` runs under a lock and must return quickly.
    pub(crate) fn redeem<T, E: From<Error>>(
        &self,
        session: SessionId,
        token: &str,
        admit: impl FnOnce(&Owner) -> Result<T, E>,
    ) -> Result<(Owner, T), E> {
        let key = hash(token);
        let mut issued = self.issued.lock();
        let now = Instant::now();
        let grant = issued.grants.get(&key);
        // A token presented for another session stays valid for its own.
        let grant = grant.filter(|grant| grant.session == session && grant.expires > now);
        let grant = grant.ok_or(Error::Unauthorized)?;
        let admitted = admit(&grant.owner)?;
        let grant = issued.remove(&key).ok_or(Error::Unauthorized)?;
        Ok((grant.owner, admitted))
    }

    /// Removes the tokens that have expired.
    pub(crate) fn remove_expired(&self) {
        self.issued.lock().remove_expired(Instant::now());
    }
}

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TenantId;
    use turnwire_fair::FairRefusal;

    fn owner() -> Owner {
        named("local")
    }

    fn named(principal: &str) -> Owner {
        Owner {
            tenant: TenantId(0),
            principal: principal.parse().expect("a principal"),
        }
    }

    fn redeem(tokens: &AttachTokens, session: SessionId, token: &str) -> Result<Owner, Error> {
        let admitted = tokens.redeem(session, token, |_| Ok(()));
        admitted.map(|(owner, ())| owner)
    }

    // S3-004
    #[test]
    fn token_is_valid_once() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10, 10);
        let session = SessionId(Ulid(1));
        let token = tokens.issue(session, &owner()).expect("a token");
        assert!(token.starts_with("atk_") && token.len() == 30, "{token}");
        assert_eq!(redeem(&tokens, session, &token), Ok(owner()));
        assert_eq!(redeem(&tokens, session, &token), Err(Error::Unauthorized));
    }

    // S3-004
    #[test]
    fn token_expires() {
        let tokens = AttachTokens::new(Duration::ZERO, 10, 10);
        let token = tokens.issue(SessionId(Ulid(1)), &owner()).expect("a token");
        assert_eq!(
            redeem(&tokens, SessionId(Ulid(1)), &token),
            Err(Error::Unauthorized)
        );
    }

    // S3-005
    #[test]
    fn token_opens_only_its_own_session() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10, 10);
        let token = tokens.issue(SessionId(Ulid(1)), &owner()).expect("a token");
        assert_eq!(
            redeem(&tokens, SessionId(Ulid(2)), &token),
            Err(Error::Unauthorized)
        );
        assert_eq!(redeem(&tokens, SessionId(Ulid(1)), &token), Ok(owner()));
    }

    #[test]
    fn each_owner_has_a_share_of_the_tokens() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 3, 2);
        let session = SessionId(Ulid(1));
        let issue = |principal| tokens.issue(session, &named(principal));
        let refused = |refusal, max| Error::LimitReached {
            resource: SharedResource::AttachTokens,
            refusal,
            max,
        };
        let first = issue("a").expect("a token");
        assert!(issue("a").is_ok());
        assert_eq!(issue("a"), Err(refused(FairRefusal::OwnerFull, 2)));
        assert!(issue("b").is_ok());
        assert_eq!(issue("c"), Err(refused(FairRefusal::AllFull, 3)));
        assert_eq!(redeem(&tokens, session, &first), Ok(named("a")));
        assert!(issue("a").is_ok());
    }

    #[test]
    fn expired_and_used_tokens_leave_nothing_behind() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 1, 1);
        let session = SessionId(Ulid(1));
        for _ in 0..100 {
            let token = tokens.issue(session, &owner()).expect("a token");
            assert_eq!(redeem(&tokens, session, &token), Ok(owner()));
        }
        assert_eq!(tokens.issued.lock().by_expiry.len(), 0);
        let tokens = AttachTokens::new(Duration::ZERO, 1, 1);
        for _ in 0..100 {
            tokens.issue(session, &owner()).expect("a token");
        }
        assert!(tokens.issued.lock().by_expiry.len() <= 1);
    }

    #[test]
    fn used_tokens_behind_an_unused_one_do_not_pile_up() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10, 10);
        let session = SessionId(Ulid(1));
        let oldest = tokens.issue(session, &owner()).expect("a token");
        for _ in 0..1_000 {
            let token = tokens.issue(session, &owner()).expect("a token");
            assert_eq!(redeem(&tokens, session, &token), Ok(owner()));
            let listed = tokens.issued.lock().by_expiry.len();
            assert!(listed <= IssuedTokens::USED_MAX + 4, "{listed} tokens");
        }
        assert_eq!(redeem(&tokens, session, &oldest), Ok(owner()));
        assert_eq!(tokens.issued.lock().by_expiry.len(), 0);
    }

    #[test]
    fn token_of_refused_caller_stays_valid() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10, 10);
        let session = SessionId(Ulid(1));
        let token = tokens.issue(session, &owner()).expect("a token");
        let refused = tokens.redeem(session, &token, |_| Err::<(), _>(Error::TooMany));
        assert_eq!(refused, Err(Error::TooMany));
        assert_eq!(redeem(&tokens, session, &token), Ok(owner()));
    }
}
