//! `/healthz`, `/readyz`, `/metrics`: for monitoring.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use turnwire_event::metric;
use turnwire_identity::Refusal;
use turnwire_wire::rest::health::{HealthReport, HealthStatus};

use crate::access::callers::refusal_fault;
use crate::error::RequestFault;
use crate::metrics::MetricsHandle;
use crate::request::Collector;
use crate::state::AppState;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

async fn live() -> Json<HealthReport> {
    Json(HealthReport {
        status: HealthStatus::Ok,
    })
}

/// Whether the server accepts new turns; otherwise the answer that a submit would get, with the codes
/// of every reason in `reasons`.
async fn ready(State(state): State<AppState>) -> Result<Json<HealthReport>, RequestFault> {
    let faults = refusals(&state);
    let reasons: Vec<&str> = faults.iter().map(|fault| fault.code().name()).collect();
    let reasons = json!(reasons);
    match faults.into_iter().next() {
        None => Ok(Json(HealthReport {
            status: HealthStatus::Ready,
        })),
        Some(first) => Err(first.with("reasons", reasons)),
    }
}

/// What keeps the server from accepting turns, the first reason first.
fn refusals(state: &AppState) -> Vec<RequestFault> {
    let status = state.service.status().refusals();
    let mut faults: Vec<RequestFault> = status.into_iter().map(RequestFault::from).collect();
    if !state.streams.identities.authenticator().is_ready() {
        faults.push(refusal_fault(Refusal::Unavailable));
    }
    faults
}

/// The metrics as text. Readiness is looked up here, so that a server that nobody probes has it too.
async fn metrics(
    _: Collector,
    State(metrics): State<MetricsHandle>,
    State(state): State<AppState>,
) -> Result<impl IntoResponse, RequestFault> {
    let ready = f64::from(u8::from(refusals(&state).is_empty()));
    ::metrics::gauge!(metric::SERVER_READY).set(ready);
    let text = metrics.answer().await?;
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], text))
}
