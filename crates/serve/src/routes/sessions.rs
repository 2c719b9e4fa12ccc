//! `/sessions`: make one, list them, attach to one, delete one, list its workers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use turnwire_session::{LiveSessions, NewSession, SessionReader, SessionWriter};
use turnwire_wire::rest::session::{Attached, Create, Created, List, Workers};

use crate::access::guard::OwnHost;
use crate::config::Config;
use crate::error::Fault;
use crate::request::body::JsonBody;
use crate::request::identity::Identity;
use crate::request::path::SessionPath;
use crate::request::query::Params;
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
    JsonBody(body): JsonBody<Create>,
) -> Result<Response, Fault> {
    let new = NewSession {
        workspace_path: body.workspace_path,
        metadata: body.metadata.unwrap_or_default(),
    };
    let session = writer.create(&owner, new).await?;
    let created = Created {
        session_id: session.id,
        id: session.id,
    };
    let location = [(header::LOCATION, format!("/sessions/{}", session.id))];
    Ok((StatusCode::CREATED, location, Json(created)).into_response())
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<Config>>,
    Identity(owner): Identity,
    params: Params,
) -> Result<Json<List>, Fault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (sessions, next) = reader.sessions(&owner, before, limit).await?;
    Ok(Json(List {
        sessions: sessions.into_iter().map(Into::into).collect(),
        next,
    }))
}

async fn attach(
    State(live_sessions): State<LiveSessions>,
    Extension(OwnHost(host)): Extension<OwnHost>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: Params,
) -> Result<Json<Attached>, Fault> {
    params.done()?;
    let ticket = live_sessions.attach(&owner, id).await?;
    Ok(Json(Attached::new(ticket.session, ticket.token, &host)))
}

async fn delete(
    State(writer): State<SessionWriter>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: Params,
) -> Result<StatusCode, Fault> {
    params.done()?;
    writer.delete(&owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn workers(
    State(reader): State<SessionReader>,
    State(config): State<Arc<Config>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: Params,
) -> Result<Json<Workers>, Fault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (workers, next) = reader.workers(&owner, id, before, limit).await?;
    Ok(Json(Workers {
        workers: workers.into_iter().map(Into::into).collect(),
        next,
    }))
}
