//! Streams of turns, for the routes of every wire that is a [`TurnFormat`]: a submit whose response is
//! the stream of its turn, and the resumption of such a stream.
//!
//! An error before the stream begins is a problem document; after that, a frame (S1-147).

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpStream;
use tokio::time::Instant;
use turnwire_event::code::TurnKind;
use turnwire_event::metric::TurnDimensions;
use turnwire_event::row::TurnRow;
use turnwire_event::{Owner, TurnId};
use turnwire_identity::Caller;
use turnwire_session::{Error, IdempotencyKey, ReplayError, SubmitRequest, SubmitTarget};
use turnwire_wire::pc3::FrameCursor;
use turnwire_wire::problem::Code;

use crate::access::header::single_value;
use crate::error::{RequestFault, count_refusal, run_to_end};
use crate::request::{AttachUse, QueryParams};
use crate::state::AppState;
use crate::transport::EventStream;
use crate::transport::turn::{self, EmitterLabels, StreamPermit, TurnFormat, TurnRequest};

const LAST_EVENT_ID: &str = "last-event-id";

/// A submit whose response is the stream of its turn.
pub(super) struct StreamedSubmit {
    pub(super) target: SubmitTarget,
    pub(super) turn: SubmitRequest,
    pub(super) key: Option<IdempotencyKey>,
    /// When the request came.
    pub(super) submitted_at: Instant,
    pub(super) permit: StreamPermit,
}

/// Submits a turn and streams it in a [`TurnFormat`]. A turn that was submitted before with the same
/// key is streamed in the format that `bound` returns for it.
pub(super) async fn submit<F: TurnFormat<Framing = EventStream<TcpStream>>>(
    state: AppState,
    caller: Caller,
    submit: StreamedSubmit,
    format: F,
    bound: impl FnOnce(&TurnRow) -> Result<F, RequestFault> + Send + 'static,
) -> Result<Response, RequestFault> {
    // To its end: if the client leaves now, its turn is attended and then left, instead of being
    // submitted and never attended.
    run_to_end(async move {
        let StreamedSubmit {
            target,
            turn,
            key,
            submitted_at,
            permit,
        } = submit;
        let owner = caller.owner.clone();
        let submitter = state.service.submitter();
        let submitted = submitter.submit_attended(&owner, target, turn, key).await;
        let (accepted, attendance) = submitted?;
        if accepted.repeated {
            state.streams.quotas.count_subscribe(&owner)?;
            let row = state
                .service
                .reader()
                .turn(&owner, accepted.turn_id)
                .await?;
            let format = bound(&row)?;
            return open(&state, &caller, row, format, (None, permit)).await;
        }
        let live = attendance.live().clone();
        let request = TurnRequest {
            turn: accepted.turn_id,
            response_id: None,
            start: accepted.position,
            client_cursor: None,
            submitted_at: Some(submitted_at),
            caller,
            attendance: Some(attendance),
            permit,
        };
        let definition = state.service.status().agent_definition();
        let dimensions = dimensions(&state, &owner, definition);
        let format = (format, &dimensions);
        let response = turn::open(state.streams.clone(), live, format, request).await;
        response.map_err(replay_fault)
    })
    .await
}

