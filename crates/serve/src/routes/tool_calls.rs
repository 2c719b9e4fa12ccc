//! `/sessions/{id}/tool-calls`: which tools ran and how they ended.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_session::SessionReader;
use turnwire_wire::rest::tool_call::ToolCallList;

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::identity::Identity;
use crate::request::path::SessionPath;
use crate::request::query::QueryParams;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/sessions/{id}/tool-calls", get(list))
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<ToolCallList>, RequestFault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (calls, next) = reader.tool_calls(&owner, id, before, limit).await?;
    Ok(Json(ToolCallList {
        tool_calls: calls.into_iter().map(Into::into).collect(),
        next,
    }))
}
