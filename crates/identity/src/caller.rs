//! The [`Caller`] of a request: who it is, what it may do, and for how long.

use std::sync::Arc;

use turnwire_event::row::Requester;
use turnwire_event::{Owner, Principal, Timestamp};

use crate::scope::ScopeSet;
use crate::token_file::TokenRecord;

/// Who sends a request, as its credential says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tenant that the credential names, and the principal that the request is for.
    pub owner: Owner,
    /// The principal that the credential names, if it acts for another one.
    pub service: Option<Principal>,
    /// What the credential allows.
    pub scopes: ScopeSet,
    /// How long all of this holds.
    pub lease: Lease,
}

impl Caller {
    /// The caller as the audit names it.
    pub fn requester(&self) -> Requester {
        Requester {
            owner: self.owner.clone(),
            service: self.service.clone(),
        }
    }

    /// The caller acting for `principal` of the same tenant.
    #[must_use]
    pub fn acting_for(mut self, principal: Principal) -> Self {
        let service = std::mem::replace(&mut self.owner.principal, principal);
        self.service = Some(service);
        self
    }

    /// The principal that the credential names.
    pub fn credential_principal(&self) -> &Principal {
        self.service.as_ref().unwrap_or(&self.owner.principal)
    }
}

/// How long an identity holds: until a time, and as long as its credential is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What the caller proved its identity with.
    pub credential: Credential,
    /// When it ends; `None` if it has no end of its own.
    pub expires_at: Option<Timestamp>,
}

/// What a caller proved its identity with. It names the credential and cannot be used as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: the server believes every caller on its own machine.
    None,
    /// An API token, as it was stored when it was accepted.
    Token(Arc<TokenRecord>),
    /// A JSON Web Token, by the fingerprint of the key that signed it.
    Jwt(Arc<str>),
}

/// Whether a [`Lease`] still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Neither its time is over nor is its credential gone.
    Valid,
    /// Its time is over.
    Expired,
    /// The credential was removed, or the key that it was signed with.
    Revoked,
}

impl Lease {
    /// The lease of a caller that is believed.
    pub const UNLIMITED: Self = Self {
        credential: Credential::None,
        expires_at: None,
    };

    /// True once the time of the lease is over.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }
}
