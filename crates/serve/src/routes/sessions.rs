//! `/sessions`: create, list, attach, delete, and list the workers of a session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use turnwire_event::SessionId;
use turnwire_session::{NewSession, SessionReader, SessionWriter};
use turnwire_wire::rest::session::{
    SessionAttached, SessionCreate, SessionCreatedBody, SessionInfo, SessionList, Worker,
    WorkerList,
};

use crate::access::guard::{CallingSite, WebSocketBase};
use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::submit;
use crate::request::{Identity, JsonBody, ListPage, OwnCaller, QueryParams, SessionPath};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sessions", post(create).get(list))
        .route("/sessions/{id}", get(attach).delete(delete))
        .route("/sessions/{id}/workers", get(workers))
}

async fn create(
    State(writer): State<SessionWriter>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    JsonBody(body): JsonBody<SessionCreate>,
) -> Result<Response, RequestFault> {
    let bytes_max = config.session.metadata_max_bytes;
    let metadata = submit::metadata(body.metadata, bytes_max)?;
    let path_bytes = body.workspace_path.as_ref().map_or(0, String::len);
    RequestFault::check_bytes("workspace_path", path_bytes, bytes_max)?;
    let new = NewSession {
        workspace_path: body.workspace_path,
        metadata,
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
    Identity(owner): Identity,
    page: ListPage<SessionId>,
) -> Result<Json<SessionList>, RequestFault> {
    let rows = reader.sessions(&owner, page.before, page.bounds).await?;
    let (sessions, next) = page.fit(rows, |session: &SessionInfo| session.session_id);
    Ok(Json(SessionList { sessions, next }))
}

async fn attach(
    State(state): State<AppState>,
    Extension(WebSocketBase(base)): Extension<WebSocketBase>,
    Extension(CallingSite(site)): Extension<CallingSite>,
    OwnCaller(caller): OwnCaller,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<SessionAttached>, RequestFault> {
    params.refuse_rest()?;
    let streams = &state.streams;
    let row = streams.sessions.row(&caller.owner, id).await?;
    let token = streams.attach_tokens.issue(id, &caller, site.as_ref())?;
    let pack = state.host.as_ref().map(|host| {
        let pack = host.pack();
        let model = &pack.orchestrator.model;
        format!("{} {}, model {model}", pack.name, pack.version)
    });
    let attached = SessionAttached::new(row, token, &base);
    Ok(Json(attached.with_pack(pack)))
}

async fn delete(
    State(writer): State<SessionWriter>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<StatusCode, RequestFault> {
    params.refuse_rest()?;
    writer.delete(&owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn workers(
    State(reader): State<SessionReader>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    page: ListPage<SessionId>,
) -> Result<Json<WorkerList>, RequestFault> {
    let rows = reader.workers(&owner, id, page.before, page.bounds).await?;
    let (workers, next) = page.fit(rows, |worker: &Worker| worker.session.session_id);
    Ok(Json(WorkerList { workers, next }))
}
