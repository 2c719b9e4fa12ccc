//! The check of a JSON Web Token: signature, issuer, audience, times, and who it names.

use jsonwebtoken::errors::Error;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use turnwire_event::Timestamp;

use crate::caller::{Caller, Credential, Lease};
use crate::claims::{ClaimNames, Claims};
use crate::key_set::{IssuerKey, KeySet};
use crate::refusal::Refusal;
use crate::ring_verifier::ALGORITHMS;

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// The most keys that are tried for a token that names none.
const KEYS_TRIED_MAX: usize = 8;

/// What tokens must say.
#[derive(Clone, Debug)]
pub struct JwtRules {
    /// The issuer, exactly as in the claim `iss`.
    pub issuer: String,
    /// The audiences of which a token must name one in its claim `aud`.
    pub audiences: Vec<String>,
    /// How far the clocks of the issuer and the server may be apart.
    pub leeway_ms: i64,
    /// Which claims say who the caller is.
    pub claims: ClaimNames,
}

/// Why a token was not accepted with a key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JwtFault {
    /// No key of the set has the name in the token: the issuer may have a new one.
    UnknownKey,
    /// It is not accepted, whatever keys there are.
    Refused(Refusal),
}

impl From<Refusal> for JwtFault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl JwtRules {
    /// The caller of a token, if one of `keys` has signed it and the rules hold `now`.
    pub(crate) fn check(
        &self,
        token: &str,
        keys: &KeySet,
        now: Timestamp,
    ) -> Result<Caller, JwtFault> {
        let head = head_of(token).ok_or(Refusal::Invalid)?;
        let name = head.kid.as_deref();
        if name.is_some_and(|name| !keys.has_name(name)) {
            return Err(JwtFault::UnknownKey);
        }
        let mut candidates = keys.candidates(name, head.alg).take(KEYS_TRIED_MAX);
        let signed = candidates.find_map(|key| verified(token, key, &head).ok().zip(Some(key)));
        let (claims, key) = signed.ok_or(Refusal::Invalid)?;
        let caller = self.caller_of(&claims, key, now)?;
        Ok(caller)
    }

    fn caller_of(
        &self,
        claims: &Claims,
        key: &IssuerKey,
        now: Timestamp,
    ) -> Result<Caller, Refusal> {
        if !claims.is_for(&self.issuer, &self.audiences) {
            return Err(Refusal::WrongAudience);
        }
        let end = claims.end(now, self.leeway_ms)?;
        let (owner, scopes) = claims.caller(&self.claims)?;
        Ok(Caller {
            owner,
            service: None,
            scopes,
            lease: Lease {
                credential: Credential::Jwt(key.fingerprint.clone()),
                expires_at: Some(end),
            },
        })
    }
}

/// The head of a token of a kind that is accepted.
fn head_of(token: &str) -> Option<Header> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let head = decode_header(token).ok()?;
    // A token for something else, such as a logout, has another type (RFC 8725, 3.11).
    let has_known_type = head.typ.as_deref().is_none_or(|kind| {
        let kind = kind.to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        kind == "jwt" || kind == "at+jwt"
    });
    // A critical extension is one that this server does not know.
    let is_plain = head.crit.is_none() && ALGORITHMS.contains(&head.alg);
    (has_known_type && is_plain).then_some(head)
}

/// The claims of a token that `key` has signed.
fn verified(token: &str, key: &IssuerKey, head: &Header) -> Result<Claims, Error> {
    let mut rules = Validation::new(head.alg);
    // `Claims` checks all of it, by the clock of the server.
    rules.validate_exp = false;
    rules.validate_aud = false;
    rules.required_spec_claims.clear();
    let decoded = decode::<Map<String, Value>>(token, &key.decoding, &rules)?;
    Ok(Claims(decoded.claims))
}