/// Resumes the stream of a turn after `cursor`, in the format that `bound` returns for it.
pub(super) async fn resume<F: TurnFormat<Framing = EventStream<TcpStream>>>(
    state: &AppState,
    (caller, attach): (&Caller, AttachUse),
    (id, cursor): (TurnId, Option<FrameCursor>),
    method: &Method,
    bound: impl FnOnce(&TurnRow) -> Result<F, RequestFault>,
) -> Result<Response, RequestFault> {
    let owner = &caller.owner;
    let row = state.service.reader().turn(owner, id).await?;
    attach.check(&state.streams, row.session_id)?;
    if !matches!(row.kind, TurnKind::Chat | TurnKind::Worker) {
        let detail =
            "Nobody waits for this turn: it has no chat stream. Its session has its events.";
        return Err(RequestFault::new(Code::StreamingDisabled, detail));
    }
    let format = bound(&row)?;
    if cursor.is_some_and(|cursor| !cursor.may_be_of(row.session_id)) {
        let detail = "The cursor is of another session; start again without a cursor.";
        return Err(RequestFault::new(Code::CursorExpired, detail));
    }
    if let Some(cursor) = cursor.filter(|cursor| turn::is_complete::<F>(&row, cursor)) {
        check_in_log(state, owner, &row, &cursor).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if method == Method::HEAD {
        return Ok(turn::head(row.session_id, row.id));
    }
    state.streams.quotas.count_subscribe(owner)?;
    let permit = permit(state, owner)?;
    attach.redeem(&state.streams, row.session_id)?;
    open(state, caller, row, format, (cursor, permit)).await
}

/// A [`StreamPermit`] for one more stream of `owner`.
pub(super) fn permit(state: &AppState, owner: &Owner) -> Result<StreamPermit, RequestFault> {
    state.streams.stream_limits.acquire(owner).ok_or_else(|| {
        let max = state.config.stream.chat_streams_max;
        count_refusal("chat_streams");
        let detail = format!("{max} chat streams are open already; close some.");
        RequestFault::new(Code::TooManyRequests, detail).with("limit", max)
    })
}

/// The client's cursor, the only parameter of a resumption: from the header, which an `EventSource`
/// keeps up to date, else from the query.
pub(super) fn cursor(
    headers: &HeaderMap,
    mut params: QueryParams,
) -> Result<Option<FrameCursor>, RequestFault> {
    let parameter = params.take("last_event_id")?;
    let invalid = |field: &str| {
        let detail = format!("{field} is not the id of a frame that this server has sent.");
        RequestFault::new(Code::InvalidCursor, detail).with("field", field)
    };
    let header = single_value(headers, LAST_EVENT_ID).map_err(|_| invalid("Last-Event-ID"))?;
    let named = [
        ("Last-Event-ID", header),
        ("last_event_id", parameter.as_deref()),
    ];
    let mut cursor = None;
    for (field, text) in named {
        let text = text.filter(|text| !text.is_empty());
        let parsed = text.map(|text| text.parse().map_err(|_| invalid(field)));
        // The second is read too: a request with a malformed one is never accepted.
        let parsed = parsed.transpose()?;
        cursor = cursor.or(parsed);
    }
    params.refuse_rest()?;
    Ok(cursor)
}

/// Refuses a cursor behind the turn's end that its session does not have: the client's frames are
/// of another log, and must not be taken for the complete stream.
async fn check_in_log(
    state: &AppState,
    owner: &Owner,
    row: &TurnRow,
    cursor: &FrameCursor,
) -> Result<(), RequestFault> {
    if row.ended == Some(cursor.position) {
        return Ok(());
    }
    let live = state.streams.sessions.open(owner, row.session_id).await?;
    if turn::is_ahead(&live, cursor) {
        return Err(Error::CursorExpired.into());
    }
    Ok(())
}

/// Opens the stream of a turn that exists already.
async fn open<F: TurnFormat<Framing = EventStream<TcpStream>>>(
    state: &AppState,
    caller: &Caller,
    row: TurnRow,
    format: F,
    (client_cursor, permit): (Option<FrameCursor>, StreamPermit),
) -> Result<Response, RequestFault> {
    let owner = &caller.owner;
    let live = state.streams.sessions.open(owner, row.session_id).await?;
    // A turn in the queue will be bound to the definition of now.
    let definition = match row.agent_definition {
        none if none.is_empty() => state.service.status().agent_definition(),
        bound => bound,
    };
    let request = TurnRequest {
        turn: row.id,
        response_id: row.response_id,
        start: turn::position_before(row.started),
        client_cursor,
        submitted_at: None,
        caller: caller.clone(),
        attendance: None,
        permit,
    };
    let dimensions = dimensions(state, owner, definition);
    let format = (format, &dimensions);
    let response = turn::open(state.streams.clone(), live, format, request).await;
    response.map_err(replay_fault)
}

/// The dimensions of the metrics of a stream (S1-133). A message service has no chat stream, so that
/// `dm_type` does not apply.
fn dimensions(state: &AppState, owner: &Owner, agent_definition: String) -> TurnDimensions {
    let mut dimensions = TurnDimensions {
        agent_definition,
        ..TurnDimensions::default()
    };
    if let Some(host) = &state.host {
        let pack = host.pack();
        let agents = pack.agents.iter();
        let verticals =
            agents.map(|agent| (agent.id.as_str(), agent.vertical.as_deref().unwrap_or("")));
        EmitterLabels::global().set_verticals(verticals);
        dimensions.experiment_arm = host.experiment_arm(owner);
    }
    dimensions
}

/// The problem of a stream that cannot be opened.
fn replay_fault(error: ReplayError) -> RequestFault {
    match error {
        ReplayError::Expired | ReplayError::TooLarge(..) => Error::CursorExpired.into(),
        ReplayError::Session(error) => error.into(),
    }
}
