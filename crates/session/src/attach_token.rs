//! Attach tokens: 128 random bits, good once, for one session and owner, for a short time.
//!
//! Kept in memory by hash alone: neither a log nor a memory dump gives a usable token away.

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

/// The tokens outstanding.
pub struct AttachTokens {
    grants: Mutex<HashMap<[u8; 32], AttachGrant>>,
    ttl: Duration,
    max: usize,
}

impl AttachTokens {
    /// None outstanding.
    pub fn new(ttl: Duration, max: usize) -> Self {
        Self {
            grants: Mutex::default(),
            ttl,
            max,
        }
    }

    /// A fresh token.
    pub fn grant(&self, session: SessionId, owner: &Owner) -> Result<String, Error> {
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

    /// Uses a token up; of two that race with the same one, one wins.
    pub fn redeem(&self, session: SessionId, token: &str) -> Result<Owner, Error> {
        let key = hash(token);
        let mut grants = self.grants.lock();
        // A token shown at the wrong door stays good at its own.
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

    /// Forgets what has expired.
    pub fn sweep(&self) {
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

    #[test]
    fn s3_004_a_token_is_good_once() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10);
        let session = SessionId(Ulid(1));
        let token = tokens.grant(session, &owner()).expect("a token");
        assert!(token.starts_with("atk_") && token.len() == 30, "{token}");
        assert_eq!(tokens.redeem(session, &token), Ok(owner()));
        assert_eq!(tokens.redeem(session, &token), Err(Error::Unauthorized));
    }

    #[test]
    fn s3_004_a_token_expires() {
        let tokens = AttachTokens::new(Duration::ZERO, 10);
        let token = tokens.grant(SessionId(Ulid(1)), &owner()).expect("a token");
        assert_eq!(
            tokens.redeem(SessionId(Ulid(1)), &token),
            Err(Error::Unauthorized)
        );
    }

    #[test]
    fn s3_005_a_token_opens_its_own_session_only() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 10);
        let token = tokens.grant(SessionId(Ulid(1)), &owner()).expect("a token");
        assert_eq!(
            tokens.redeem(SessionId(Ulid(2)), &token),
            Err(Error::Unauthorized)
        );
        assert_eq!(tokens.redeem(SessionId(Ulid(1)), &token), Ok(owner()));
    }

    #[test]
    fn a_flood_of_tokens_is_bounded() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 2);
        let grant = || tokens.grant(SessionId(Ulid(1)), &owner());
        assert!(grant().is_ok() && grant().is_ok());
        assert_eq!(grant(), Err(Error::TooMany));
    }
}
