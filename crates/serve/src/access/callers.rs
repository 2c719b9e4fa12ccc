//! Who sends a request: from its token, from the attach token in its URL, or, without
//! authentication, from its headers.

use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use turnwire_event::{Owner, Principal, SessionId, TenantId, metric};
use turnwire_identity::{Authenticator, Caller, Lease, Refusal, Scope};
use turnwire_wire::problem::Code;

use super::attach_tokens::AttachTokens;
use crate::access::header::single_value;
use crate::error::RequestFault;

const PRINCIPAL: &str = "x-turnwire-principal";
const TENANT: &str = "x-tenant-id";
const DEFAULT_PRINCIPAL: &str = "local";

/// The scopes of a caller that is believed: the operator's own machine.
const BELIEVED: [Scope; 4] = [Scope::Own, Scope::Admin, Scope::Metrics, Scope::ActAs];

/// Paths that need no token: they show nothing of anybody.
const PUBLIC: [&str; 3] = ["/", "/openapi.json", "/asyncapi.json"];
/// Probes that need no token, whatever their headers say.
const PUBLIC_PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Finds the caller of each request.
#[derive(Clone)]
pub struct Callers {
    authenticator: Arc<Authenticator>,
    attach_tokens: Arc<AttachTokens>,
}

/// The attach token with which a request opens a stream. Its text is not in its debug output.
#[derive(Clone)]
pub(crate) struct PresentedToken {
    pub(crate) token: Arc<str>,
    /// The session that it was issued for.
    pub(crate) session: SessionId,
    /// How long the identity holds that it was issued to.
    pub(crate) lease: Lease,
}

impl fmt::Debug for PresentedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PresentedToken");
        debug
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Callers {
    /// Callers that `authenticator` accepts, and those with one of the `attach_tokens`.
    pub fn new(authenticator: Arc<Authenticator>, attach_tokens: Arc<AttachTokens>) -> Self {
        Self {
            authenticator,
            attach_tokens,
        }
    }

    /// True if every caller is believed.
    pub(crate) fn is_open(&self) -> bool {
        self.authenticator.is_open()
    }

    /// The caller of a request from a page of `site`; `None` if the path needs none and none is
    /// named. An attach token becomes an extension of the request.
    pub(crate) async fn identify(
        &self,
        request: &mut Request,
        site: Option<&HeaderValue>,
    ) -> Result<Option<Caller>, RequestFault> {
        let (path, headers) = (request.uri().path(), request.headers());
        if !self.is_open() && PUBLIC_PROBES.contains(&path) {
            return Ok(None);
        }
        if PUBLIC.contains(&path) || PUBLIC_PROBES.contains(&path) || path.starts_with("/problems")
        {
            // Malformed headers are refused, whether they are believed or not.
            let caller = believed(headers)?;
            return Ok(self.is_open().then_some(caller));
        }
        let bearer = bearer(headers);
        if let Some(token) = attach_token(request) {
            let grant = self.attach_tokens.look_up(&token, site)?;
            // What the token and the headers say must not differ.
            let is_same = match bearer {
                Some(bearer) if !self.is_open() => {
                    let other = self.authenticate(Some(bearer)).await?;
                    acting(other, headers)?.owner == grant.caller.owner
                }
                _ => names_no_other(headers, &grant.caller.owner)?,
            };
            if !is_same {
                return Err(forbidden("The attach token is of another principal.", None));
            }
            let presented = PresentedToken {
                token: token.into(),
                session: grant.session,
                lease: grant.caller.lease.clone(),
            };
            request.extensions_mut().insert(presented);
            return Ok(Some(grant.caller));
        }
        if self.is_open() {
            return believed(headers).map(Some);
        }
        let caller = self.authenticate(bearer).await?;
        acting(caller, headers).map(Some)
    }

    async fn authenticate(&self, bearer: Option<&str>) -> Result<Caller, RequestFault> {
        let checked = self.authenticator.authenticate(bearer).await;
        checked.map_err(refused)
    }
}

/// The problem of a refused token; counted.
pub(crate) fn refused(refusal: Refusal) -> RequestFault {
    metrics::counter!(metric::AUTH_REFUSED_TOTAL, "reason" => refusal.name()).increment(1);
    refusal_fault(refusal)
}

/// The problem of a refused token.
pub(crate) fn refusal_fault(refusal: Refusal) -> RequestFault {
    let code = match refusal {
        Refusal::Unavailable => Code::AuthUnavailable,
        _ => Code::Unauthorized,
    };
    RequestFault::new(code, refusal.to_string()).with("reason", refusal.name())
}

