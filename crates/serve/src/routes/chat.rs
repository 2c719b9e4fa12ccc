//! `/chat/stream` and `/chat/{response_id}/stream`: a turn whose response is its own stream, and
//! its resumption.
//!
//! An error before the stream begins is a problem document; after that, a frame (S1-147).

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::Owner;
use turnwire_event::code::{OnDisconnect, Origin, TurnKind};
use turnwire_event::row::TurnRow;
use turnwire_session::{
    DisconnectScope, Error, LiveSessions, NewSession, ReplayError, ServiceStatus, SessionReader,
    SubmitTarget, TurnSubmitter,
};
use turnwire_wire::pc3::{FrameCursor, WireVersion};
use turnwire_wire::problem::Code;
use turnwire_wire::rest::chat::ChatRequest;

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::body::JsonBody;
use crate::request::header::only;
use crate::request::identity::Identity;
use crate::request::path::TurnPath;
use crate::request::query::QueryParams;
use crate::request::submit::{self, ParsedSubmit, WIRE_VERSION};
use crate::request::trace::RequestTrace;
use crate::state::{AppState, WireVersions};
use crate::transport::{self, StreamPermit, Streams, TurnRequest, chat};

/// The name under which idempotency keys of this route are stored.
pub(super) const ROUTE: &str = "/chat/stream";

const LAST_EVENT_ID: &str = "last-event-id";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/chat/stream", post(ask))
        .route("/chat/{response_id}/stream", get(resume))
}

/// The parts of [`AppState`] that open the stream of a turn.
#[derive(Clone)]
struct ChatState {
    reader: SessionReader,
    live_sessions: LiveSessions,
    status: ServiceStatus,
    streams: Arc<Streams>,
    config: Arc<ServerConfig>,
}

impl FromRef<AppState> for ChatState {
    fn from_ref(state: &AppState) -> Self {
        Self {
            reader: SessionReader::from_ref(state),
            live_sessions: LiveSessions::from_ref(state),
            status: ServiceStatus::from_ref(state),
            streams: FromRef::from_ref(state),
            config: FromRef::from_ref(state),
        }
    }
}

async fn ask(
    State(submitter): State<TurnSubmitter>,
    State(wire_versions): State<WireVersions>,
    State(state): State<ChatState>,
    Extension(trace): Extension<RequestTrace>,
    Identity(owner): Identity,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ChatRequest>,
) -> Result<Response, RequestFault> {
    let submitted_at = Instant::now();
    let permit = stream_permit(&state, &owner)?;
    let version = submit::version(&headers)?;
    let key = submit::key(&headers, ROUTE, &body)?;
    let session = body.session_id.clone();
    let submit = ParsedSubmit {
        message: body.message,
        locale: body.locale,
        location: body.location,
        metadata: body.metadata,
        on_disconnect: body.on_disconnect.unwrap_or(OnDisconnect::Cancel),
        disconnect_grace_ms: body.disconnect_grace_ms,
        on_busy: body.on_busy,
        disconnect_scope: DisconnectScope::Stream,
        origin: Origin::Chat,
        dm_type: None,
    };
    let bound_to = version.unwrap_or_else(|| wire_versions.for_owner(&owner));
    let turn = submit::checked(submit, &headers, trace.for_turn(), bound_to)?;
    let target = match session {
        None => SubmitTarget::New(NewSession::default()),
        Some(id) => SubmitTarget::Existing(id.parse().map_err(|_| Error::SessionNotFound)?),
    };
    // A task of its own: if the client leaves now, its turn is attended and then left, instead of
    // being submitted and never attended.
    let response = async move {
        let submit = submitter.submit_attended(&owner, target, turn, key);
        let (accepted, attendance) = submit.await?;
        if accepted.repeated {
            let row = state.reader.turn(&owner, accepted.turn_id).await?;
            return open(&state, &owner, row, version, None, permit).await;
        }
        let live = attendance.live().clone();
        let request = TurnRequest {
            turn: accepted.turn_id,
            start: accepted.position,
            client_cursor: None,
            submitted_at: Some(submitted_at),
            attendance: Some(attendance),
            permit,
        };
        let definition = state.status.agent_definition();
        let bound = (bound_to, definition.as_str());
        let response = chat::open(state.streams.clone(), live, bound, request).await;
        response.map_err(replay_fault)
    };
    let response = tokio::spawn(response.in_current_span()).await;
    response.map_err(|_| RequestFault::internal())?
}

