//! `/usage`: tokens and cost of the caller's tenant, by day and model. The rows of other tenants are
//! visible with the scope `admin` alone (law 10).

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Extension, Json, Router};
use turnwire_event::{TenantId, UtcDay};
use turnwire_identity::{Caller, Scope};
use turnwire_session::{DailyUsage, SessionReader};
use turnwire_wire::rest::usage::{DAYS_DEFAULT, DAYS_MAX, UsageCursor, UsageReport, UsageRow};

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::QueryParams;
use crate::request::identity::require;
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
    Extension(caller): Extension<Caller>,
    mut params: QueryParams,
) -> Result<Json<UsageReport>, RequestFault> {
    let tenant = reported(&caller, params.take("tenant")?.as_deref())?;
    let after: Option<UsageCursor> = params.take_cursor("after")?;
    let days = days(params, reader.today())?;
    let usage = reader.usage(&caller.owner, tenant, days, ROWS_MAX + 1);
    let rows = usage.await?;
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

/// The tenant whose usage is asked for: the caller's own, or with the scope `admin` another one, or
/// all with `*`, which is `None`.
fn reported(caller: &Caller, named: Option<&str>) -> Result<Option<TenantId>, RequestFault> {
    let own = caller.owner.tenant;
    let tenant = match named {
        None => Some(own),
        Some("*") => None,
        Some(text) => {
            let tenant = text.parse();
            Some(tenant.map_err(|_| RequestFault::invalid("tenant", "must be a UUID or *"))?)
        }
    };
    let scopes: &[Scope] = if tenant == Some(own) {
        &[Scope::Own, Scope::Admin]
    } else {
        &[Scope::Admin]
    };
    require(caller, scopes)?;
    Ok(tenant)
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
