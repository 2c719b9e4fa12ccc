//! The records of a session: its messages (`/sessions/{id}/messages`, S3-008), its tool calls
//! (`/sessions/{id}/tool-calls`) and its model calls (`/sessions/{id}/llm-calls`), in pages from the
//! newest back.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_event::{CallId, Message, ToolUseId};
use turnwire_session::SessionReader;
use turnwire_wire::budget::cut_to_newest;
use turnwire_wire::rest::llm_call::{LlmCall, LlmCallList};
use turnwire_wire::rest::message::MessagesResponse;
use turnwire_wire::rest::tool_call::{ToolCallList, ToolCallRecord};

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::{ListPage, MessagePath, QueryParams, ReadingCaller, SessionPath};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sessions/{id}/messages", get(messages))
        .route("/sessions/{id}/messages/{message_id}", get(message))
        .route("/sessions/{id}/tool-calls", get(tool_calls))
        .route("/sessions/{id}/llm-calls", get(llm_calls))
}

async fn messages(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    caller: ReadingCaller,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<MessagesResponse>, RequestFault> {
    let sizes = &config.session;
    let limits = (sizes.messages_page, sizes.messages_page_max);
    let bytes_max = config.http.answer_max_bytes;
    let page = params.into_page(limits, bytes_max)?;
    let (mut messages, next) = reader
        .messages(caller.viewer(), id, page.before, page.bounds)
        .await?;
    let is_cut = cut_to_newest(&mut messages, bytes_max);
    let oldest = messages.first().filter(|_| is_cut || next.is_some());
    let next = oldest.map(|message| message.id);
    Ok(Json(MessagesResponse { messages, next }))
}

async fn message(
    State(reader): State<SessionReader>,
    caller: ReadingCaller,
    MessagePath(id, message): MessagePath,
    params: QueryParams,
) -> Result<Json<Message>, RequestFault> {
    params.refuse_rest()?;
    Ok(Json(reader.message(caller.viewer(), id, message).await?))
}

async fn tool_calls(
    State(reader): State<SessionReader>,
    caller: ReadingCaller,
    SessionPath(id): SessionPath,
    page: ListPage<ToolUseId>,
) -> Result<Json<ToolCallList>, RequestFault> {
    let rows = reader
        .tool_calls(caller.viewer(), id, page.before, page.bounds)
        .await?;
    let (tool_calls, next) = page.fit(rows, |call: &ToolCallRecord| call.tool_use_id);
    Ok(Json(ToolCallList { tool_calls, next }))
}

async fn llm_calls(
    State(reader): State<SessionReader>,
    caller: ReadingCaller,
    SessionPath(id): SessionPath,
    page: ListPage<CallId>,
) -> Result<Json<LlmCallList>, RequestFault> {
    let rows = reader
        .llm_calls(caller.viewer(), id, page.before, page.bounds)
        .await?;
    let (llm_calls, next) = page.fit(rows, |call: &LlmCall| call.call_id);
    Ok(Json(LlmCallList { llm_calls, next }))
}
