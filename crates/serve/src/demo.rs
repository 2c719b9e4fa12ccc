//! The demo's data service: a CCS with a small fixed catalogue, reached by URL like any other.
//!
//! It keeps nothing between two requests. Words in the question choose what goes wrong: `outage`
//! answers with an error, `partial` with half the data, `slow` after four seconds. `POST /stop`
//! ends it, and from then on its callers meet a refused connection, not a played one. It listens
//! on loopback only and answers no web page.

mod words;
mod tongue;
mod offers;
mod ledger;
mod desk;

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

use tongue::Tongue;
use words::Query;

/// Bytes of a request: a question and its trace are far smaller.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Characters of a question that are read.
const QUERY_CHARS_MAX: usize = 2_000;
/// How long a slow answer takes: long enough for two statuses, shorter than a service's timeout.
const SLOW: Duration = Duration::from_secs(4);
/// The version every answer has.
const VERSION: &str = "1.2.0";

/// What a connector asks.
#[derive(Deserialize)]
struct Enrich {
    principal: Option<String>,
    #[serde(default)]
    enricher_id: String,
    #[serde(default)]
    domain_type: String,
    #[serde(default)]
    params: Value,
}

/// Answers on `listener` until `shutdown` is ready or somebody posts to `/stop`. Refuses a
/// listener that others than this machine can reach.
pub async fn serve<F>(listener: TcpListener, shutdown: F) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    if !listener.local_addr()?.ip().is_loopback() {
        let what = "the demo service listens on loopback only";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let stop = CancellationToken::new();
    let app = router(stop.clone());
    let ended = async move {
        tokio::select! {
            () = shutdown => {}
            () = stop.cancelled() => {}
        }
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(ended)
        .await
}

fn router(stop: CancellationToken) -> Router {
    Router::new()
        .route("/v1/enrich", post(enrich))
        .route("/healthz", get(async || "ok"))
        .route("/stop", post(end))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(no_pages))
        .with_state(stop)
}

/// A page that a browser shows can reach loopback; it has no business here.
async fn no_pages(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "not_for_pages");
    }
    next.run(request).await
}

async fn end(State(stop): State<CancellationToken>) -> StatusCode {
    stop.cancel();
    StatusCode::ACCEPTED
}

async fn enrich(body: Bytes) -> Response {
    let begun = Instant::now();
    let Ok(asked) = serde_json::from_slice::<Enrich>(&body) else {
        return refusal(StatusCode::BAD_REQUEST, "invalid_request");
    };
    let Some(principal) = asked.principal.as_deref().filter(|name| !name.is_empty()) else {
        return refusal(StatusCode::BAD_REQUEST, "missing_principal");
    };
    let text = asked.params["query"].as_str().unwrap_or_default();
    let query = Query::new(text.chars().take(QUERY_CHARS_MAX));
    let tongue = Tongue::of(asked.params["language"].as_str().unwrap_or_default());
    if let Some(wait) = wait(&query) {
        tokio::time::sleep(wait).await;
    }
    let answer = look_up(&asked, principal, &query, tongue);
    let total_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Json(json!({
        "enricher_id": asked.enricher_id,
        "domain_type": asked.domain_type,
        "principal": principal,
        "version": VERSION,
        "status": answer.status,
        "partial": answer.partial,
        "cache_meta": {"cached": false, "cacheable": answer.status == "ok", "ttl": 60, "key": null},
        "timing": {"total_ms": total_ms},
        "payload": answer.payload,
        "reason": answer.reason,
    }))
    .into_response()
}

/// How long the answer is kept back.
fn wait(query: &Query) -> Option<Duration> {
    query.says(words::SLOW).then_some(SLOW)
}

fn refusal(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

/// What an envelope says besides who and what was asked.
struct Answer {
    status: &'static str,
    partial: Value,
    payload: Value,
    reason: Option<&'static str>,
}

fn look_up(asked: &Enrich, principal: &str, query: &Query, tongue: Tongue) -> Answer {
    let pair = (asked.enricher_id.as_str(), asked.domain_type.as_str());
    let mut items = match pair {
        ("offer_search", "offer_list") => offers::search(query, tongue),
        ("points_balance", "points") => ledger::points(principal, tongue),
        ("receipt_match", "receipt_list") => ledger::receipts(query, tongue),
        ("purchase_history", "purchase_list") => ledger::purchases(tongue),
        ("support_answer", "support_note") => desk::answer(principal, query, tongue),
        _ => {
            return Answer {
                status: "error",
                partial: json!([]),
                payload: Value::Null,
                reason: Some("invalid_request"),
            };
        }
    };
    // People do write to support that something is broken; that is not about this service.
    let broken = query.says(words::BROKEN) && asked.enricher_id != "support_answer";
    if broken || query.says(words::OUTAGE) {
        let source =
            json!({"source": "catalogue", "critical": true, "reason": "upstream_unavailable"});
        return Answer {
            status: "error",
            partial: json!([source]),
            payload: Value::Null,
            reason: Some("upstream_unavailable"),
        };
    }
    if query.says(words::PARTIAL) {
        items.truncate(items.len().div_ceil(2));
        let source =
            json!({"source": "partner_stores", "critical": false, "reason": "upstream_partial"});
        return Answer {
            status: "partial",
            partial: json!([source]),
            payload: json!({ "items": items }),
            reason: Some("upstream_partial"),
        };
    }
    Answer {
        status: "ok",
        partial: json!([]),
        payload: json!({ "items": items }),
        reason: None,
    }
}

#[cfg(test)]
mod tests;