async fn resume(
    State(state): State<ChatState>,
    Identity(owner): Identity,
    TurnPath(id): TurnPath,
    method: Method,
    headers: HeaderMap,
    mut params: QueryParams,
) -> Result<Response, RequestFault> {
    let cursor = cursor(&headers, &mut params)?;
    params.done()?;
    let version = submit::version(&headers)?;
    let row = state.reader.turn(&owner, id).await?;
    if !matches!(row.kind, TurnKind::Chat | TurnKind::Worker) {
        let detail =
            "Nobody waits for this turn: it has no chat stream. Its session has its events.";
        return Err(RequestFault::new(Code::StreamingDisabled, detail));
    }
    bound_version(&row, version)?;
    if let Some(cursor) = cursor.filter(|cursor| chat::is_complete(&row, cursor)) {
        check_in_log(&state, &owner, &row, &cursor).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if method == Method::HEAD {
        return Ok(chat::head(row.session_id, row.id));
    }
    let permit = stream_permit(&state, &owner)?;
    open(&state, &owner, row, version, cursor, permit).await
}

fn stream_permit(state: &ChatState, owner: &Owner) -> Result<StreamPermit, RequestFault> {
    state.streams.stream_limits.acquire(owner).ok_or_else(|| {
        let max = state.config.stream.chat_streams_max;
        let detail = format!("{max} chat streams are open already; close some.");
        RequestFault::new(Code::TooManyRequests, detail).with("limit", max)
    })
}

/// The client's cursor: from the header, which an `EventSource` keeps up to date, else from the
/// query.
fn cursor(
    headers: &HeaderMap,
    params: &mut QueryParams,
) -> Result<Option<FrameCursor>, RequestFault> {
    let parameter = params.take("last_event_id")?;
    let invalid = |field: &str| {
        let detail = format!("{field} is not the id of a frame that this server has sent.");
        RequestFault::new(Code::InvalidCursor, detail).with("field", field)
    };
    let header = only(headers, LAST_EVENT_ID).map_err(|_| invalid("Last-Event-ID"))?;
    let (field, text) = match (header.filter(|text| !text.is_empty()), parameter) {
        (Some(text), _) => ("Last-Event-ID", text.to_owned()),
        (None, Some(text)) if !text.is_empty() => ("last_event_id", text),
        (None, _) => return Ok(None),
    };
    text.parse().map(Some).map_err(|_| invalid(field))
}

/// Refuses a cursor behind the turn's end that its session does not have: the client's frames are
/// of another log, and must not be taken for the complete stream.
async fn check_in_log(
    state: &ChatState,
    owner: &Owner,
    row: &TurnRow,
    cursor: &FrameCursor,
) -> Result<(), RequestFault> {
    if row.ended == Some(cursor.position) {
        return Ok(());
    }
    let live = state.live_sessions.open(owner, row.session_id).await?;
    if transport::is_ahead(&live, cursor) {
        return Err(Error::CursorExpired.into());
    }
    Ok(())
}

/// The version that a turn is bound to, which must be the `requested` one.
fn bound_version(
    row: &TurnRow,
    requested: Option<WireVersion>,
) -> Result<WireVersion, RequestFault> {
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
    Ok(bound)
}

/// Opens the stream of a turn that exists already.
async fn open(
    state: &ChatState,
    owner: &Owner,
    row: TurnRow,
    version: Option<WireVersion>,
    cursor: Option<FrameCursor>,
    permit: StreamPermit,
) -> Result<Response, RequestFault> {
    let version = bound_version(&row, version)?;
    let live = state.live_sessions.open(owner, row.session_id).await?;
    // A turn in the queue will be bound to the definition of now.
    let definition = match row.agent_definition {
        none if none.is_empty() => state.status.agent_definition(),
        bound => bound,
    };
    let request = TurnRequest {
        turn: row.id,
        start: transport::position_before(row.started),
        client_cursor: cursor,
        submitted_at: None,
        attendance: None,
        permit,
    };
    let bound = (version, definition.as_str());
    let response = chat::open(state.streams.clone(), live, bound, request).await;
    response.map_err(replay_fault)
}

/// The problem of a stream that cannot be opened.
fn replay_fault(error: ReplayError) -> RequestFault {
    match error {
        ReplayError::Expired | ReplayError::TooLarge(..) => Error::CursorExpired.into(),
        ReplayError::Session(error) => error.into(),
    }
}
