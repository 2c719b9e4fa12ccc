//! The state of the server itself: health, readiness, metrics, usage and registered statuses.

use turnwire_event::UtcDay;
use turnwire_wire::rest::{health, status_event, usage};

use crate::error::Error;
use crate::http::HttpConnections;

/// Reads the state of the server; from [`Client::operations`](crate::Client::operations).
#[derive(Clone, Copy, Debug)]
pub struct ServerOperations<'a> {
    http: &'a HttpConnections,
}

impl<'a> ServerOperations<'a> {
    pub(crate) fn new(http: &'a HttpConnections) -> Self {
        Self { http }
    }

    /// Succeeds while the server process runs.
    pub async fn healthz(&self) -> Result<health::HealthReport, Error> {
        self.http.get("/healthz").await
    }

    /// Succeeds while the server accepts new turns.
    pub async fn readyz(&self) -> Result<health::HealthReport, Error> {
        self.http.get("/readyz").await
    }

    /// The metrics in the Prometheus text format.
    pub async fn metrics(&self) -> Result<String, Error> {
        self.http.get_text("/metrics").await
    }

    /// Token usage and cost of the tenant by day and model. Without `from` or `to`, the default of
    /// the server applies.
    pub async fn usage(
        &self,
        from: Option<UtcDay>,
        to: Option<UtcDay>,
    ) -> Result<usage::UsageReport, Error> {
        let mut query = Vec::new();
        query.extend(from.map(|from| format!("from={from}")));
        query.extend(to.map(|to| format!("to={to}")));
        let separator = if query.is_empty() { "" } else { "?" };
        let path = format!("/usage{separator}{}", query.join("&"));
        self.http.get(&path).await
    }

    /// The status ids that agents may emit as progress, with their texts.
    pub async fn status_events(&self) -> Result<status_event::StatusEvents, Error> {
        self.http.get("/status-events").await
    }
}
