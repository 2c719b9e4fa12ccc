//! `/sessions/{id}/messages`: what was said, walking back a page at a time (S3-008).

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_session::SessionReader;
use turnwire_wire::rest::message::MessagesResponse;

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::identity::Identity;
use crate::request::path::SessionPath;
use crate::request::query::QueryParams;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/sessions/{id}/messages", get(list))
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<MessagesResponse>, RequestFault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.messages_page, pages.messages_page_max)?;
    let (messages, next) = reader.messages(&owner, id, before, limit).await?;
    Ok(Json(MessagesResponse { messages, next }))
}
