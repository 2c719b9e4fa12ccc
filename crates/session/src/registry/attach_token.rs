//! Attach tokens: 128 random bits, valid once, for one session and owner, for a short time.
//!
//! [`AttachTokens`] stores only their hashes: neither a log nor a memory dump contains a usable
//! token.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use turnwire_event::{Owner, SessionId, Ulid};

use crate::error::Error;

struct AttachGrant {
    session: SessionId,
    owner: Owner,
    expires: Instant,
}

/// The attach tokens that were issued and neither used nor expired.
pub(crate) struct AttachTokens {
    grants: Mutex<HashMap<[u8; 32], AttachGrant>>,
    ttl: Duration,
    max: usize,
}

impl AttachTokens {
    /// An empty set that accepts `max` tokens, each valid for `ttl`.
    pub(crate) fn new(ttl: Duration, max: usize) -> Self {
        Self {
            grants: Mutex::default(),
            ttl,
            max,
        }
    }

    /// Issues a token for `session`.
    pub(crate) fn issue(&self, session: SessionId, owner: &Owner) -> Result<String, Error> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|_| Error::Internal)?;
        let token = format!("atk_{}", Ulid(u128::from_be_bytes(random)));
        let now = Instant::now();
        let mut grants = self.grants.lock();
        if grants.len() >= self.max {
            grants.retain(|_, grant| grant.expires > now);
        }
        if grants.len() >= self.max {
            return Err(Error::TooMany);
        }
        grants.insert(
            hash(&token),
            AttachGrant {
                session,
                owner: owner.clone(),
                expires: now + self.ttl,
            },
        );
        Ok(token)
    }

    /// Consumes a token: of two callers that race with the same token, one succeeds.
    pub(crate) fn redeem(&self, session: SessionId, token: &str) -> Result<Owner, Error> {
        let key = hash(token);
        let mut grants = self.grants.lock();
        // A token presented for another session stays valid for its own.
        if grants
            .get(&key)
            .is_none_or(|grant| grant.session != session)
        {
            return Err(Error::Unauthorized);
        }
        match grants.remove(&key) {
            Some(grant) if grant.expires > Instant::now() => Ok(grant.owner),
            _ => Err(Error::Unauthorized),
        }
    }

    /// Removes the tokens that have expired.
    pub(crate) fn remove_expired(&self) {
        let now = Instant::now();
        self.grants.lock().retain(|_, grant| grant.expires > now);
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TenantId;

    fn owner() -> Owner {
        Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        }
    }

    // S3-004
    #[test]
    fn token_is_valid_once() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10);
        let session = SessionId(Ulid(1));
        let token = tokens.issue(session, &owner()).expect("a token");
        assert!(token.starts_with("atk_") && token.len() == 30, "{token}");
        assert_eq!(tokens.redeem(session, &token), Ok(owner()));
        assert_eq!(tokens.redeem(session, &token), Err(Error::Unauthorized));
    }

    // S3-004
    #[test]
    fn token_expires() {
        let tokens = AttachTokens::new(Duration::ZERO, 10);
        let token = tokens.issue(SessionId(Ulid(1)), &owner()).expect("a token");
        assert_eq!(
            tokens.redeem(SessionId(Ulid(1)), &token),
            Err(Error::Unauthorized)
        );
    }

    // S3-005
    #[test]
    fn token_opens_only_its_own_session() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10);
        let token = tokens.issue(SessionId(Ulid(1)), &owner()).expect("a token");
        assert_eq!(
            tokens.redeem(SessionId(Ulid(2)), &token),
            Err(Error::Unauthorized)
        );
        assert_eq!(tokens.redeem(SessionId(Ulid(1)), &token), Ok(owner()));
    }

    #[test]
    fn tokens_are_refused_above_the_limit() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 2);
        let issue = || tokens.issue(SessionId(Ulid(1)), &owner());
        assert!(issue().is_ok() && issue().is_ok());
        assert_eq!(issue(), Err(Error::TooMany));
    }
}
