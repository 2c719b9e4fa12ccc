//! `/healthz`, `/readyz`, `/metrics`: for those who look after the server.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_session::Error;
use turnwire_wire::rest::health::{Health, Status};

use crate::error::Fault;
use crate::state::AppState;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

async fn live() -> Json<Health> {
    Json(Health { status: Status::Ok })
}

/// Whether new turns are taken; 503 whatever the reason, as supervisors expect.
async fn ready(State(state): State<AppState>) -> Result<Json<Health>, Fault> {
    let why_not = if state.sessions.is_draining() {
        Error::Draining
    } else if state.sessions.storage_full() {
        Error::StorageFull
    } else {
        return Ok(Json(Health {
            status: Status::Ready,
        }));
    };
    Err(Fault::from(why_not).answered_with(StatusCode::SERVICE_UNAVAILABLE))
}

async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, PROMETHEUS)], state.metrics.render())
}