/// The problem of a caller that may not do this.
pub(crate) fn forbidden(detail: &'static str, scope: Option<Scope>) -> RequestFault {
    let fault = RequestFault::new(Code::Forbidden, detail);
    match scope {
        Some(scope) => fault.with("scope", scope.name()),
        None => fault,
    }
}

/// The token of an `Authorization: Bearer` header. Another scheme is no token, and a second header
/// makes it invalid.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().unwrap_or_default();
    if values.next().is_some() {
        return Some("");
    }
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The attach token in the query of a request for a stream.
fn attach_token(request: &Request) -> Option<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let path = request.uri().path();
    let opens_stream =
        path.ends_with("/stream") && (path.starts_with("/sessions/") || path.starts_with("/chat/"));
    let mut pairs = request.uri().query()?.split('&');
    let token = pairs.find_map(|pair| pair.strip_prefix("attach="));
    token.filter(|_| opens_stream).map(str::to_owned)
}

/// The caller that acts for the principal that it names, if it may.
fn acting(caller: Caller, headers: &HeaderMap) -> Result<Caller, RequestFault> {
    if named_tenant(headers)?.is_some_and(|tenant| tenant != caller.owner.tenant) {
        return Err(forbidden(
            "The token is of another tenant than X-Tenant-Id.",
            None,
        ));
    }
    match named_principal(headers)? {
        Some(named) if named != caller.owner.principal => {
            if !caller.scopes.has(Scope::ActAs) {
                let detail = "The token is of another principal than X-Turnwire-Principal.";
                return Err(forbidden(detail, Some(Scope::ActAs)));
            }
            Ok(caller.acting_for(named))
        }
        Some(_) | None => Ok(caller),
    }
}

/// True if the headers name no tenant and principal, or those of `owner`.
fn names_no_other(headers: &HeaderMap, owner: &Owner) -> Result<bool, RequestFault> {
    let (tenant, principal) = (named_tenant(headers)?, named_principal(headers)?);
    let is_own_tenant = tenant.is_none_or(|tenant| tenant == owner.tenant);
    Ok(is_own_tenant && principal.is_none_or(|principal| principal == owner.principal))
}

/// The caller that a request without authentication says it is.
fn believed(headers: &HeaderMap) -> Result<Caller, RequestFault> {
    let tenant = named_tenant(headers)?.unwrap_or_default();
    let mut caller = believed_anonymous();
    caller.owner.tenant = tenant;
    if let Some(principal) = named_principal(headers)? {
        caller.owner.principal = principal;
    }
    Ok(caller)
}

/// The caller of a request without authentication that names nobody.
pub(crate) fn believed_anonymous() -> Caller {
    Caller {
        owner: anonymous(),
        service: None,
        scopes: BELIEVED.into_iter().collect(),
        lease: Lease::UNLIMITED,
    }
}

/// The [`Owner`] of a request that names none.
pub(crate) fn anonymous() -> Owner {
    Owner {
        tenant: TenantId::default(),
        principal: DEFAULT_PRINCIPAL.parse().expect("a valid principal"),
    }
}

fn named_tenant(headers: &HeaderMap) -> Result<Option<TenantId>, RequestFault> {
    let invalid = || {
        let detail = "X-Tenant-Id must be one UUID in its usual spelling.";
        RequestFault::new(Code::TenantInvalid, detail)
    };
    let text = single_value(headers, TENANT).map_err(|_| invalid())?;
    text.map(|text| text.parse().map_err(|_| invalid()))
        .transpose()
}

