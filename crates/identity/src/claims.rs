//! From the claims of a JSON Web Token to a caller.

use serde_json::{Map, Value};
use turnwire_event::{Owner, TenantId, Timestamp};

use crate::refusal::Refusal;
use crate::scope::{Scope, ScopeSet};

/// Which claims say who the caller is.
#[derive(Clone, Debug)]
pub struct ClaimNames {
    /// The claim with the principal.
    pub principal: String,
    /// The claim with the tenant, a UUID.
    pub tenant: String,
    /// The claim with the scopes: a list, or one text with spaces between them.
    pub scopes: String,
    /// The tenant of tokens without that claim; `None` if they are refused.
    pub default_tenant: Option<TenantId>,
    /// The scopes of every valid token, beside those in its claim.
    pub base_scopes: ScopeSet,
}

/// The claims of a token whose signature is right.
#[derive(Debug)]
pub(crate) struct Claims(pub(crate) Map<String, Value>);

impl Claims {
    /// The value of a claim; a dot leads into an object: `realm_access.roles`.
    fn get(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.0.get(name) {
            return Some(value);
        }
        let mut parts = name.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.as_object()?.get(part))
    }

    /// A time in seconds since the epoch, as RFC 7519 has them; `None` if there is none.
    fn time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        let seconds = value.as_f64().filter(|s| (0.0..1e12).contains(s));
        let seconds = seconds.ok_or(Refusal::Invalid)?;
        Ok(Some(Timestamp::from_millis((seconds * 1000.0) as i64)))
    }

    /// True if `issuer` issued the token for one of `audiences`.
    pub(crate) fn is_for(&self, issuer: &str, audiences: &[String]) -> bool {
        let is_known = |value: &Value| {
            let name = value.as_str();
            name.is_some_and(|name| audiences.iter().any(|known| known == name))
        };
        let audience = match self.0.get("aud") {
            Some(Value::Array(list)) => list.iter().any(is_known),
            Some(value) => is_known(value),
            None => false,
        };
        self.0.get("iss").and_then(Value::as_str) == Some(issuer) && audience
    }

    /// When the token ends, if it is valid `now`. A token without an end is refused.
    pub(crate) fn end(&self, now: Timestamp, leeway_ms: i64) -> Result<Timestamp, Refusal> {
        let later = |at: Timestamp| Timestamp::from_millis(at.as_millis() + leeway_ms);
        let end = later(self.time("exp")?.ok_or(Refusal::Invalid)?);
        if now >= end {
            return Err(Refusal::Expired);
        }
        let starts = self.time("nbf")?;
        if starts.is_some_and(|starts| starts > later(now)) {
            return Err(Refusal::NotYetValid);
        }
        Ok(end)
    }

    /// Who the caller is, and what it may do.
    pub(crate) fn caller(&self, names: &ClaimNames) -> Result<(Owner, ScopeSet), Refusal> {
        let principal = self.get(&names.principal).and_then(Value::as_str);
        let principal = principal.and_then(|text| text.parse().ok());
        let tenant = match self.get(&names.tenant) {
            Some(value) => value.as_str().and_then(|text| text.parse().ok()),
            None => names.default_tenant,
        };
        let (tenant, principal) = tenant.zip(principal).ok_or(Refusal::Unusable)?;
        let scopes = self.get(&names.scopes).map_or(ScopeSet::NONE, scopes_of);
        let scopes = names.base_scopes.iter().chain(scopes.iter()).collect();
        Ok((Owner { tenant, principal }, scopes))
    }
}

