//! `/sessions`: create, list, attach, delete, and list the workers of a session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use turnwire_event::{Owner, Principal, SessionId};
use turnwire_identity::Scope;
use turnwire_session::{NewSession, SessionReader, SessionWriter, SessionsOf};
use turnwire_wire::rest::session::{
    SessionAttached, SessionCreate, SessionCreatedBody, SessionInfo, SessionList, Worker,
    WorkerList,
};

use crate::access::guard::{CallingSite, WebSocketBase};
use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::identity::require;
use crate::request::submit;
use crate::request::{
    Identity, JsonBody, ListPage, OwnCaller, QueryParams, ReadingCaller, SessionPath,
};
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
    State(config): State<Arc<ServerConfig>>,
    caller: ReadingCaller,
    mut params: QueryParams,
) -> Result<Json<SessionList>, RequestFault> {
    let named = params.take("principal")?;
    let sizes = &config.session;
    let limits = (sizes.list_page, sizes.list_page_max);
    let page: ListPage<SessionId> = params.into_page(limits, config.http.answer_max_bytes)?;
    let of = listed(&caller, named.as_deref())?;
    let reading = &caller.0.owner;
    let rows = reader
        .sessions_of(reading, of, page.before, page.bounds)
        .await?;
    let (sessions, next) = page.fit(rows, |session: &SessionInfo| session.session_id);
    Ok(Json(SessionList { sessions, next }))
}

/// Whose sessions a list has: the caller's own, or with `tenant:read` those of the named principal,
/// or of all with `*`.
fn listed(caller: &ReadingCaller, named: Option<&str>) -> Result<SessionsOf, RequestFault> {
    let owner = &caller.0.owner;
    let Some(named) = named else {
        return Ok(SessionsOf::Owner(owner.clone()));
    };
    if named == "*" {
        require(&caller.0, &[Scope::TenantRead])?;
        return Ok(SessionsOf::Tenant(owner.tenant));
    }
    let rule = "must be one name of 1 to 128 printable ASCII characters, or *";
    let principal: Principal = named
        .parse()
        .map_err(|_| RequestFault::invalid("principal", rule))?;
    if principal != owner.principal {
        require(&caller.0, &[Scope::TenantRead])?;
    }
    let tenant = owner.tenant;
    Ok(SessionsOf::Owner(Owner { tenant, principal }))
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
    OwnCaller(caller): OwnCaller,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<StatusCode, RequestFault> {
    params.refuse_rest()?;
    writer.delete(caller.requester(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn workers(
    State(reader): State<SessionReader>,
    caller: ReadingCaller,
    SessionPath(id): SessionPath,
    page: ListPage<SessionId>,
) -> Result<Json<WorkerList>, RequestFault> {
    let viewer = caller.viewer();
    let rows = reader.workers(viewer, id, page.before, page.bounds).await?;
    let (workers, next) = page.fit(rows, |worker: &Worker| worker.session.session_id);
    Ok(Json(WorkerList { workers, next }))
}
