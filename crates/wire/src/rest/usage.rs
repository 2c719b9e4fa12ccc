//! `GET /usage`: what a tenant's model calls came to, by day and model. Sums outlive the sessions
//! they were made in.

use serde::{Deserialize, Serialize};
use turnwire_event::{Day, TenantId, Usage};

/// The most days that are told at once: a year, and the day it is one longer.
pub const DAYS_MAX: u16 = 366;

/// How many days are told if nothing is said: today and those before.
pub const DAYS: u16 = 30;

/// 200.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "UsageReport"))]
pub struct Report {
    /// The first day (UTC).
    pub from: Day,
    /// The last day (UTC).
    pub to: Day,
    /// What each day, tenant and model came to, in this order; those without a call are left out.
    pub rows: Vec<Row>,
    /// All rows together.
    pub totals: Totals,
}

/// What one tenant's calls of one model came to on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "UsageRow"))]
pub struct Row {
    /// The day on which the calls ended (UTC).
    pub day: Day,
    /// Whose calls.
    pub tenant_id: String,
    /// Which model, `provider:model`.
    pub model: String,
    /// How many ended.
    pub calls: u64,
    /// How many of those failed.
    pub failed: u64,
    /// What those that completed came to.
    pub usage: Usage,
}

/// What several rows come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "UsageTotals"))]
pub struct Totals {
    /// How many calls ended.
    pub calls: u64,
    /// How many of those failed.
    pub failed: u64,
    /// What those that completed came to.
    pub usage: Usage,
}

impl Row {
    /// A row of a tenant.
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
    /// Rows with their sum.
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
