//! Who a request acts for, and whether it may: extractors by the scopes that routes need.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use turnwire_event::{Owner, SessionId};
use turnwire_identity::{Caller, LeaseState, Refusal, Scope};
use turnwire_session::Viewer;

use crate::access::attach_tokens;
use crate::access::callers::{PresentedToken, forbidden, refused};
use crate::access::guard::CallingSite;
use crate::error::RequestFault;
use crate::transport::Streams;

/// The [`Owner`] that the request acts for, with the scope `own`.
#[derive(Clone, Debug)]
pub struct Identity(pub Owner);

/// The [`Caller`] of the request, with the scope `own`.
#[derive(Clone, Debug)]
pub struct OwnCaller(pub Caller);

/// The [`Caller`] of a request that only reads, with the scope `own` or `tenant:read`.
#[derive(Clone, Debug)]
pub struct ReadingCaller(pub Caller);

/// The [`Caller`] of a request about approvals, with the scope `own` or `review`.
#[derive(Clone, Debug)]
pub struct ReviewingCaller(pub Caller);

impl ReadingCaller {
    /// How far the caller sees.
    pub fn viewer(&self) -> Viewer<'_> {
        viewer(&self.0, Scope::TenantRead)
    }
}

impl ReviewingCaller {
    /// How far the caller sees.
    pub fn viewer(&self) -> Viewer<'_> {
        viewer(&self.0, Scope::Review)
    }
}

fn viewer(caller: &Caller, scope: Scope) -> Viewer<'_> {
    let viewer = if caller.scopes.has(scope) {
        Viewer::of_tenant(&caller.owner)
    } else {
        (&caller.owner).into()
    };
    Viewer {
        service: caller.service.as_ref(),
        ..viewer
    }
}

impl<S: Sync> FromRequestParts<S> for ReadingCaller {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        let caller = caller(parts)?;
        require(caller, &[Scope::Own, Scope::TenantRead])?;
        Ok(Self(caller.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for ReviewingCaller {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        let caller = caller(parts)?;
        require(caller, &[Scope::Own, Scope::Review])?;
        Ok(Self(caller.clone()))
    }
}

/// The attach token of a request, if it has one. A stream that is opened uses it up.
#[derive(Clone, Debug)]
pub struct AttachUse {
    presented: Option<PresentedToken>,
    site: Option<HeaderValue>,
}

impl AttachUse {
    /// Refuses a token that is for another session than `session`, or of an identity that has ended.
    /// The token is not used up.
    pub(crate) fn check(&self, streams: &Streams, session: SessionId) -> Result<(), RequestFault> {
        let Some(presented) = &self.presented else {
            return Ok(());
        };
        if presented.session != session {
            return Err(attach_tokens::invalid());
        }
        let authenticator = streams.identities.authenticator();
        match authenticator.state_of(&presented.lease) {
            LeaseState::Valid => Ok(()),
            LeaseState::Expired => Err(refused(Refusal::Expired)),
            LeaseState::Revoked => Err(refused(Refusal::Invalid)),
        }
    }

    /// Uses the token up for a stream of `session`; without a token there is nothing to use.
    pub(crate) fn redeem(&self, streams: &Streams, session: SessionId) -> Result<(), RequestFault> {
        let Some(presented) = &self.presented else {
            return Ok(());
        };
        let (token, site) = (&presented.token, self.site.as_ref());
        let redeemed = streams
            .attach_tokens
            .redeem(session, token, site, |_| Ok(()));
        redeemed.map(|_| ())
    }
}

impl<S: Sync> FromRequestParts<S> for AttachUse {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let presented = parts.extensions.get::<PresentedToken>();
        let site = parts.extensions.get::<CallingSite>();
        Ok(Self {
            presented: presented.cloned(),
            site: site.and_then(|site| site.0.clone()),
        })
    }
}

/// The [`Owner`] of a request with the scope `admin`.
#[derive(Clone, Debug)]
pub struct Administrator(pub Owner);

/// The [`Caller`] of a request with the scope `admin`.
#[derive(Clone, Debug)]
pub struct AdminCaller(pub Caller);

/// A request with the scope `metrics` or `admin`.
#[derive(Clone, Copy, Debug)]
pub struct Collector;

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        let caller = caller(parts)?;
        require(caller, &[Scope::Own])?;
        Ok(Self(caller.owner.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for OwnCaller {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        let caller = caller(parts)?;
        require(caller, &[Scope::Own])?;
        Ok(Self(caller.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for Administrator {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        let caller = caller(parts)?;
        require(caller, &[Scope::Admin])?;
        Ok(Self(caller.owner.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for AdminCaller {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        let caller = caller(parts)?;
        require(caller, &[Scope::Admin])?;
        Ok(Self(caller.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for Collector {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        require(caller(parts)?, &[Scope::Metrics, Scope::Admin])?;
        Ok(Self)
    }
}

/// The caller that the middleware has found.
pub(crate) fn caller(parts: &Parts) -> Result<&Caller, RequestFault> {
    let caller = parts.extensions.get::<Caller>();
    caller.ok_or_else(|| refused(Refusal::Missing))
}

/// Refuses a caller that has none of `scopes`.
pub(crate) fn require(caller: &Caller, scopes: &[Scope]) -> Result<(), RequestFault> {
    if scopes.iter().any(|scope| caller.scopes.has(*scope)) {
        return Ok(());
    }
    let detail = "The token does not have the scope that this needs.";
    Err(forbidden(detail, scopes.first().copied()))
}
