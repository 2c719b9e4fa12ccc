//! What the administrators of a tenant do: read its usage and the audit, pause and resume jobs.

mod usage;
mod audit;
mod jobs;

use axum::Router;
use turnwire_event::TenantId;
use turnwire_identity::Caller;

use crate::error::RequestFault;
use crate::request::QueryParams;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .merge(usage::router())
        .merge(audit::router())
        .merge(jobs::router())
}

/// Takes the parameter `tenant`: the tenant to read, the caller's own if absent.
fn take_tenant(params: &mut QueryParams, caller: &Caller) -> Result<TenantId, RequestFault> {
    match params.take("tenant")? {
        None => Ok(caller.owner.tenant),
        Some(text) => text
            .parse()
            .map_err(|_| RequestFault::invalid("tenant", "must be a UUID")),
    }
}
