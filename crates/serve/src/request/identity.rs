//! The owner that a request acts for: a tenant and a principal, from headers until there is
//! authentication.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use turnwire_event::{Owner, Principal, TenantId};
use turnwire_wire::problem::Code;

use crate::error::RequestFault;
use crate::request::header::single_value;

const PRINCIPAL: &str = "x-turnwire-principal";
const TENANT: &str = "x-tenant-id";
const DEFAULT_PRINCIPAL: &str = "local";

/// The [`Owner`] that the request acts for.
#[derive(Clone, Debug)]
pub struct Identity(pub Owner);

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        read(&parts.headers).map(Self)
    }
}

/// The [`Owner`] of a request that names none.
pub(crate) fn anonymous() -> Owner {
    Owner {
        tenant: TenantId::default(),
        principal: DEFAULT_PRINCIPAL.parse().expect("a valid principal"),
    }
}

/// The [`Owner`] that a request with these headers acts for.
pub(crate) fn read(headers: &HeaderMap) -> Result<Owner, RequestFault> {
    let tenant_invalid = || {
        RequestFault::new(
            Code::TenantInvalid,
            "X-Tenant-Id must be one UUID in its usual spelling.",
        )
    };
    let principal_invalid = || {
        let rule = "must be one name of 1 to 128 printable ASCII characters";
        RequestFault::invalid("X-Turnwire-Principal", rule)
    };
    let tenant = match single_value(headers, TENANT).map_err(|_| tenant_invalid())? {
        None => TenantId::default(),
        Some(text) => text.parse().map_err(|_| tenant_invalid())?,
    };
    let principal = single_value(headers, PRINCIPAL).map_err(|_| principal_invalid())?;
    let principal: Principal = principal
        .unwrap_or(DEFAULT_PRINCIPAL)
        .parse()
        .map_err(|_| principal_invalid())?;
    Ok(Owner { tenant, principal })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(said: &[(&'static str, &str)]) -> Result<(String, String), Code> {
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(*name, value.parse().expect("a header"));
        }
        read(&headers)
            .map(|owner| (owner.tenant.to_string(), owner.principal.to_string()))
            .map_err(|fault| fault.code())
    }

    const NIL: &str = "00000000-0000-0000-0000-000000000000";
    const OTHER: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";

    // D-70
    #[test]
    fn anonymous_request_is_local_in_nil_tenant() {
        assert_eq!(of(&[]), Ok((NIL.into(), "local".into())));
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
}
