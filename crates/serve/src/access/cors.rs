//! Pages of other sites: which may call this server, and what a browser has to be told so that
//! it lets them (CORS, the Fetch standard). Never with credentials: there are none.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use turnwire_wire::openapi::operations;

use crate::config::setting::site::SiteOrigin;

/// Headers that such pages may send beyond what browsers always allow.
const SENT: HeaderValue = HeaderValue::from_static(
    "Content-Type, Idempotency-Key, Last-Event-ID, X-Wire-Version, X-Tenant-Id, \
     X-Turnwire-Principal, traceparent",
);

/// Headers of answers that such pages may read, where the answer has them.
const READ: HeaderValue =
    HeaderValue::from_static("X-Session-Id, X-Response-Id, Location, Retry-After, traceparent");

/// Seconds for which a browser may remember a preflight: long enough for a page's work, short
/// enough for a change of the setting.
const REMEMBER_S: HeaderValue = HeaderValue::from_static("600");

/// The sites that are let in.
#[derive(Clone, Debug, Default)]
pub struct CorsPolicy(Arc<[SiteOrigin]>);

impl CorsPolicy {
    /// Creates a policy that allows `sites`.
    pub fn new(sites: &[SiteOrigin]) -> Self {
        Self(sites.into())
    }

    /// Whether an `Origin` header names one of them.
    pub(crate) fn lists(&self, origin: &str) -> bool {
        // Without a list no origin is even read.
        !self.0.is_empty() && SiteOrigin::read(origin).is_some_and(|site| self.0.contains(&site))
    }

    /// Adds to an answer what the browser of a listed `origin` has to know.
    pub(crate) fn tell(&self, origin: Option<&HeaderValue>, answer: &mut Response) {
        if self.0.is_empty() {
            return;
        }
        let headers = answer.headers_mut();
        // Also where no origin came: a cache must not give this answer to one.
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = origin else {
            return;
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READ);
    }
}

/// Whether a request only asks if another may be made.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight of a path: its methods, as the table of operations has them. None if
/// there is no such path.
pub(crate) fn preflight(path: &str) -> Option<Response> {
    let methods: Vec<&str> = operations()
        .iter()
        .filter(|operation| operation.path == path)
        .map(|operation| operation.method.as_str())
        .collect();
    let methods = HeaderValue::from_str(&methods.join(", ")).ok();
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        methods.filter(|methods| !methods.is_empty())?,
    );
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, SENT);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBER_S);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(sites: &[&str]) -> CorsPolicy {
        let sites: Vec<SiteOrigin> = sites
            .iter()
            .filter_map(|site| SiteOrigin::read(site))
            .collect();
        CorsPolicy::new(&sites)
    }

    #[test]
    fn only_listed_origins_are_allowed() {
        let cors = cors(&["http://localhost:3000", "https://app.example.com"]);
        for origin in ["http://localhost:3000", "https://app.example.com"] {
            assert!(cors.lists(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "*",
            "http://localhost",
            "https://localhost:3000",
            "http://localhost:3001",
            "http://app.example.com",
            "https://example.com",
            "https://evil.app.example.com",
            "https://app.example.com.evil.com",
            "https://app.example.com/",
            "https://app.example.com@evil.com",
        ] {
            assert!(!cors.lists(origin), "{origin}");
        }
        assert!(!CorsPolicy::default().lists("http://localhost:3000"));
    }

    #[test]
    fn listed_origin_is_echoed_without_credentials() {
        let mut answer = Response::new(Body::empty());
        let headers = answer.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        let origin = HeaderValue::from_static("http://a");
        cors(&["http://a"]).tell(Some(&origin), &mut answer);
        let headers = answer.headers();
        assert_eq!(headers["access-control-allow-origin"], "http://a");
        assert_eq!(
            headers["access-control-expose-headers"],
            "X-Session-Id, X-Response-Id, Location, Retry-After, traceparent"
        );
        let vary: Vec<_> = headers.get_all("vary").iter().collect();
        assert_eq!(vary, ["Accept", "Origin"]);
        assert!(!headers.contains_key("access-control-allow-credentials"));
    }

    #[test]
    fn without_origins_no_cors_header_is_sent() {
        let mut answer = Response::new(Body::empty());
        let origin = HeaderValue::from_static("http://a");
        CorsPolicy::default().tell(Some(&origin), &mut answer);
        assert!(answer.headers().is_empty());
    }
}