fn named_principal(headers: &HeaderMap) -> Result<Option<Principal>, RequestFault> {
    let invalid = || {
        let rule = "must be one name of 1 to 128 printable ASCII characters";
        RequestFault::invalid("X-Turnwire-Principal", rule)
    };
    let text = single_value(headers, PRINCIPAL).map_err(|_| invalid())?;
    text.map(|text| text.parse().map_err(|_| invalid()))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(*name, value.parse().expect("a header"));
        }
        headers
    }

    fn of(said: &[(&'static str, &str)]) -> Result<(String, String), Code> {
        believed(&headers(said))
            .map(|caller| {
                (
                    caller.owner.tenant.to_string(),
                    caller.owner.principal.to_string(),
                )
            })
            .map_err(|fault| fault.code())
    }

    const NIL: &str = "00000000-0000-0000-0000-000000000000";
    const OTHER: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";

    // D-70
    #[test]
    fn anonymous_request_is_local_in_nil_tenant() {
        assert_eq!(of(&[]), Ok((NIL.into(), "local".into())));
        assert_eq!(of(&[(TENANT, OTHER)]), Ok((OTHER.into(), "local".into())));
        assert_eq!(
            of(&[(TENANT, OTHER), (PRINCIPAL, "user-42")]),
            Ok((OTHER.into(), "user-42".into()))
        );
    }

    // D-70
    #[test]
    fn invalid_tenant_or_principal_is_refused() {
        for bad in ["", "x", "3c33212cd1194ef18db02ca93cd3b2dd"] {
            assert_eq!(of(&[(TENANT, bad)]), Err(Code::TenantInvalid), "{bad}");
        }
        assert_eq!(
            of(&[(TENANT, OTHER), (TENANT, OTHER)]),
            Err(Code::TenantInvalid)
        );
        let long = "x".repeat(129);
        for bad in ["", "a b", long.as_str()] {
            assert_eq!(of(&[(PRINCIPAL, bad)]), Err(Code::InvalidRequest), "{bad}");
        }
        assert_eq!(
            of(&[(PRINCIPAL, "a"), (PRINCIPAL, "b")]),
            Err(Code::InvalidRequest)
        );
    }

    // S2-046
    #[test]
    fn headers_name_somebody_else_only_with_the_scope() {
        let caller = |scopes: &[Scope]| Caller {
            owner: Owner {
                tenant: NIL.parse().expect("a tenant"),
                principal: "ann".parse().expect("a principal"),
            },
            service: None,
            scopes: scopes.iter().copied().collect(),
            lease: Lease::UNLIMITED,
        };
        let act = |scopes: &[Scope], said: &[(&'static str, &str)]| {
            let acting = acting(caller(scopes), &headers(said));
            acting
                .map(|caller| caller.owner.principal.to_string())
                .map_err(|fault| fault.code())
        };
        let own: &[Scope] = &[Scope::Own];
        assert_eq!(act(own, &[]), Ok("ann".into()));
        assert_eq!(
            act(own, &[(PRINCIPAL, "ann"), (TENANT, NIL)]),
            Ok("ann".into())
        );
        assert_eq!(act(own, &[(PRINCIPAL, "bob")]), Err(Code::Forbidden));
        assert_eq!(act(own, &[(TENANT, OTHER)]), Err(Code::Forbidden));
        let service: &[Scope] = &[Scope::Own, Scope::ActAs];
        assert_eq!(act(service, &[(PRINCIPAL, "bob")]), Ok("bob".into()));
        assert_eq!(act(service, &[(TENANT, OTHER)]), Err(Code::Forbidden));
        assert_eq!(
            act(service, &[(PRINCIPAL, "a b")]),
            Err(Code::InvalidRequest)
        );
    }

    #[test]
    fn bearer_token_is_read_from_one_header() {
        for (said, token) in [
            (&[][..], None),
            (&[("authorization", "Bearer abc")], Some("abc")),
            (&[("authorization", "bearer  abc ")], Some("abc")),
            (&[("authorization", "Bearer")], Some("")),
            (&[("authorization", "Basic abc")], None),
            (
                &[
                    ("authorization", "Bearer abc"),
                    ("authorization", "Bearer abc"),
                ],
                Some(""),
            ),
        ] {
            assert_eq!(bearer(&headers(said)), token, "{said:?}");
        }
    }

    // G3
    #[test]
    fn attach_token_is_not_in_debug_output() {
        let presented = PresentedToken {
            token: "atk_planted".into(),
            session: SessionId(turnwire_event::Ulid(1)),
            lease: Lease::UNLIMITED,
        };
        let shown = format!("{presented:?}");
        assert!(
            shown.contains("SessionId") && !shown.contains("planted"),
            "{shown}"
        );
    }

    #[test]
    fn attach_token_counts_on_streams_alone() {
        let token = |uri: &str| {
            let request = Request::builder().uri(uri).body(axum::body::Body::empty());
            attach_token(&request.expect("a request"))
        };
        for uri in [
            "/sessions/x/stream?attach=t",
            "/chat/x/stream?last_event_id=1&attach=t",
        ] {
            assert_eq!(token(uri).as_deref(), Some("t"), "{uri}");
        }
        for uri in [
            "/sessions/x?attach=t",
            "/sessions/x/stream",
            "/x/stream?attach=t",
        ] {
            assert_eq!(token(uri), None, "{uri}");
        }
    }
}
