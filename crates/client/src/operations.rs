//! The state of the server itself: health, readiness, metrics, usage and registered statuses.

use serde::Deserialize;
use turnwire_event::UtcDay;
use turnwire_wire::rest::health::HealthReport;
use turnwire_wire::rest::status_event::StatusEvents;
use turnwire_wire::rest::usage::{UsageCursor, UsageReport};

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

    /// The version of the server, from its description of the API.
    pub async fn version(&self) -> Result<String> {
        #[derive(Deserialize)]
        struct Document {
            info: Info,
        }
        #[derive(Deserialize)]
        struct Info {
            version: String,
        }
        let document: Document = self.http.get("/openapi.json").await?;
        Ok(document.info.version)
    }

    /// The metrics in the Prometheus text format.
    pub async fn metrics(&self) -> Result<String> {
        self.http.get_text("/metrics").await
    }

    /// Token usage and cost of the tenant by day and model. Without `from` or `to`, the default of
    /// the server applies.
    pub async fn usage(&self, from: Option<UtcDay>, to: Option<UtcDay>) -> Result<UsageReport> {
        let text = |day: UtcDay| day.to_string();
        let page = async |from, to, after: Option<UsageCursor>| -> Result<UsageReport> {
            let after = after.map(|after| after.to_string());
            let query = [("from", from), ("to", to), ("after", after)];
            self.http.get(&with_query("/usage", query)).await
        };
        let mut report = page(from.map(text), to.map(text), None).await?;
        while let Some(after) = report.next.take() {
            // The days that the server chose: its clock may pass midnight between two pages.
            let days = (Some(report.from.to_string()), Some(report.to.to_string()));
            let more = page(days.0, days.1, Some(after)).await?;
            report.rows.extend(more.rows);
            report.next = more.next;
        }
        Ok(report)
    }

    /// The status ids that agents may emit as progress, with their texts.
    pub async fn status_events(&self) -> Result<StatusEvents> {
        let mut list: StatusEvents = self.http.get("/status-events").await?;
        while let Some(after) = list.next.take() {
            let path = with_query("/status-events", [("after", Some(after))]);
            let page: StatusEvents = self.http.get(&path).await?;
            list.status_events.extend(page.status_events);
            list.next = page.next;
        }
        Ok(list)
    }
}
