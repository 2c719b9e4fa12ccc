//! `/sessions`: make one, list them, attach to one, delete one, list its workers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use turnwire_session::{LiveSessions, NewSession, SessionReader, SessionWriter};
use turnwire_wire::rest::session::{
    SessionAttached, SessionCreate, SessionCreatedBody, SessionList, WorkerList,
};

use crate::access::guard::OwnHost;
use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::body::JsonBody;
use crate::request::identity::Identity;
use crate::request::path::SessionPath;
use crate::request::query::QueryParams;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sessions", post(create).get(list))
        .route("/sessions/{id}", get(attach).delete(delete))
        .route("/sessions/{id}/workers", get(workers))
}

async fn create(
    State(writer): State<SessionWriter>,
    Identity(owner): Identity,
    JsonBody(body): JsonBody<SessionCreate>,
) -> Result<Response, RequestFault> {
    let new = NewSession {
        workspace_path: body.workspace_path,
        metadata: body.metadata.unwrap_or_default(),
    };
    let session = writer.create(&owner, new).await?;
    let created = SessionCreatedBody {
        session_id: session.id,
        id: session.id,
    };
    let location = [(header::LOCATION, format!("/sessions/{}", session.id))];
    Ok((StatusCode::CREATED, location, Json(created)).into_response())
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    params: QueryParams,
) -> Result<Json<SessionList>, RequestFault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (sessions, next) = reader.sessions(&owner, before, limit).await?;
    Ok(Json(SessionList {
        sessions: sessions.into_iter().map(Into::into).collect(),
        next,
    }))
}

async fn attach(
    State(live_sessions): State<LiveSessions>,
    Extension(OwnHost(host)): Extension<OwnHost>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<SessionAttached>, RequestFault> {
    params.done()?;
    let ticket = live_sessions.attach(&owner, id).await?;
    Ok(Json(SessionAttached::new(
        ticket.session,
        ticket.token,
        &host,
    )))
}

async fn delete(
    State(writer): State<SessionWriter>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<StatusCode, RequestFault> {
    params.done()?;
    writer.delete(&owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn workers(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<WorkerList>, RequestFault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (workers, next) = reader.workers(&owner, id, before, limit).await?;
    Ok(Json(WorkerList {
        workers: workers.into_iter().map(Into::into).collect(),
        next,
    }))
}
