//! `/chat/stream` and `/chat/{response_id}/stream`: a turn whose response is its own stream on the
//! chat wire, and its resumption.

use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::time::Instant;
use turnwire_event::code::Origin;
use turnwire_event::row::TurnRow;
use turnwire_session::{DisconnectScope, Error, NewSession, SubmitTarget};
use turnwire_wire::pc3::WireVersion;
use turnwire_wire::problem::Code;
use turnwire_wire::rest::chat::ChatRequest;
use turnwire_wire::rest::turn::TurnSubmit;

use super::quota_headers;
use super::turn_stream::{self, StreamedSubmit};
use crate::error::RequestFault;
use crate::request::submit::{self, WIRE_VERSION};
use crate::request::{AttachUse, JsonBody, OwnCaller, QueryParams, RequestTrace, TurnPath};
use crate::state::AppState;
use crate::transport::ChatFormat;

/// The name under which idempotency keys of this route are stored.
pub(super) const ROUTE: &str = "/chat/stream";

pub(super) fn router(state: &AppState) -> Router<AppState> {
    let submits = from_fn_with_state(state.clone(), quota_headers::of_submits);
    let reads = from_fn_with_state(state.clone(), quota_headers::of_reads);
    Router::new()
        .route("/chat/stream", post(ask).layer(submits))
        .route("/chat/{response_id}/stream", get(resume).layer(reads))
}

async fn ask(
    State(state): State<AppState>,
    Extension(trace): Extension<RequestTrace>,
    OwnCaller(caller): OwnCaller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ChatRequest>,
) -> Result<Response, RequestFault> {
    let owner = &caller.owner;
    let submitted_at = Instant::now();
    let permit = turn_stream::permit(&state, owner)?;
    submit::check_sizes(&body.message, body.metadata.as_ref(), &state.config)?;
    let version = submit::version(&headers)?;
    let key = submit::key(&headers, ROUTE, &body)?;
    let session = body.session_id.clone();
    let parsed = TurnSubmit {
        message: body.message,
        locale: body.locale,
        on_disconnect: body.on_disconnect,
        disconnect_grace_ms: body.disconnect_grace_ms,
        on_busy: body.on_busy,
        location: body.location,
        metadata: body.metadata,
        origin: Some(Origin::Chat),
        dm_type: None,
        job: None,
    };
    let own_version = version.unwrap_or_else(|| state.wire_version(owner));
    let turn = submit::checked(
        parsed,
        DisconnectScope::Stream,
        &headers,
        trace.for_turn(),
        own_version,
        state.config.session.metadata_max_bytes,
    )?;
    let target = match session {
        None => SubmitTarget::New(NewSession::default()),
        Some(id) => SubmitTarget::Existing(id.parse().map_err(|_| Error::SessionNotFound)?),
    };
    let submit = StreamedSubmit {
        target,
        turn,
        key,
        submitted_at,
        permit,
    };
    let bound = move |row: &TurnRow| bound_format(row, version);
    turn_stream::submit(state, caller, submit, ChatFormat(own_version), bound).await
}

async fn resume(
    State(state): State<AppState>,
    OwnCaller(caller): OwnCaller,
    TurnPath(id): TurnPath,
    method: Method,
    attach: AttachUse,
    headers: HeaderMap,
    mut params: QueryParams,
) -> Result<Response, RequestFault> {
    params.take("attach")?;
    let cursor = turn_stream::cursor(&headers, params)?;
    let version = submit::version(&headers)?;
    let bound = |row: &TurnRow| bound_format(row, version);
    turn_stream::resume(&state, (&caller, attach), (id, cursor), &method, bound).await
}

/// The [`ChatFormat`] of the version that a turn is bound to, which must be the `requested` one.
fn bound_format(row: &TurnRow, requested: Option<WireVersion>) -> Result<ChatFormat, RequestFault> {
    let bound = row.wire_version.as_deref().map(str::parse).transpose();
    let bound: WireVersion = bound
        .map_err(|_| RequestFault::internal())?
        .unwrap_or_default();
    if requested.is_some_and(|requested| requested != bound) {
        let detail = format!("The turn is bound to version {bound}; ask for that, or for none.");
        let fault = RequestFault::new(Code::WireVersionMismatch, detail);
        return Err(fault
            .with("wire_version", bound.as_str())
            .with("field", WIRE_VERSION));
    }
    Ok(ChatFormat(bound))
}
