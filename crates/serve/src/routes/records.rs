//! The records of a session: its messages (`/sessions/{id}/messages`, S3-008), its tool calls
//! (`/sessions/{id}/tool-calls`) and its model calls (`/sessions/{id}/llm-calls`), in pages from the
//! newest back.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_event::{CallId, ToolUseId};
use turnwire_session::SessionReader;
use turnwire_wire::rest::llm_call::LlmCallList;
use turnwire_wire::rest::message::MessagesResponse;
use turnwire_wire::rest::tool_call::ToolCallList;

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::{Identity, ListPage, QueryParams, SessionPath};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sessions/{id}/messages", get(messages))
        .route("/sessions/{id}/tool-calls", get(tool_calls))
        .route("/sessions/{id}/llm-calls", get(llm_calls))
}

async fn messages(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<MessagesResponse>, RequestFault> {
    let sizes = &config.session;
    let page = params.into_page(sizes.messages_page, sizes.messages_page_max)?;
    let (messages, next) = reader.messages(&owner, id, page.before, page.limit).await?;
    Ok(Json(MessagesResponse { messages, next }))
}

async fn tool_calls(
    State(reader): State<SessionReader>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    page: ListPage<ToolUseId>,
) -> Result<Json<ToolCallList>, RequestFault> {
    let (rows, next) = reader
        .tool_calls(&owner, id, page.before, page.limit)
        .await?;
    let tool_calls = rows.into_iter().map(Into::into).collect();
    Ok(Json(ToolCallList { tool_calls, next }))
}

async fn llm_calls(
    State(reader): State<SessionReader>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    page: ListPage<CallId>,
) -> Result<Json<LlmCallList>, RequestFault> {
    let (rows, next) = reader
        .llm_calls(&owner, id, page.before, page.limit)
        .await?;
    let llm_calls = rows.into_iter().map(Into::into).collect();
    Ok(Json(LlmCallList { llm_calls, next }))
}