/// The scopes that a claim grants. Those of other services are not an error.
fn scopes_of(claim: &Value) -> ScopeSet {
    let known = |name: &str| {
        let name = name.strip_prefix("turnwire:").unwrap_or(name);
        name.parse::<Scope>().ok()
    };
    match claim {
        Value::String(text) => text.split(' ').filter_map(known).collect(),
        Value::Array(list) => {
            let names = list.iter().filter_map(Value::as_str);
            names.filter_map(known).collect()
        }
        _ => ScopeSet::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: Value) -> Claims {
        match value {
            Value::Object(map) => Claims(map),
            other => panic!("no object: {other}"),
        }
    }

    fn names() -> ClaimNames {
        ClaimNames {
            principal: "sub".into(),
            tenant: "org.id".into(),
            scopes: "scope".into(),
            default_tenant: None,
            base_scopes: ScopeSet::NONE.with(Scope::Own),
        }
    }

    const TENANT: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";

    // D-71
    #[test]
    fn caller_is_read_from_the_named_claims() {
        let token = claims(json!({"sub": "ann", "org": {"id": TENANT},
            "scope": "openid review turnwire:admin email"}));
        let (owner, scopes) = token.caller(&names()).expect("a caller");
        assert_eq!(owner.tenant.to_string(), TENANT);
        assert_eq!(owner.principal.as_str(), "ann");
        assert_eq!(scopes.to_string(), "own review admin");
        let list = claims(json!({"sub": "ann", "org.id": TENANT, "scope": ["metrics", 7]}));
        let (_, scopes) = list.caller(&names()).expect("a caller");
        assert_eq!(scopes.to_string(), "own metrics");
    }

    #[test]
    fn unusable_principal_or_tenant_is_refused() {
        for bad in [
            json!({}),
            json!({"sub": "ann"}),
            json!({"sub": "ann", "org": {"id": "acme"}}),
            json!({"sub": "ann", "org": {"id": 7}}),
            json!({"sub": "a b", "org": {"id": TENANT}}),
            json!({"sub": 7, "org": {"id": TENANT}}),
            json!({"sub": "", "org": {"id": TENANT}}),
            json!({"sub": "x".repeat(129), "org": {"id": TENANT}}),
        ] {
            let refused = claims(bad.clone()).caller(&names());
            assert_eq!(refused, Err(Refusal::Unusable), "{bad}");
        }
        let fixed = ClaimNames {
            default_tenant: Some(TenantId(7)),
            ..names()
        };
        let token = claims(json!({"sub": "ann"})).caller(&fixed);
        assert_eq!(token.expect("a caller").0.tenant, TenantId(7));
        // The default is for tokens without the claim, not for those with a bad one.
        let bad = claims(json!({"sub": "ann", "org": {"id": "acme"}})).caller(&fixed);
        assert_eq!(bad, Err(Refusal::Unusable));
    }

    #[test]
    fn token_is_for_one_of_the_audiences_of_its_issuer() {
        let audiences = ["turnwire".to_owned(), "chat".to_owned()];
        let is_for = |value| claims(value).is_for("https://id", &audiences);
        assert!(is_for(json!({"iss": "https://id", "aud": "chat"})));
        assert!(is_for(
            json!({"iss": "https://id", "aud": ["x", "turnwire"]})
        ));
        for other in [
            json!({"iss": "https://id"}),
            json!({"iss": "https://id", "aud": "other"}),
            json!({"iss": "https://id", "aud": []}),
            json!({"iss": "https://id/", "aud": "chat"}),
            json!({"aud": "chat"}),
            json!({"iss": ["https://id"], "aud": "chat"}),
        ] {
            assert!(!is_for(other.clone()), "{other}");
        }
    }

    #[test]
    fn leeway_moves_both_ends() {
        let at = |seconds: f64| Timestamp::from_millis((seconds * 1000.0) as i64);
        let token = claims(json!({"exp": 200, "nbf": 100}));
        for (now, expected) in [
            (89.9, Err(Refusal::NotYetValid)),
            (90.0, Ok(at(210.0))),
            (209.9, Ok(at(210.0))),
            (210.0, Err(Refusal::Expired)),
        ] {
            assert_eq!(token.end(at(now), 10_000), expected, "{now}");
        }
        for bad in [
            json!({}),
            json!({"exp": "200"}),
            json!({"exp": -1}),
            json!({"exp": 1e300}),
            json!({"exp": 200, "nbf": "soon"}),
        ] {
            let refused = claims(bad.clone()).end(at(50.0), 0);
            assert_eq!(refused, Err(Refusal::Invalid), "{bad}");
        }
    }
}
