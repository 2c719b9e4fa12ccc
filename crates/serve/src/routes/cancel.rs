//! `/turns/{id}/cancel` and `/sessions/{id}/cancel`: stopping a turn by its id, by what its session
//! does now, or by the key of its submit; with `wait=true` the answer is how it ended.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use turnwire_event::code::TurnState;
use turnwire_event::{Owner, TurnId};
use turnwire_session::TurnCanceller;
use turnwire_wire::rest::turn::{
    REASON_CHARS_MAX, SessionCancel, SessionCancelAccepted, TurnCancel, TurnCancelAccepted,
    TurnInfo,
};

use super::{chat, turns};
use crate::error::RequestFault;
use crate::request::body::JsonBody;
use crate::request::identity::Identity;
use crate::request::path::{SessionPath, TurnPath};
use crate::request::query::QueryParams;
use crate::request::submit::{self, invalid};
use crate::state::AppState;

/// How long an answer waits for the end of a turn: twice what a process has before it is killed,
/// and less than proxies give a request.
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
    let wait = params.flag("wait")?;
    params.done()?;
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
    let wait = params.flag("wait")?;
    params.done()?;
    let reason = reason(body.reason)?;
    let cancelled = match body.idempotency_key {
        None => {
            let cancelled = canceller.cancel_running(&owner, id, reason).await?;
            let Some(cancelled) = cancelled else {
                return Ok((StatusCode::OK, Json(SessionCancelAccepted::default())));
            };
            cancelled
        }
        Some(key) => {
            if !submit::is_key(&key) {
                return Err(invalid("idempotency_key", &submit::key_rule()));
            }
            let routes = [turns::ROUTE, chat::ROUTE];
            let key = (&routes[..], key);
            let cancelled = canceller.cancel_submit(&owner, id, key, reason).await?;
            let Some(cancelled) = cancelled else {
                // Stored until the submit arrives.
                return Ok((StatusCode::ACCEPTED, Json(SessionCancelAccepted::default())));
            };
            cancelled
        }
    };
    let (turn_id, turn_state): (TurnId, TurnState) = cancelled;
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

/// The turn once it has ended, if the caller waits for that and it does not take too long.
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

fn reason(said: Option<String>) -> Result<Option<String>, RequestFault> {
    let reason = said.filter(|reason| !reason.is_empty());
    let long = |reason: &String| reason.chars().count() > REASON_CHARS_MAX;
    if reason.as_ref().is_some_and(long) {
        let message = format!("may have {REASON_CHARS_MAX} characters");
        return Err(invalid("reason", &message));
    }
    Ok(reason)
}
