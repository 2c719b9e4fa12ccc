//! `GET /usage`: tokens and cost of a tenant's model calls, by day and model. The sums are kept after
//! the sessions are deleted.

use serde::{Deserialize, Serialize};
use turnwire_event::{TenantId, TokenUsage, UtcDay};

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
    /// The sum of all rows.
    pub totals: UsageTotals,
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
    /// Tokens and cost of those that completed.
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
    /// Tokens and cost of those that completed.
    pub usage: TokenUsage,
}

impl UsageRow {
    /// A row from the columns of the usage table.
    pub fn new(
        (day, tenant, model): (UtcDay, TenantId, String),
        (calls, failed): (u64, u64),
        usage: TokenUsage,
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

impl UsageReport {
    /// A report with the totals of `rows`.
    pub fn new((from, to): (UtcDay, UtcDay), rows: Vec<UsageRow>) -> Self {
        let totals = rows
            .iter()
            .fold(UsageTotals::default(), |sum, row| UsageTotals {
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
