//! Attach tokens: 128 random bits, valid once, for one session, caller and site, for a short time.
//! A browser opens streams without an `Authorization` header: the token is in the URL.
//!
//! [`AttachTokens`] stores only their hashes: neither a log nor a memory dump contains a usable
//! token. Each owner has a share of them.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use parking_lot::Mutex;
use turnwire_event::{SessionId, Ulid};
use turnwire_identity::{Caller, TokenHash};
use turnwire_wire::problem::Code;

use crate::error::RequestFault;
use crate::listen::{OwnerPermit, OwnerShares};

/// What a token is good for.
#[derive(Clone, Debug)]
pub(crate) struct AttachGrant {
    pub(crate) session: SessionId,
    /// Who asked for the token, and for how long that identity holds.
    pub(crate) caller: Caller,
    /// The site of the page that asked for it; `None` for the server's own page and for programs.
    pub(crate) site: Option<HeaderValue>,
    expires: Instant,
    _permit: OwnerPermit,
}

/// The attach tokens that were issued and neither used nor expired.
pub struct AttachTokens {
    issued: Mutex<IssuedTokens>,
    ttl: Duration,
    shares: OwnerShares,
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
    pub fn new(ttl: Duration, max: usize, max_per_owner: usize) -> Self {
        Self {
            issued: Mutex::default(),
            ttl,
            shares: OwnerShares::attach_tokens(max, max_per_owner),
        }
    }

    /// Issues a token for `session` to a caller on a page of `site`.
    pub(crate) fn issue(
        &self,
        session: SessionId,
        caller: &Caller,
        site: Option<&HeaderValue>,
    ) -> Result<String, RequestFault> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|_| RequestFault::internal())?;
        let token = format!("atk_{}", Ulid(u128::from_be_bytes(random)));
        let (now, hash) = (Instant::now(), TokenHash::of(&token));
        let expires = now + self.ttl;
        let mut issued = self.issued.lock();
        issued.remove_expired(now);
        let grant = AttachGrant {
            session,
            caller: caller.clone(),
            site: site.cloned(),
            expires,
            _permit: self.shares.acquire(&caller.owner)?,
        };
        issued.grants.insert(hash, grant);
        issued.by_expiry.push_back((expires, hash));
        Ok(token)
    }

    /// What a token is good for on a page of `site`, if it is valid there. The token stays valid.
    pub(crate) fn look_up(
        &self,
        token: &str,
        site: Option<&HeaderValue>,
    ) -> Result<AttachGrant, RequestFault> {
        let issued = self.issued.lock();
        let grant = issued.find(&TokenHash::of(token), site);
        grant.cloned().ok_or_else(invalid)
    }

    /// Consumes a token for `session` if `admit` accepts its caller, and returns the caller with what
    /// `admit` gave: a refused caller can use the token later. Of two callers that race with the
    /// same token, one succeeds. `admit` runs under a lock and must return quickly.
    pub(crate) fn redeem<T>(
        &self,
        session: SessionId,
        token: &str,
        site: Option<&HeaderValue>,
        admit: impl FnOnce(&Caller) -> Result<T, RequestFault>,
    ) -> Result<(Caller, T), RequestFault> {
        let key = TokenHash::of(token);
        let mut issued = self.issued.lock();
        // A token presented for another session stays valid for its own.
        let grant = issued.find(&key, site);
        let grant = grant.filter(|grant| grant.session == session);
        let admitted = admit(&grant.ok_or_else(invalid)?.caller)?;
        let grant = issued.remove(&key).ok_or_else(invalid)?;
        Ok((grant.caller, admitted))
    }

    /// Removes the tokens that have expired.
    pub(crate) fn remove_expired(&self) {
        self.issued.lock().remove_expired(Instant::now());
    }
}

impl IssuedTokens {
    fn find(&self, hash: &TokenHash, site: Option<&HeaderValue>) -> Option<&AttachGrant> {
        let now = Instant::now();
        let grant = self.grants.get(hash);
        grant.filter(|grant| grant.expires > now && grant.site.as_ref() == site)
    }
}

