//! `/sessions/{id}/tool-calls`: which tools ran and how they ended.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_session::SessionReader;
use turnwire_wire::rest::tool_call::List;

use crate::config::Config;
use crate::error::Fault;
use crate::request::identity::Identity;
use crate::request::path::SessionPath;
use crate::request::query::Params;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/sessions/{id}/tool-calls", get(list))
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<Config>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: Params,
) -> Result<Json<List>, Fault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (calls, next) = reader.tool_calls(&owner, id, before, limit).await?;
    Ok(Json(List {
        tool_calls: calls.into_iter().map(Into::into).collect(),
        next,
    }))
}
