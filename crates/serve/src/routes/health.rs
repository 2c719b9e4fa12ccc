//! `/healthz`, `/readyz`, `/metrics`: for monitoring.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_event::metric;
use turnwire_session::{Error, ServiceStatus};
use turnwire_wire::rest::health::{HealthReport, HealthStatus};

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

/// Whether the server accepts new turns; otherwise the answer that a submit would get.
async fn ready(State(status): State<ServiceStatus>) -> Result<Json<HealthReport>, RequestFault> {
    match readiness(&status) {
        Ok(()) => Ok(Json(HealthReport {
            status: HealthStatus::Ready,
        })),
        Err(error) => Err(RequestFault::from(error)),
    }
}

fn readiness(status: &ServiceStatus) -> Result<(), Error> {
    match status.is_draining() {
        true => Err(Error::Draining),
        false => status.check_storage(),
    }
}

/// The metrics as text. Readiness is looked up here, so that a server that nobody probes has it too.
async fn metrics(
    _: Collector,
    State(metrics): State<MetricsHandle>,
    State(status): State<ServiceStatus>,
) -> Result<impl IntoResponse, RequestFault> {
    let ready = f64::from(u8::from(readiness(&status).is_ok()));
    ::metrics::gauge!(metric::SERVER_READY).set(ready);
    let text = metrics.answer().await?;
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], text))
}
