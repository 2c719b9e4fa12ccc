//! The middleware of every request and response.
//!
//! ```text
//! trace id → guard → preflight, or caller → its share → route → panic caught → problem written
//!          → headers → counted
//! ```

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use turnwire_event::metric;
use turnwire_identity::Caller;

use crate::access::callers::{self, Callers};
use crate::access::cors;
use crate::access::forwarded::TrustedProxies;
use crate::access::guard::{AdmittedRequest, Guard};
use crate::error::{RequestFault, with_problem_body};
use crate::listen::{OwnerPermit, PeerAddress, SocketTakeover};
use crate::request::shares::{self, RequestShares};
use crate::request::trace::RequestTrace;

/// Headers of every response that does not set them itself.
const HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-resource-policy", "same-origin"),
];

/// What decides whether a request reaches its route.
#[derive(Clone)]
pub struct AccessRules {
    pub(crate) guard: Guard,
    pub(crate) proxies: TrustedProxies,
    pub(crate) callers: Callers,
    /// The share of each owner.
    pub(crate) shares: RequestShares,
}

/// Wraps all routes of the server; call it last.
pub fn wrap(routes: Router, rules: AccessRules) -> Router {
    routes
        .fallback(async || RequestFault::not_found())
        .method_not_allowed_fallback(async || RequestFault::method_not_allowed())
        .layer(from_fn_with_state(rules, handle))
}

/// The answer to a request that the [`Guard`] has admitted, with the permit of its owner.
async fn respond(
    mut request: Request,
    next: Next,
    rules: &AccessRules,
    (site, span): (Option<&HeaderValue>, &tracing::Span),
) -> Result<Response, RequestFault> {
    let method = request.method().clone();
    let is_preflight = site.is_some() && cors::is_preflight(&method, request.headers());
    let route = request.extensions().get::<MatchedPath>();
    let preflight_route = route.filter(|_| is_preflight);
    // A browser sends it without a token.
    let preflight = preflight_route.and_then(|route| cors::preflight(route.as_str()));
    let caller = match preflight {
        Some(_) => None,
        None => identify(rules, &mut request, site).await?,
    };
    let owner = caller.as_ref().map(|caller| &caller.owner);
    let share = rules.shares.count(&request, owner)?;
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let mut response = match preflight {
        Some(response) => response,
        None => {
            let run = AssertUnwindSafe(next.run(request)).catch_unwind();
            let response = run.instrument(span.clone()).await.unwrap_or_else(|_| {
                span.in_scope(|| tracing::error!("a handler panicked"));
                RequestFault::internal().into_response()
            });
            share.count_answer(response, &method)
        }
    };
    if let Some(permit) = share.permit {
        response.extensions_mut().insert(permit);
    }
    Ok(response)
}

/// The caller of a request. A probe of a server that believes everybody is answered whatever its
/// headers say.
async fn identify(
    rules: &AccessRules,
    request: &mut Request,
    site: Option<&HeaderValue>,
) -> Result<Option<Caller>, RequestFault> {
    let caller = rules.callers.identify(request, site).await;
    if caller.is_err() && rules.callers.is_open() && shares::is_probe(request.uri().path()) {
        return Ok(Some(callers::believed_anonymous()));
    }
    caller
}

