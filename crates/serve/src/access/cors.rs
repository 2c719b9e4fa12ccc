//! CORS (the Fetch standard): which pages of other sites may call this server, and the headers that
//! tell browsers so. Without credentials: there are none.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use turnwire_wire::openapi::operations;

use crate::config::setting::site::SiteOrigin;

/// Request headers that such pages may send, besides those that browsers always allow.
const SENT: &str = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Wire-Version, X-Tenant-Id, \
     X-Turnwire-Principal, traceparent";

/// Response headers that such pages may read.
const READ: HeaderValue = HeaderValue::from_static(
    "X-Session-Id, X-Response-Id, Location, Retry-After, RateLimit, RateLimit-Policy, traceparent",
);

/// Seconds for which a browser may remember a preflight: long enough for a page's work, short
/// enough for a change of the setting.
const REMEMBER_S: &str = "600";

/// The sites whose pages may call this server.
#[derive(Clone, Debug, Default)]
pub struct CorsPolicy(Arc<[SiteOrigin]>);

impl CorsPolicy {
    /// Creates a policy that allows `sites`.
    pub fn new(sites: &[SiteOrigin]) -> Self {
        Self(sites.into())
    }

    /// True if an `Origin` header names a listed site.
    pub(crate) fn lists(&self, origin: &str) -> bool {
        // Without a list no origin is even read.
        !self.0.is_empty() && SiteOrigin::read(origin).is_some_and(|site| self.0.contains(&site))
    }

    /// Adds the headers for the browser of a listed `origin` to a response.
    pub(crate) fn add_headers(&self, origin: Option<&HeaderValue>, response: &mut Response) {
        if self.0.is_empty() {
            return;
        }
        let headers = response.headers_mut();
        // Also where no origin came: a cache must not give this response to one.
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = origin else {
            return;
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READ);
    }
}

/// True if the request is a preflight.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to a preflight of a path, with the methods of its [`operations`]. `None` if the API
/// has no such path.
pub(crate) fn preflight(path: &str) -> Option<Response> {
    let methods: Vec<&str> = operations()
        .iter()
        .filter(|operation| operation.path == path)
        .map(|operation| operation.method.as_str())
        .collect();
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, methods.join(", ")),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT.to_owned()),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBER_S.to_owned()),
    ];
    let is_known = !methods.is_empty();
    is_known.then(|| (StatusCode::NO_CONTENT, headers).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

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
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        let origin = HeaderValue::from_static("http://a");
        cors(&["http://a"]).add_headers(Some(&origin), &mut response);
        let headers = response.headers();
        assert_eq!(headers["access-control-allow-origin"], "http://a");
        assert_eq!(
            headers["access-control-expose-headers"],
            "X-Session-Id, X-Response-Id, Location, Retry-After, RateLimit, RateLimit-Policy, traceparent"
        );
        let vary: Vec<_> = headers.get_all("vary").iter().collect();
        assert_eq!(vary, ["Accept", "Origin"]);
        assert!(!headers.contains_key("access-control-allow-credentials"));
    }

    #[test]
    fn without_origins_no_cors_header_is_sent() {
        let mut response = Response::new(Body::empty());
        let origin = HeaderValue::from_static("http://a");
        CorsPolicy::default().add_headers(Some(&origin), &mut response);
        assert!(response.headers().is_empty());
    }
}
