//! `/audit`: what was recorded of acts in a tenant.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_event::code::AuditAction;
use turnwire_session::{AuditReader, AuditSelection};
use turnwire_wire::rest::audit::{AuditList, AuditRecord};

use super::take_tenant;
use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::{AdminCaller, QueryParams};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/audit", get(list))
}

async fn list(
    State(reader): State<AuditReader>,
    State(config): State<Arc<ServerConfig>>,
    AdminCaller(caller): AdminCaller,
    mut params: QueryParams,
) -> Result<Json<AuditList>, RequestFault> {
    let tenant = take_tenant(&mut params, &caller)?;
    let selection = AuditSelection {
        from: params.take_day("from")?.map(|day| day.bounds().0),
        to: params.take_day("to")?.map(|day| day.bounds().1),
        action: take_action(&mut params)?,
        session: params.take_parsed("session", "must be the id of a session")?,
        job: params.take_parsed("job", "must be the name of a job")?,
        principal: params.take_parsed("principal", "must be the name of a principal")?,
        ..reader.selection(tenant)
    };
    let sizes = &config.session;
    let limits = (sizes.list_page, sizes.list_page_max);
    let page = params.into_page(limits, config.http.answer_max_bytes)?;
    let found = reader
        .page(&caller.owner, selection, page.before, page.bounds)
        .await?;
    let rows = (found.rows, found.next);
    let (records, next) = page.fit(rows, |record: &AuditRecord| record.audit_id);
    Ok(Json(AuditList { records, next }))
}

fn take_action(params: &mut QueryParams) -> Result<Option<AuditAction>, RequestFault> {
    let Some(name) = params.take("action")? else {
        return Ok(None);
    };
    let action = serde_json::from_value(name.into());
    action.map_err(|_| RequestFault::invalid("action", "must be an action that is recorded"))
}
