//! The state of the server itself: health, readiness, metrics, usage and registered statuses.

use turnwire_event::UtcDay;
use turnwire_wire::rest::health::HealthReport;
use turnwire_wire::rest::status_event::StatusEvents;
use turnwire_wire::rest::usage::UsageReport;

use crate::client::Client;
use crate::error::Result;
use crate::rest::with_query;

impl Client {
    /// Succeeds while the server process runs.
    pub async fn healthz(&self) -> Result<HealthReport> {
        self.http.get("/healthz").await
    }

    /// Succeeds while the server accepts new turns.
    pub async fn readyz(&self) -> Result<HealthReport> {
        self.http.get("/readyz").await
    }

    /// The metrics in the Prometheus text format.
    pub async fn metrics(&self) -> Result<String> {
        self.http.get_text("/metrics").await
    }

    /// Token usage and cost of the tenant by day and model. Without `from` or `to`, the default of
    /// the server applies.
    pub async fn usage(&self, from: Option<UtcDay>, to: Option<UtcDay>) -> Result<UsageReport> {
        let text = |day: UtcDay| day.to_string();
        let path = with_query("/usage", [("from", from.map(text)), ("to", to.map(text))]);
        self.http.get(&path).await
    }

    /// The status ids that agents may emit as progress, with their texts.
    pub async fn status_events(&self) -> Result<StatusEvents> {
        self.http.get("/status-events").await
    }
}
