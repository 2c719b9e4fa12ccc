//! `GET /usage`: tokens and cost of a tenant's model calls, by day and model. The sums are kept after
//! the sessions are deleted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use turnwire_event::{TenantId, TokenUsage, UtcDay};

use crate::budget::cut_to_fit;

/// The largest number of days in one report: a leap year.
pub const DAYS_MAX: u16 = 366;

/// The default number of days, ending today.
pub const DAYS_DEFAULT: u16 = 30;

/// 200 of `GET /usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// The first day (UTC).
    pub from: UtcDay,
    /// The last day (UTC).
    pub to: UtcDay,
    /// One row per day, tenant and model, in this order; combinations without a call are omitted.
    pub rows: Vec<UsageRow>,
    /// The `after` of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<UsageCursor>,
    /// The sum of all rows, also of those on other pages.
    pub totals: UsageTotals,
}

/// The last row of a page: its day and model, as `2026-01-31/provider:model`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCursor {
    pub day: UtcDay,
    pub model: String,
}

impl fmt::Display for UsageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.day, self.model)
    }
}

/// A text that is not a [`UsageCursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a usage report")]
pub struct InvalidUsageCursor;

impl FromStr for UsageCursor {
    type Err = InvalidUsageCursor;

    fn from_str(text: &str) -> Result<Self, InvalidUsageCursor> {
        let (day, model) = text.split_once('/').ok_or(InvalidUsageCursor)?;
        Ok(Self {
            day: day.parse().map_err(|_| InvalidUsageCursor)?,
            model: model.to_owned(),
        })
    }
}

impl Serialize for UsageCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UsageCursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for UsageCursor {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UsageCursor".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The day and the model of the last row of a page.",
            "type": "string",
            "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])/|^[0-9]{4}-(0[13-9]|1[0-2])-(29|30)/|^[0-9]{4}-(0[13578]|1[02])-31/|^[0-9]{2}([02468][48]|[13579][26]|[2468]0)-02-29/",
        })
    }
}

/// The model calls of one tenant with one model on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageRow {
    /// The day on which the calls ended (UTC).
    pub day: UtcDay,
    /// The tenant of the calls.
    pub tenant_id: String,
    /// The model, as `provider:model`.
    pub model: String,
    /// The number of calls that ended.
    pub calls: u64,
    /// The number of those that failed.
    pub failed: u64,
    /// The number of those that a cancel stopped.
    #[serde(default)]
    pub stopped: u64,
    /// Tokens and cost of all of them. `estimated` is true if a stopped or failed call had to be
    /// estimated.
    pub usage: TokenUsage,
}

/// The sum of several rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageTotals {
    /// The number of calls that ended.
    pub calls: u64,
    /// The number of those that failed.
    pub failed: u64,
    /// The number of those that a cancel stopped.
    #[serde(default)]
    pub stopped: u64,
    /// Tokens and cost of all of them. `estimated` is true if a stopped or failed call had to be
    /// estimated.
    pub usage: TokenUsage,
}

impl UsageRow {
    /// A row from the columns of the usage table.
    pub fn new(
        (day, tenant, model): (UtcDay, TenantId, String),
        (calls, failed, stopped): (u64, u64, u64),
        usage: TokenUsage,
    ) -> Self {
        Self {
            day,
            tenant_id: tenant.to_string(),
            model,
            calls,
            failed,
            stopped,
            usage,
        }
    }
}

/// The name of the provider in calls that no model answered: the text came from a template.
const TEMPLATE: &str = "template:";

impl UsageReport {
    /// A report with the totals of `rows`, without those of texts that no model wrote.
    pub fn new((from, to): (UtcDay, UtcDay), mut rows: Vec<UsageRow>) -> Self {
        rows.retain(|row| !row.model.starts_with(TEMPLATE));
        let totals = rows
            .iter()
            .fold(UsageTotals::default(), |sum, row| UsageTotals {
                calls: sum.calls.saturating_add(row.calls),
                failed: sum.failed.saturating_add(row.failed),
                stopped: sum.stopped.saturating_add(row.stopped),
                usage: sum.usage.plus(row.usage),
            });
        Self {
            from,
            to,
            rows,
            next: None,
            totals,
        }
    }

    /// Cuts the rows to those after `after` that fit into an answer of `bytes_max`. The totals stay.
    pub fn cut_to_page(&mut self, after: Option<&UsageCursor>, bytes_max: usize) {
        let cursor = |row: &UsageRow| UsageCursor {
            day: row.day,
            model: row.model.clone(),
        };
        self.rows
            .retain(|row| after.is_none_or(|after| cursor(row) > *after));
        let is_cut = cut_to_fit(&mut self.rows, bytes_max);
        self.next = self.rows.last().filter(|_| is_cut).map(cursor);
    }
}
