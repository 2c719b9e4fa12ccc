//! `/usage`: tokens and cost of the caller's tenant, by day and model. The rows of other tenants are
//! not visible (law 10).

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_event::UtcDay;
use turnwire_session::{DailyUsage, SessionReader};
use turnwire_wire::rest::usage::{DAYS_DEFAULT, DAYS_MAX, UsageCursor, UsageReport, UsageRow};

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::{Identity, QueryParams};
use crate::state::AppState;

/// The largest number of rows in one report: a year of 27 models. The sum of a part of the rows would
/// be wrong, so more rows are refused.
const ROWS_MAX: usize = 10_000;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/usage", get(read))
}

async fn read(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    mut params: QueryParams,
) -> Result<Json<UsageReport>, RequestFault> {
    let after: Option<UsageCursor> = params.take_cursor("after")?;
    let days = days(params, reader.today())?;
    let rows = reader.usage(&owner, days, ROWS_MAX + 1).await?;
    if rows.len() > ROWS_MAX {
        let rule = format!("selects more than {ROWS_MAX} rows; ask for fewer days");
        return Err(RequestFault::invalid("from", rule));
    }
    let body = |row: DailyUsage| {
        let of = (row.day, row.tenant, row.model);
        UsageRow::new(of, (row.calls, row.failed, row.stopped), row.usage)
    };
    let rows = rows.into_iter().map(body).collect();
    let mut report = UsageReport::new(days, rows);
    report.cut_to_page(after.as_ref(), config.http.answer_max_bytes);
    Ok(Json(report))
}

/// The requested days: at most a year, by default the last month.
fn days(mut params: QueryParams, today: UtcDay) -> Result<(UtcDay, UtcDay), RequestFault> {
    let from = params.take_day("from")?;
    let to = params.take_day("to")?.unwrap_or(today);
    params.refuse_rest()?;
    let from = from.unwrap_or_else(|| to.minus(DAYS_DEFAULT - 1));
    match to.since(from) {
        ..0 => Err(format!("({from}) is after to ({to})")),
        span if span >= i64::from(DAYS_MAX) => {
            Err(format!("must be less than {DAYS_MAX} days before to"))
        }
        _ => Ok((from, to)),
    }
    .map_err(|rule| RequestFault::invalid("from", rule))
}
