//! The HTTP service: stateless, loopback only, refuses requests of web pages.
//!
//! Words in a query trigger failures: `outage` answers with an error, `partial` with half the data,
//! `slow` after four seconds. `POST /stop` ends the service, so that its callers then meet a connection
//! that is really refused.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::language::DemoLanguage;
use crate::query::{BROKEN_WORDS, OUTAGE_WORDS, PARTIAL_WORDS, SLOW_WORDS, SearchQuery};
use crate::{customer, offers, support};

/// The most bytes of a request: a query and its trace are far smaller.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The most characters of a query that are read.
const QUERY_CHARS_MAX: usize = 2_000;
/// How long a slow answer takes: long enough for two statuses, shorter than a service's timeout.
const SLOW_DELAY: Duration = Duration::from_secs(4);
/// The version of the envelope.
const VERSION: &str = "1.2.0";

/// The body of `POST /v1/enrich`.
#[derive(Deserialize)]
struct EnrichRequest {
    principal: Option<String>,
    #[serde(default)]
    enricher_id: String,
    #[serde(default)]
    domain_type: String,
    #[serde(default)]
    params: Value,
}

/// Serves on `listener` until `shutdown` completes or `POST /stop` is received. Refuses a listener
/// whose address is not a loopback address.
pub async fn serve<F>(listener: TcpListener, shutdown: F) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    if !listener.local_addr()?.ip().is_loopback() {
        let message = "the demo service listens on loopback addresses only";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let stop = CancellationToken::new();
    let app = router(stop.clone());
    let stopped = async move {
        tokio::select! {
            () = shutdown => {}
            () = stop.cancelled() => {}
        }
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(stopped)
        .await
}

fn router(stop: CancellationToken) -> Router {
    Router::new()
        .route("/v1/enrich", post(enrich))
        .route("/healthz", get(async || "ok"))
        .route("/stop", post(stop_service))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(refuse_web_pages))
        .with_state(stop)
}

/// Refuses requests of web pages: a browser lets any page call loopback addresses.
async fn refuse_web_pages(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "not_for_pages");
    }
    next.run(request).await
}

async fn stop_service(State(stop): State<CancellationToken>) -> StatusCode {
    stop.cancel();
    StatusCode::ACCEPTED
}

async fn enrich(body: Bytes) -> Response {
    let started = Instant::now();
    let Ok(request) = serde_json::from_slice::<EnrichRequest>(&body) else {
        return refusal(StatusCode::BAD_REQUEST, "invalid_request");
    };
    let Some(principal) = request.principal.as_deref().filter(|name| !name.is_empty()) else {
        return refusal(StatusCode::BAD_REQUEST, "missing_principal");
    };
    let text = request.params["query"].as_str().unwrap_or_default();
    let query = SearchQuery::new(text.chars().take(QUERY_CHARS_MAX));
    let language = DemoLanguage::from_tag(request.params["language"].as_str().unwrap_or_default());
    if let Some(delay) = delay(&query) {
        tokio::time::sleep(delay).await;
    }
    let outcome = look_up(&request, principal, &query, language);
    let EnrichOutcome { status, reason, .. } = outcome;
    let failed_source = outcome
        .failed_source
        .map(|source| json!({"source": source, "critical": status == "error", "reason": reason}));
    let total_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Json(json!({
        "enricher_id": request.enricher_id,
        "domain_type": request.domain_type,
        "principal": principal,
        "version": VERSION,
        "status": status,
        "partial": failed_source.into_iter().collect::<Vec<_>>(),
        "cache_meta": {"cached": false, "cacheable": status == "ok", "ttl": 60, "key": null},
        "timing": {"total_ms": total_ms},
        "payload": outcome.items.map(|items| json!({ "items": items })),
        "reason": reason,
    }))
    .into_response()
}

/// How long the answer to `query` is delayed.
fn delay(query: &SearchQuery) -> Option<Duration> {
    query.contains_any(SLOW_WORDS).then_some(SLOW_DELAY)
}

fn refusal(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

/// The fields of an envelope that depend on the data.
struct EnrichOutcome {
    status: &'static str,
    /// The source of the data service that failed, if `reason` is about one.
    failed_source: Option<&'static str>,
    /// `None` in an error.
    items: Option<Vec<Value>>,
    reason: Option<&'static str>,
}

fn look_up(
    request: &EnrichRequest,
    principal: &str,
    query: &SearchQuery,
    language: DemoLanguage,
) -> EnrichOutcome {
    let mut items = match (&*request.enricher_id, &*request.domain_type) {
        ("offer_search", "offer_list") => Some(offers::search(query, language)),
        ("points_balance", "points") => Some(customer::points(principal, language)),
        ("receipt_match", "receipt_list") => Some(customer::receipts(query, language)),
        ("purchase_history", "purchase_list") => Some(customer::purchases(language)),
        ("support_answer", "support_note") => Some(support::answer(principal, query, language)),
        _ => None,
    };
    // People report broken goods to support; those words do not trigger a failure there.
    let is_broken = query.contains_any(BROKEN_WORDS) && request.enricher_id != "support_answer";
    let (status, failed_source, reason) = match &mut items {
        None => ("error", None, Some("invalid_request")),
        Some(_) if is_broken || query.contains_any(OUTAGE_WORDS) => {
            items = None;
            ("error", Some("catalogue"), Some("upstream_unavailable"))
        }
        Some(items) if query.contains_any(PARTIAL_WORDS) => {
            items.truncate(items.len().div_ceil(2));
            ("partial", Some("partner_stores"), Some("upstream_partial"))
        }
        Some(_) => ("ok", None, None),
    };
    EnrichOutcome {
        status,
        failed_source,
        items,
        reason,
    }
}

#[cfg(test)]
mod tests;