async fn handle(State(rules): State<AccessRules>, mut request: Request, next: Next) -> Response {
    let trace = RequestTrace::of(request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = label(request.method());
    let trace_id = trace.trace_id.clone();
    request.extensions_mut().insert(trace);
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
    let forwarded = rules.proxies.read(peer, request.headers());
    let client = forwarded.client.map(tracing::field::display);
    // Never the whole path and query: they can hold an attach token.
    let span = tracing::error_span!("request", trace_id, method, client);
    let mut site = None;
    let (uri, headers) = (request.uri(), request.headers());
    let response = match rules
        .guard
        .admit(request.method(), uri, headers, &forwarded)
    {
        Err(fault) => Err(fault),
        Ok(AdmittedRequest { base, site: from }) => {
            site = from.0.clone();
            request.extensions_mut().insert(base);
            request.extensions_mut().insert(from);
            respond(request, next, &rules, (site.as_ref(), &span)).await
        }
    };
    let mut response = response.unwrap_or_else(RequestFault::into_response);
    let permit = response.extensions_mut().remove::<OwnerPermit>();
    let mut response = with_problem_body(response, &trace_id);
    match permit {
        Some(permit) => {
            response.extensions_mut().insert(permit);
        }
        None => close_after(&mut response),
    }
    let cors = &rules.guard.cors;
    cors.add_headers(site.as_ref(), &mut response);
    for (name, value) in HEADERS {
        let entry = response.headers_mut().entry(name);
        entry.or_insert(HeaderValue::from_static(value));
    }
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    ::metrics::counter!(
        metric::HTTP_REQUESTS_TOTAL,
        "method" => method,
        "route" => route.to_owned(),
        "status" => response.status().as_u16().to_string(),
    )
    .increment(1);
    response
}

/// Closes the connection after an answer that counts for nobody: a client that sends many such
/// requests at once and does not read would keep the connection busy. A stream counts by itself.
fn close_after(response: &mut Response) {
    if response.extensions().get::<SocketTakeover>().is_none() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
}

/// The metric label of a method; unknown methods share one, so that clients cannot add series.
fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::attach_tokens::AttachTokens;
    use crate::access::cors::CorsPolicy;
    use crate::config::setting::site::SiteOrigin;
    use crate::config::{ServerConfig, SettingSources};
    use crate::listen::OwnerShares;
    use axum::body::{Body, to_bytes};
    use axum::routing::{get, post};
    use serde_json::Value;
    use std::sync::Arc;
    use std::time::Duration;
    use tower::ServiceExt as _;
    use turnwire_identity::Authenticator;

    fn app(cors: CorsPolicy) -> Router {
        let routes = Router::new()
            .route("/here", get(async || "ok"))
            .route(
                "/panic",
                get(async || -> &'static str { panic!("at /src/x") }),
            )
            .route("/sessions", get(async || "a").post(async || "b"))
            .route("/make", post(async || "made"));
        wrap(routes, rules(cors, shares(10, 10)))
    }

    /// Rules of a server that believes every caller.
    fn rules(cors: CorsPolicy, shares: RequestShares) -> AccessRules {
        let authenticator = Authenticator::open(Arc::new(turnwire_session::SystemClock));
        let tokens = AttachTokens::new(Duration::from_secs(60), 10, 10);
        AccessRules {
            guard: Guard {
                cors,
                ..Guard::default()
            },
            proxies: TrustedProxies::default(),
            callers: Callers::new(Arc::new(authenticator), Arc::new(tokens)),
            shares,
        }
    }

    /// Shares of each owner in 400 connections and a hundred large answers; 64 are for probes.
    fn shares(connections: usize, transfers: usize) -> RequestShares {
        let nowhere = SettingSources {
            home: Some("/nonexistent/turnwire".into()),
            ..SettingSources::default()
        };
        let mut http = ServerConfig::load(&nowhere).expect("defaults").http;
        http.connections_max = 400;
        let connections = OwnerShares::new(http.connections_max, connections);
        let transfers = OwnerShares::transfers(100, transfers, http.answer_max_bytes);
        RequestShares::new(connections, transfers, &http)
    }

    const LARGE: usize = 100 << 10;

    /// Routes with a small and a large answer, and few places for one owner.
    fn narrow_app(connections: usize, transfers: usize) -> Router {
        let large = async || vec![b'x'; LARGE];
        let routes = Router::new()
            .route("/small", get(async || "ok"))
            .route("/healthz", get(async || "ok"))
            .route("/metrics", get(large))
            .route("/large", get(large).post(large));
        wrap(
            routes,
            rules(CorsPolicy::new(&[]), shares(connections, transfers)),
        )
    }

    async fn send(app: &Router, method: &str, path: &str, more: &[(&str, &str)]) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in [HOST].iter().chain(more) {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        app.clone().oneshot(request).await.expect("infallible")
    }

    #[tokio::test]
    async fn large_answers_are_shared_by_owners() {
        let app = narrow_app(100, 2);
        let first = send(&app, "GET", "/large", &[]).await;
        let second = send(&app, "GET", "/large", &[]).await;
        assert!(first.status() == 200 && second.status() == 200);
        let refused = send(&app, "GET", "/large", &[]).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
        let other = [("x-turnwire-principal", "bob")];
        for (method, path, more) in [
            ("GET", "/small", &[][..]),
            ("POST", "/large", &[][..]),
            ("GET", "/large", &other[..]),
        ] {
            let response = send(&app, method, path, more).await;
            assert_eq!(response.status(), 200, "{method} {path}");
        }
        drop(first);
        assert_eq!(send(&app, "GET", "/large", &[]).await.status(), 200);
    }

    #[tokio::test]
    async fn upgrade_header_leaves_only_streams_uncounted() {
        let app = narrow_app(1, 100);
        let _held = send(&app, "GET", "/small", &[]).await;
        let upgrade = [("upgrade", "websocket")];
        assert_eq!(send(&app, "GET", "/small", &upgrade).await.status(), 429);
        let stream = send(&app, "GET", "/sessions/x/stream", &upgrade).await;
        assert_eq!(stream.status(), 404);
    }

    fn closes(response: &Response) -> bool {
        let connection = response.headers().get(header::CONNECTION);
        connection.is_some_and(|value| value == "close")
    }

    #[tokio::test]
    async fn answers_that_count_for_nobody_close_their_connection() {
        let app = narrow_app(1, 100);
        let held = send(&app, "GET", "/small", &[]).await;
        assert!(!closes(&held));
        for (headers, status) in [
            (&[][..], 429),
            (&[("x-turnwire-principal", "a b")][..], 422),
            (&[("x-tenant-id", "x")][..], 400),
            (&[("origin", "http://evil.com")][..], 403),
        ] {
            let refused = send(&app, "GET", "/small", headers).await;
            assert_eq!(refused.status(), status);
            assert!(closes(&refused), "{headers:?}");
        }
    }

    #[tokio::test]
    async fn probes_have_shares_of_their_own() {
        let app = narrow_app(1, 1);
        let _held = send(&app, "GET", "/large", &[]).await;
        let invalid = [("x-turnwire-principal", "a b")];
        let mut open = Vec::new();
        for _ in 0..8 {
            let metrics = send(&app, "GET", "/metrics", &invalid).await;
            assert!(metrics.status() == 200 && !closes(&metrics));
            open.push(metrics);
        }
        assert_eq!(send(&app, "GET", "/metrics", &[]).await.status(), 429);
        let mut closed = 0;
        for _ in 0..64 {
            let health = send(&app, "GET", "/healthz", &[]).await;
            assert_eq!(health.status(), 200, "it is never refused");
            closed += usize::from(closes(&health));
            open.push(health);
        }
        assert!(closed >= 32, "only {closed} count for nobody");
        let other = [("x-turnwire-principal", "collector")];
        assert_eq!(send(&app, "GET", "/metrics", &other).await.status(), 200);
    }

    async fn ask(method: &str, path: &str, headers: &[(&str, &str)]) -> (Response<()>, Vec<u8>) {
        ask_letting_in(&[], method, path, headers).await
    }

    async fn ask_letting_in(
        sites: &[SiteOrigin],
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (Response<()>, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let response = app(CorsPolicy::new(sites))
            .oneshot(request)
            .await
            .expect("infallible");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 1 << 20).await.expect("a body");
        (Response::from_parts(parts, ()), bytes.to_vec())
    }

    async fn problem(method: &str, path: &str, headers: &[(&str, &str)]) -> (Response<()>, Value) {
        let (response, body) = ask(method, path, headers).await;
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "application/problem+json"
        );
        let value: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(value["status"], response.status().as_u16());
        assert_eq!(value["trace_id"].as_str().map(str::len), Some(32));
        (response, value)
    }

    const HOST: (&str, &str) = ("host", "localhost:8421");

    #[tokio::test]
    async fn framework_errors_are_problems() {
        let (response, body) = problem("GET", "/nowhere", &[HOST]).await;
        assert_eq!(
            (response.status().as_u16(), &body["code"]),
            (404, &"not_found".into())
        );
        let (response, body) = problem("DELETE", "/sessions", &[HOST]).await;
        assert_eq!(response.status().as_u16(), 405);
        assert_eq!(body["code"], "method_not_allowed");
        assert_eq!(response.headers()[header::ALLOW], "GET,HEAD,POST");
    }

    #[tokio::test]
    async fn panic_is_a_problem_without_details() {
        let (response, body) = problem("GET", "/panic", &[HOST]).await;
        assert_eq!(response.status().as_u16(), 500);
        assert_eq!(body["code"], "internal");
        assert!(!body.to_string().contains("/src/x"), "{body}");
    }

    // G4
    #[tokio::test]
    async fn hosts_and_origins_are_checked_on_every_route() {
        for (method, path) in [("GET", "/here"), ("POST", "/make"), ("GET", "/nowhere")] {
            let (response, body) = problem(method, path, &[("host", "evil.com")]).await;
            assert_eq!(response.status().as_u16(), 403);
            assert_eq!(body["code"], "host_not_allowed");
            let foreign = [HOST, ("origin", "http://evil.com")];
            let (response, body) = problem(method, path, &foreign).await;
            assert_eq!(response.status().as_u16(), 403);
            assert_eq!(body["code"], "origin_not_allowed");
        }
        let own = [HOST, ("origin", "http://localhost:8421")];
        let (response, body) = ask("POST", "/make", &own).await;
        assert_eq!((response.status().as_u16(), body), (200, b"made".to_vec()));
    }

    #[tokio::test]
    async fn every_answer_has_standard_headers_and_trace() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let sent = [HOST, ("traceparent", parent.as_str())];
        let (response, body) = problem("GET", "/nowhere", &sent).await;
        assert_eq!(body["trace_id"], trace);
        let (fine, _) = ask("GET", "/here", &[HOST]).await;
        for headers in [response.headers(), fine.headers()] {
            for (name, value) in HEADERS {
                assert_eq!(headers[name], value, "{name}");
            }
        }
    }

    const FOREIGN: &str = "http://localhost:3000";
    const EXPOSED: &str = "X-Session-Id, X-Response-Id, Location, Retry-After, RateLimit, RateLimit-Policy, traceparent";

    fn cors_headers(response: &Response<()>) -> Vec<(&str, &str)> {
        let headers = response.headers().iter();
        let cors = headers.filter(|(name, _)| {
            name.as_str().starts_with("access-control-") || *name == header::VARY
        });
        cors.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect()
    }

    #[tokio::test]
    async fn listed_origin_may_read_problems_too() {
        let sites = [SiteOrigin::read(FOREIGN).expect("a site")];
        let sent = [HOST, ("origin", FOREIGN)];
        for (method, path, status) in [("GET", "/here", 200), ("GET", "/nowhere", 404)] {
            let (response, _) = ask_letting_in(&sites, method, path, &sent).await;
            assert_eq!(response.status().as_u16(), status);
            let mut listed = cors_headers(&response);
            listed.sort_unstable();
            let allowed = [
                ("access-control-allow-origin", FOREIGN),
                ("access-control-expose-headers", EXPOSED),
                ("vary", "Origin"),
            ];
            assert_eq!(listed, allowed, "{path}");
        }
        // Another site is refused as ever, and what is not from a browser learns nothing new.
        let other = [HOST, ("origin", "http://evil.com")];
        for (sent, status) in [(&other[..], 403), (&[HOST][..], 200)] {
            let (response, _) = ask_letting_in(&sites, "GET", "/here", sent).await;
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(cors_headers(&response), [("vary", "Origin")]);
        }
    }

    #[tokio::test]
    async fn preflight_lists_the_methods_of_its_path() {
        let sites = [SiteOrigin::read(FOREIGN).expect("a site")];
        let sent = [
            HOST,
            ("origin", FOREIGN),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let (response, body) = ask_letting_in(&sites, "OPTIONS", "/sessions", &sent).await;
        assert_eq!((response.status().as_u16(), body), (204, Vec::new()));
        let mut listed = cors_headers(&response);
        listed.sort_unstable();
        let expected = [
            (
                "access-control-allow-headers",
                "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Wire-Version, X-Tenant-Id, \
                 X-Turnwire-Principal, traceparent",
            ),
            ("access-control-allow-methods", "POST, GET"),
            ("access-control-allow-origin", FOREIGN),
            ("access-control-expose-headers", EXPOSED),
            ("access-control-max-age", "600"),
            ("vary", "Origin"),
        ];
        assert_eq!(listed, expected);
        let (response, _) = ask_letting_in(&sites, "OPTIONS", "/nowhere", &sent).await;
        assert_eq!(response.status().as_u16(), 404);
        let (response, _) = ask_letting_in(&sites, "OPTIONS", "/sessions", &sent[..2]).await;
        assert_eq!(
            response.status().as_u16(),
            405,
            "no preflight without its header"
        );
    }

    #[tokio::test]
    async fn without_setting_no_origin_is_allowed() {
        let sent = [
            HOST,
            ("origin", FOREIGN),
            ("access-control-request-method", "POST"),
        ];
        for method in ["OPTIONS", "GET"] {
            let (response, body) = problem(method, "/sessions", &sent).await;
            assert_eq!(response.status().as_u16(), 403);
            assert_eq!(body["code"], "origin_not_allowed");
            assert_eq!(cors_headers(&response), []);
        }
        let (response, _) = ask("GET", "/here", &[HOST]).await;
        assert_eq!(cors_headers(&response), []);
        let own = [HOST, ("origin", "http://localhost:8421"), sent[2]];
        let (response, _) = ask("OPTIONS", "/sessions", &own).await;
        assert_eq!(response.status().as_u16(), 405);
        assert_eq!(cors_headers(&response), []);
    }
}