/// The same for tokens that never were, were used, have expired, or are for another session or site.
pub(crate) fn invalid() -> RequestFault {
    let detail = "The attach token is unknown, used or expired, or is for another session or site.";
    RequestFault::new(Code::Unauthorized, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{Owner, TenantId};
    use turnwire_identity::{Lease, Scope, ScopeSet};

    fn named(principal: &str) -> Caller {
        Caller {
            owner: Owner {
                tenant: TenantId(0),
                principal: principal.parse().expect("a principal"),
            },
            service: None,
            scopes: ScopeSet::NONE.with(Scope::Own),
            lease: Lease::UNLIMITED,
        }
    }

    fn ann() -> Caller {
        named("ann")
    }

    fn tokens(max: usize) -> AttachTokens {
        AttachTokens::new(Duration::from_secs(60), max, max)
    }

    const SESSION: SessionId = SessionId(Ulid(1));

    fn redeem(tokens: &AttachTokens, session: SessionId, token: &str) -> Result<Caller, Code> {
        redeem_on(tokens, session, token, None)
    }

    fn redeem_on(
        tokens: &AttachTokens,
        session: SessionId,
        token: &str,
        site: Option<&HeaderValue>,
    ) -> Result<Caller, Code> {
        let admitted = tokens.redeem(session, token, site, |_| Ok(()));
        admitted
            .map(|(caller, ())| caller)
            .map_err(|fault| fault.code())
    }

    fn issue(tokens: &AttachTokens, principal: &str) -> Result<String, Code> {
        let issued = tokens.issue(SESSION, &named(principal), None);
        issued.map_err(|fault| fault.code())
    }

    // S3-004
    #[test]
    fn token_is_valid_once() {
        let tokens = tokens(10);
        let token = issue(&tokens, "ann").expect("a token");
        assert!(token.starts_with("atk_") && token.len() == 30, "{token}");
        assert_eq!(redeem(&tokens, SESSION, &token), Ok(ann()));
        assert_eq!(redeem(&tokens, SESSION, &token), Err(Code::Unauthorized));
    }

    // G3
    #[test]
    fn expired_token_is_refused() {
        let tokens = AttachTokens::new(Duration::ZERO, 10, 10);
        let token = issue(&tokens, "ann").expect("a token");
        assert_eq!(redeem(&tokens, SESSION, &token), Err(Code::Unauthorized));
        assert!(tokens.look_up(&token, None).is_err());
    }

    // G3
    #[test]
    fn token_for_another_session_is_refused_and_stays_valid() {
        let tokens = tokens(10);
        let token = issue(&tokens, "ann").expect("a token");
        let other = SessionId(Ulid(2));
        assert_eq!(redeem(&tokens, other, &token), Err(Code::Unauthorized));
        assert_eq!(redeem(&tokens, SESSION, &token), Ok(ann()));
    }

    // G3, G4
    #[test]
    fn token_is_valid_on_the_site_that_asked_for_it() {
        let tokens = tokens(10);
        let (app, evil) = (
            HeaderValue::from_static("https://app.example.com"),
            HeaderValue::from_static("https://evil.example.com"),
        );
        let token = tokens.issue(SESSION, &ann(), Some(&app)).expect("a token");
        for site in [None, Some(&evil)] {
            let refused = redeem_on(&tokens, SESSION, &token, site);
            assert_eq!(refused, Err(Code::Unauthorized), "{site:?}");
            assert!(tokens.look_up(&token, site).is_err());
        }
        let found = tokens.look_up(&token, Some(&app)).expect("valid");
        assert_eq!((found.session, found.caller), (SESSION, ann()));
        assert_eq!(redeem_on(&tokens, SESSION, &token, Some(&app)), Ok(ann()));
        let own = issue(&tokens, "ann").expect("a token");
        let refused = redeem_on(&tokens, SESSION, &own, Some(&app));
        assert_eq!(refused, Err(Code::Unauthorized));
    }

    // G9
    #[test]
    fn each_owner_has_a_share_of_the_tokens() {
        let tokens = AttachTokens::new(Duration::from_secs(60), 4, 2);
        let first = issue(&tokens, "a").expect("a token");
        assert!(issue(&tokens, "a").is_ok());
        assert_eq!(issue(&tokens, "a"), Err(Code::TooManyRequests));
        assert!(issue(&tokens, "b").is_ok() && issue(&tokens, "c").is_ok());
        assert_eq!(issue(&tokens, "d"), Err(Code::TooManyRequests));
        assert_eq!(redeem(&tokens, SESSION, &first), Ok(named("a")));
        assert!(issue(&tokens, "a").is_ok());
    }

    #[test]
    fn expired_and_used_tokens_leave_nothing_behind() {
        let fresh = AttachTokens::new(Duration::from_secs(60), 1, 1);
        for _ in 0..100 {
            let token = issue(&fresh, "ann").expect("a token");
            assert_eq!(redeem(&fresh, SESSION, &token), Ok(ann()));
        }
        assert_eq!(fresh.issued.lock().by_expiry.len(), 0);
        let expired = AttachTokens::new(Duration::ZERO, 1, 1);
        for _ in 0..100 {
            issue(&expired, "ann").expect("a token");
        }
        assert!(expired.issued.lock().by_expiry.len() <= 1);
    }

    #[test]
    fn used_tokens_behind_an_unused_one_do_not_pile_up() {
        let tokens = tokens(10);
        let oldest = issue(&tokens, "ann").expect("a token");
        for _ in 0..1_000 {
            let token = issue(&tokens, "ann").expect("a token");
            assert_eq!(redeem(&tokens, SESSION, &token), Ok(ann()));
            let listed = tokens.issued.lock().by_expiry.len();
            assert!(listed <= IssuedTokens::USED_MAX + 4, "{listed} tokens");
        }
        assert_eq!(redeem(&tokens, SESSION, &oldest), Ok(ann()));
        assert_eq!(tokens.issued.lock().by_expiry.len(), 0);
    }

    #[test]
    fn token_of_refused_caller_stays_valid() {
        let tokens = tokens(10);
        let token = issue(&tokens, "ann").expect("a token");
        let full = |_: &Caller| Err::<(), _>(RequestFault::internal());
        let refused = tokens.redeem(SESSION, &token, None, full);
        assert_eq!(
            refused.map_err(|fault| fault.code()).err(),
            Some(Code::Internal)
        );
        assert_eq!(redeem(&tokens, SESSION, &token), Ok(ann()));
    }
}
