//! `/turns/{id}/cancel` and `/sessions/{id}/cancel`: cancelling a turn by its id, the running turn of
//! a session, or a turn by the key of its submit; with `wait=true` the response is the ended turn.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use turnwire_event::{Owner, TurnId};
use turnwire_session::TurnCanceller;
use turnwire_wire::rest::turn::{
    REASON_CHARS_MAX, SessionCancel, SessionCancelAccepted, TurnCancel, TurnCancelAccepted,
    TurnInfo,
};

use super::{chat, turns};
use crate::error::RequestFault;
use crate::request::submit;
use crate::request::{Identity, JsonBody, QueryParams, SessionPath, TurnPath};
use crate::state::AppState;

/// How long a response waits for the end of a turn: twice the grace of a process, and less than the
/// timeout of most proxies.
const WAIT: Duration = Duration::from_secs(15);

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/turns/{id}/cancel", post(of_turn))
        .route("/sessions/{id}/cancel", post(of_session))
}

async fn of_turn(
    State(canceller): State<TurnCanceller>,
    Identity(owner): Identity,
    TurnPath(id): TurnPath,
    mut params: QueryParams,
    JsonBody(body): JsonBody<TurnCancel>,
) -> Result<Response, RequestFault> {
    let wait = params.take_flag("wait")?;
    params.refuse_rest()?;
    let reason = reason(body.reason)?;
    let turn_state = canceller.cancel(&owner, id, reason).await?;
    if let Some(turn) = ended(&canceller, &owner, id, wait).await? {
        return Ok(Json(turn).into_response());
    }
    let accepted = TurnCancelAccepted {
        turn_id: id,
        state: turn_state,
    };
    Ok((StatusCode::ACCEPTED, Json(accepted)).into_response())
}

async fn of_session(
    State(canceller): State<TurnCanceller>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    mut params: QueryParams,
    JsonBody(body): JsonBody<SessionCancel>,
) -> Result<(StatusCode, Json<SessionCancelAccepted>), RequestFault> {
    let wait = params.take_flag("wait")?;
    params.refuse_rest()?;
    let reason = reason(body.reason)?;
    // A cancel by key is stored until the submit arrives.
    let (cancelled, without_turn) = match body.idempotency_key {
        None => {
            let cancelled = canceller.cancel_running(&owner, id, reason).await?;
            (cancelled, StatusCode::OK)
        }
        Some(key) if submit::is_key(&key) => {
            let key = (&[turns::ROUTE, chat::ROUTE][..], key);
            let cancelled = canceller.cancel_submit(&owner, id, key, reason).await?;
            (cancelled, StatusCode::ACCEPTED)
        }
        Some(_) => {
            let rule = submit::key_rule();
            return Err(RequestFault::invalid("idempotency_key", rule));
        }
    };
    let Some((turn_id, turn_state)) = cancelled else {
        return Ok((without_turn, Json(SessionCancelAccepted::default())));
    };
    let turn = ended(&canceller, &owner, turn_id, wait).await?;
    let status = match turn {
        Some(_) => StatusCode::OK,
        None => StatusCode::ACCEPTED,
    };
    let accepted = SessionCancelAccepted {
        turn_id: Some(turn_id),
        state: Some(turn.as_ref().map_or(turn_state, |turn| turn.state)),
        turn: turn.map(Box::new),
    };
    Ok((status, Json(accepted)))
}

/// The ended turn, if the request waits for the end and the turn ends within [`WAIT`].
async fn ended(
    canceller: &TurnCanceller,
    owner: &Owner,
    id: TurnId,
    wait: bool,
) -> Result<Option<TurnInfo>, RequestFault> {
    if !wait {
        return Ok(None);
    }
    let row = canceller.wait_for_end(owner, id, WAIT).await?;
    Ok(row.map(Into::into))
}

fn reason(text: Option<String>) -> Result<Option<String>, RequestFault> {
    let reason = text.filter(|reason| !reason.is_empty());
    RequestFault::check_length("reason", reason.as_deref(), REASON_CHARS_MAX)?;
    Ok(reason)
}
