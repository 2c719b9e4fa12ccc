//! What every request passes on its way in and every answer on its way out.
//!
//! ```text
//! trace id → guard → route → panic caught → problem written → headers → counted
//! ```

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use turnwire_event::metric;

use crate::error::{Fault, written};
use crate::guard::admit;
use crate::trace::RequestTrace;

/// Headers of every answer that does not bring its own.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Puts the shell around all routes of the server; call it last.
pub fn wrap(routes: Router) -> Router {
    routes
        .fallback(async || Fault::not_found())
        .method_not_allowed_fallback(async || Fault::method_not_allowed())
        .layer(from_fn(pass))
}

async fn pass(mut request: Request, next: Next) -> Response {
    let trace = RequestTrace::of(request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = label(request.method());
    let trace_id = trace.trace_id.clone();
    request.extensions_mut().insert(trace);
    // Never the whole path and query: they can hold an attach token.
    let span = tracing::error_span!("request", trace_id, method);
    let answer = match admit(request.uri(), request.headers()) {
        Err(fault) => fault.into_response(),
        Ok(host) => {
            request.extensions_mut().insert(host);
            let run = AssertUnwindSafe(next.run(request)).catch_unwind();
            run.instrument(span.clone()).await.unwrap_or_else(|_| {
                span.in_scope(|| tracing::error!("a handler panicked"));
                Fault::internal().into_response()
            })
        }
    };
    let mut answer = written(answer, &trace_id);
    for (name, value) in HEADERS {
        answer.headers_mut().entry(name).or_insert(value);
    }
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    ::metrics::counter!(
        metric::HTTP_REQUESTS_TOTAL,
        "method" => method,
        "route" => route.to_owned(),
        "status" => answer.status().as_u16().to_string(),
    )
    .increment(1);
    answer
}

/// Methods as labels: a client's inventions must not become series.
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
    use axum::body::{Body, to_bytes};
    use axum::routing::{get, post};
    use serde_json::Value;
    use tower::ServiceExt as _;

    fn app() -> Router {
        let routes = Router::new()
            .route("/here", get(async || "ok"))
            .route(
                "/panic",
                get(async || -> &'static str { panic!("at /src/x") }),
            )
            .route("/both", get(async || "a").post(async || "b"))
            .route("/make", post(async || "made"));
        wrap(routes)
    }

    async fn ask(method: &str, path: &str, headers: &[(&str, &str)]) -> (Response<()>, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = app().oneshot(request).await.expect("infallible");
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, 1 << 20).await.expect("a body");
        (Response::from_parts(parts, ()), bytes.to_vec())
    }

    async fn problem(method: &str, path: &str, headers: &[(&str, &str)]) -> (Response<()>, Value) {
        let (answer, body) = ask(method, path, headers).await;
        assert_eq!(
            answer.headers()[header::CONTENT_TYPE],
            "application/problem+json"
        );
        let value: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(value["status"], answer.status().as_u16());
        assert_eq!(value["trace_id"].as_str().map(str::len), Some(32));
        (answer, value)
    }

    const HOST: (&str, &str) = ("host", "localhost:8421");

    #[tokio::test]
    async fn errors_of_the_framework_are_problems() {
        let (answer, body) = problem("GET", "/nowhere", &[HOST]).await;
        assert_eq!(
            (answer.status().as_u16(), &body["code"]),
            (404, &"not_found".into())
        );
        let (answer, body) = problem("DELETE", "/both", &[HOST]).await;
        assert_eq!(answer.status().as_u16(), 405);
        assert_eq!(body["code"], "method_not_allowed");
        assert_eq!(answer.headers()[header::ALLOW], "GET,HEAD,POST");
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_that_says_nothing() {
        let (answer, body) = problem("GET", "/panic", &[HOST]).await;
        assert_eq!(answer.status().as_u16(), 500);
        assert_eq!(body["code"], "internal");
        assert!(!body.to_string().contains("/src/x"), "{body}");
    }

    #[tokio::test]
    async fn g4_hosts_and_origins_are_guarded_on_every_path_and_method() {
        for (method, path) in [("GET", "/here"), ("POST", "/make"), ("GET", "/nowhere")] {
            let (answer, body) = problem(method, path, &[("host", "evil.com")]).await;
            assert_eq!(answer.status().as_u16(), 403);
            assert_eq!(body["code"], "host_not_allowed");
            let foreign = [HOST, ("origin", "http://evil.com")];
            let (answer, body) = problem(method, path, &foreign).await;
            assert_eq!(answer.status().as_u16(), 403);
            assert_eq!(body["code"], "origin_not_allowed");
        }
        let own = [HOST, ("origin", "http://localhost:8421")];
        let (answer, body) = ask("POST", "/make", &own).await;
        assert_eq!((answer.status().as_u16(), body), (200, b"made".to_vec()));
    }

    #[tokio::test]
    async fn every_answer_has_the_headers_and_the_callers_trace() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let sent = [HOST, ("traceparent", parent.as_str())];
        let (answer, body) = problem("GET", "/nowhere", &sent).await;
        assert_eq!(body["trace_id"], trace);
        let (fine, _) = ask("GET", "/here", &[HOST]).await;
        for headers in [answer.headers(), fine.headers()] {
            for (name, value) in HEADERS {
                assert_eq!(headers[&name], value, "{name}");
            }
        }
    }
}
