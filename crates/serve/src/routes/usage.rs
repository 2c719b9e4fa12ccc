//! `/usage`: what the caller's tenant has used, by day and model. Other tenants' rows are not there,
//! as if they had none (law 10).

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_event::UtcDay;
use turnwire_session::{DailyUsage, SessionReader};
use turnwire_wire::problem::Code;
use turnwire_wire::rest::usage::{DAYS_DEFAULT, DAYS_MAX, UsageReport, UsageRow};

use crate::error::RequestFault;
use crate::request::identity::Identity;
use crate::request::query::QueryParams;
use crate::state::AppState;

/// The most rows of one answer: a year of 27 models, some 3 MB. A sum of fewer than all would be a
/// wrong sum, so more are refused.
const ROWS_MAX: usize = 10_000;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/usage", get(read))
}

async fn read(
    State(reader): State<SessionReader>,
    Identity(owner): Identity,
    params: QueryParams,
) -> Result<Json<UsageReport>, RequestFault> {
    let days = days(params, reader.today())?;
    let rows = reader.usage(owner.tenant, days, ROWS_MAX + 1).await?;
    if rows.len() > ROWS_MAX {
        let detail = format!("There are more than {ROWS_MAX} rows: ask for fewer days.");
        return Err(RequestFault::new(Code::InvalidRequest, detail).with("field", "from"));
    }
    let rows = rows.into_iter().map(told).collect();
    Ok(Json(UsageReport::new(days, rows)))
}

/// The days that are asked for: at most a year, the last month if nothing is said.
fn days(mut params: QueryParams, today: UtcDay) -> Result<(UtcDay, UtcDay), RequestFault> {
    let from = params.day("from")?;
    let to = params.day("to")?.unwrap_or(today);
    params.done()?;
    let from = from.unwrap_or_else(|| to.minus(DAYS_DEFAULT - 1));
    let invalid =
        |detail: String| RequestFault::new(Code::InvalidRequest, detail).with("field", "from");
    match to.since(from) {
        ..0 => Err(invalid(format!("from ({from}) is after to ({to})."))),
        span if span >= i64::from(DAYS_MAX) => Err(invalid(format!(
            "At most {DAYS_MAX} days are told at once."
        ))),
        _ => Ok((from, to)),
    }
}

fn told(row: DailyUsage) -> UsageRow {
    let of = (row.day, row.tenant, row.model);
    UsageRow::new(of, (row.calls, row.failed), row.usage)
}
