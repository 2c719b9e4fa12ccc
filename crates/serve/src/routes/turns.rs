//! `/sessions/{id}/turns` and `/turns/{id}`: submit, list, read.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use turnwire_event::TurnId;
use turnwire_event::code::{AuditOutcome, Origin};
use turnwire_session::{DisconnectScope, SessionReader, SubmitTarget};
use turnwire_wire::rest::turn::{TurnAccepted, TurnInfo, TurnList, TurnSubmit};

use super::quota_headers;
use crate::error::{RequestFault, run_to_end};
use crate::request::submit;
use crate::request::{
    JsonBody, ListPage, OwnCaller, QueryParams, ReadingCaller, RequestTrace, SessionPath, TurnPath,
};
use crate::state::AppState;

/// The name under which idempotency keys of this route are stored.
pub(super) const ROUTE: &str = "/sessions/{id}/turns";

pub(super) fn router(state: &AppState) -> Router<AppState> {
    let counted = from_fn_with_state(state.clone(), quota_headers::of_submits);
    Router::new()
        .route(
            "/sessions/{id}/turns",
            post(submit).layer(counted).get(list),
        )
        .route("/turns/{id}", get(read))
}

async fn submit(
    State(state): State<AppState>,
    Extension(trace): Extension<RequestTrace>,
    OwnCaller(caller): OwnCaller,
    SessionPath(id): SessionPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<TurnSubmit>,
) -> Result<Response, RequestFault> {
    let owner = &caller.owner;
    submit::check_sizes(&body.message, body.metadata.as_ref(), &state.config)?;
    let key = submit::key(&headers, ROUTE, &body)?;
    let version = submit::version(&headers)?.unwrap_or_else(|| state.wire_version(owner));
    let job = submit::job(&body)?;
    let turn = submit::checked(
        body,
        DisconnectScope::Session,
        &headers,
        trace.for_turn(),
        version,
        state.config.session.metadata_max_bytes,
    )?;
    let submitter = state.service.submitter();
    let target = SubmitTarget::Existing(id);
    let is_scheduled = turn.origin != Origin::Chat;
    let submit = async move {
        if !is_scheduled {
            return submitter.submit(&caller.owner, target, turn, key).await;
        }
        let by = caller.requester();
        submitter
            .submit_scheduled(&by, target, turn, (job, key))
            .await
    };
    let turn = run_to_end(submit).await?;
    let accepted = TurnAccepted {
        turn_id: turn.turn_id,
        response_id: turn.turn_id.into(),
        state: turn.state,
        position: turn.position,
        outcome: is_scheduled.then_some(AuditOutcome::Dispatched),
    };
    let location = [(header::LOCATION, format!("/turns/{}", turn.turn_id))];
    Ok((StatusCode::ACCEPTED, location, Json(accepted)).into_response())
}

async fn list(
    State(reader): State<SessionReader>,
    caller: ReadingCaller,
    SessionPath(id): SessionPath,
    page: ListPage<TurnId>,
) -> Result<Json<TurnList>, RequestFault> {
    let rows = reader
        .turns(caller.viewer(), id, page.before, page.bounds)
        .await?;
    let (turns, next) = page.fit(rows, |turn: &TurnInfo| turn.turn_id);
    Ok(Json(TurnList { turns, next }))
}

async fn read(
    State(reader): State<SessionReader>,
    caller: ReadingCaller,
    TurnPath(id): TurnPath,
    params: QueryParams,
) -> Result<Json<TurnInfo>, RequestFault> {
    params.refuse_rest()?;
    let turn = reader.turn(caller.viewer(), id).await?;
    Ok(Json(turn.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use turnwire_event::ContentBlock;
    use turnwire_event::code::OnDisconnect;
    use turnwire_session::SubmitRequest;
    use turnwire_wire::pc3::WireVersion;
    use turnwire_wire::problem::Code;

    fn check(body: Value) -> Result<SubmitRequest, RequestFault> {
        let body = serde_json::from_value(body).expect("a body");
        let headers = HeaderMap::new();
        let scope = DisconnectScope::Session;
        submit::checked(body, scope, &headers, None, WireVersion::V05, 16_384)
    }

    #[test]
    fn turn_with_message_only_continues_unwatched() {
        let submit = check(json!({"message": "hi"})).expect("a turn");
        assert_eq!(submit.content, [ContentBlock::text("hi")]);
        assert_eq!(submit.locale, "en");
        assert_eq!(submit.on_disconnect, OnDisconnect::Continue);
        assert_eq!(submit.disconnect_grace_ms, 0);
        let body = json!({"message": [{"type": "text", "text": "hi"}], "locale": "de-AT",
            "on_disconnect": "cancel", "disconnect_grace_ms": 30_000});
        let submit = check(body).expect("a turn");
        assert_eq!(submit.locale, "de-AT");
        assert_eq!(submit.on_disconnect, OnDisconnect::Cancel);
        assert_eq!(submit.disconnect_grace_ms, 30_000);
    }

    #[test]
    fn unacceptable_turn_is_refused_with_its_code() {
        let long = "x".repeat(36);
        for (body, fault) in [
            (
                json!({"message": ""}),
                RequestFault::new(Code::InvalidRequest, "message is empty.")
                    .with("field", "message"),
            ),
            (
                json!({"message": [{"type": "image", "source": {}}]}),
                RequestFault::new(
                    Code::UnsupportedContent,
                    "message[0] is a \"image\" block; only \"text\" blocks are taken.",
                )
                .with("content_type", "image"),
            ),
            (
                json!({"message": [{"type": "text", "text": "a", "x": 1}]}),
                RequestFault::new(Code::UnknownField, "message[0] has an unknown field \"x\".")
                    .with("field", "x"),
            ),
            (
                json!({"message": "a", "locale": "d e"}),
                RequestFault::invalid("locale", "must be a language tag of at most 35 characters"),
            ),
            (
                json!({"message": "a", "locale": long}),
                RequestFault::invalid("locale", "must be a language tag of at most 35 characters"),
            ),
            (
                json!({"message": "a", "disconnect_grace_ms": 30_001}),
                RequestFault::invalid(
                    "disconnect_grace_ms",
                    "must be a whole number from 0 to 30000",
                ),
            ),
        ] {
            assert_eq!(check(body).err(), Some(fault));
        }
    }
}
