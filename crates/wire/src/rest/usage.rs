//! `GET /usage`: tokens and cost of a tenant's model calls, by day and model. The sums are kept after
//! the sessions are deleted.

use serde::{Deserialize, Serialize};
use turnwire_event::{Day, TenantId, Usage};

/// The largest number of days in one report: a leap year.
pub const DAYS_MAX: u16 = 366;

/// The default number of days, ending today.
pub const DAYS: u16 = 30;

/// 200 of `GET /usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "UsageReport"))]
pub struct Report {
    /// The first day (UTC).
    pub from: Day,
    /// The last day (UTC).
    pub to: Day,
    /// One row per day, tenant and model, in this order; combinations without a call are omitted.
    pub rows: Vec<Row>,
    /// The sum of all rows.
    pub totals: Totals,
}

/// The model calls of one tenant with one model on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "UsageRow"))]
pub struct Row {
    /// The day on which the calls ended (UTC).
    pub day: Day,
    /// The tenant of the calls.
    pub tenant_id: String,
    /// The model, as `provider:model`.
    pub model: String,
    /// The number of calls that ended.
    pub calls: u64,
    /// The number of those that failed.
    pub failed: u64,
    /// Tokens and cost of those that completed.
    pub usage: Usage,
}

/// The sum of several rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "UsageTotals"))]
pub struct Totals {
    /// The number of calls that ended.
    pub calls: u64,
    /// The number of those that failed.
    pub failed: u64,
    /// Tokens and cost of those that completed.
    pub usage: Usage,
}

impl Row {
    /// A row from the columns of the usage table.
    pub fn new(
        (day, tenant, model): (Day, TenantId, String),
        (calls, failed): (u64, u64),
        usage: Usage,
    ) -> Self {
        Self {
            day,
            tenant_id: tenant.to_string(),
            model,
            calls,
            failed,
            usage,
        }
    }
}

impl Report {
    /// A report with the totals of `rows`.
    pub fn new((from, to): (Day, Day), rows: Vec<Row>) -> Self {
        let totals = rows.iter().fold(Totals::default(), |sum, row| Totals {
            calls: sum.calls.saturating_add(row.calls),
            failed: sum.failed.saturating_add(row.failed),
            usage: sum.usage.plus(row.usage),
        });
        Self {
            from,
            to,
            rows,
            totals,
        }
    }
}
