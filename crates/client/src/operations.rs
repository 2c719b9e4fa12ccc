//! The state of the server itself: health, readiness, metrics, usage, registered statuses, jobs and the
//! audit.

use hyper::Method;
use serde::Deserialize;
use turnwire_event::row::AuditId;
use turnwire_event::{JobName, Principal, SessionId, UtcDay};
use turnwire_wire::rest::audit::{AuditList, AuditRecord, Job, JobList};
use turnwire_wire::rest::health::HealthReport;
use turnwire_wire::rest::status_event::StatusEvents;
use turnwire_wire::rest::usage::{UsageCursor, UsageReport};

use crate::client::Client;
use crate::error::Result;
use crate::rest::with_query;

/// Which records of the audit are asked for; a field that is `None` selects all.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// The name of an action, such as `job_fired`.
    pub action: Option<String>,
    pub session: Option<SessionId>,
    pub job: Option<JobName>,
    /// Who acted, or for whom.
    pub principal: Option<Principal>,
    /// From the begin of this day on (UTC).
    pub from: Option<UtcDay>,
    /// To the end of this day (UTC).
    pub to: Option<UtcDay>,
}

/// A value of a query, with what has a meaning there escaped.
fn query_text(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

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

    /// The jobs of schedulers in the tenant, by name.
    pub async fn jobs(&self) -> Result<Vec<Job>> {
        let mut list: JobList = self.http.get("/jobs").await?;
        while let Some(after) = list.next.take() {
            let path = with_query("/jobs", [("after", Some(after.to_string()))]);
            let page: JobList = self.http.get(&path).await?;
            list.jobs.extend(page.jobs);
            list.next = page.next;
        }
        Ok(list.jobs)
    }

    /// Pauses a job: its schedulers start no turns.
    pub async fn pause_job(&self, job: &JobName) -> Result<Job> {
        self.switch_job(job, "pause").await
    }

    /// Resumes a paused job.
    pub async fn resume_job(&self, job: &JobName) -> Result<Job> {
        self.switch_job(job, "resume").await
    }

    async fn switch_job(&self, job: &JobName, switch: &str) -> Result<Job> {
        let path = format!("/jobs/{job}/{switch}");
        let answer = self.http.exchange(Method::POST, &path, None, None).await?;
        answer.json()
    }

    /// The newest `limit` records of the tenant's audit that `query` selects, newest first.
    pub async fn audit(&self, query: &AuditQuery, limit: usize) -> Result<Vec<AuditRecord>> {
        let (mut records, mut before) = (Vec::new(), None);
        loop {
            let text = |day: UtcDay| day.to_string();
            let parameters = [
                ("action", query.action.as_deref().map(query_text)),
                ("session", query.session.map(|id| id.to_string())),
                ("job", query.job.as_ref().map(JobName::to_string)),
                (
                    "principal",
                    query
                        .principal
                        .as_ref()
                        .map(|name| query_text(name.as_str())),
                ),
                ("from", query.from.map(text)),
                ("to", query.to.map(text)),
                ("before", before.map(|before: AuditId| before.to_string())),
            ];
            let page: AuditList = self.http.get(&with_query("/audit", parameters)).await?;
            records.extend(page.records);
            if records.len() >= limit || page.next.is_none() {
                records.truncate(limit);
                return Ok(records);
            }
            before = page.next;
        }
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

#[cfg(test)]
mod tests {
    use super::query_text;

    #[test]
    fn values_of_a_query_are_escaped() {
        assert_eq!(query_text("a-Z_0.9~"), "a-Z_0.9~");
        assert_eq!(query_text("a&b=c d%+"), "a%26b%3Dc%20d%25%2B");
    }
}
