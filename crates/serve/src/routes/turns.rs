//! `/sessions/{id}/turns` and `/turns/{id}`: submit, list, read.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use tracing::Instrument as _;
use turnwire_event::code::OnDisconnect;
use turnwire_session::{DisconnectScope, SessionReader, SubmitTarget, TurnSubmitter};
use turnwire_wire::rest::turn::{TurnAccepted, TurnInfo, TurnList, TurnSubmit as SubmitBody};

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::body::JsonBody;
use crate::request::identity::Identity;
use crate::request::path::{SessionPath, TurnPath};
use crate::request::query::QueryParams;
use crate::request::submit::{self, ParsedSubmit};
use crate::request::trace::RequestTrace;
use crate::state::{AppState, WireVersions};

/// The name under which keys of submits are kept.
pub(super) const ROUTE: &str = "/sessions/{id}/turns";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sessions/{id}/turns", post(submit).get(list))
        .route("/turns/{id}", get(read))
}

async fn submit(
    State(submitter): State<TurnSubmitter>,
    State(wire_versions): State<WireVersions>,
    Extension(trace): Extension<RequestTrace>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<SubmitBody>,
) -> Result<Response, RequestFault> {
    let key = submit::key(&headers, ROUTE, &body)?;
    let version = submit::version(&headers)?.unwrap_or_else(|| wire_versions.for_owner(&owner));
    let turn = submit::checked(asked(body), &headers, trace.for_turn(), version)?;
    // A task of its own: a client that leaves now has submitted its turn or not, never half.
    let accepting = async move {
        let target = SubmitTarget::Existing(id);
        submitter.submit(&owner, target, turn, key).await
    };
    let turn = tokio::spawn(accepting.in_current_span()).await;
    let turn = turn.map_err(|_| RequestFault::internal())??;
    let accepted = TurnAccepted {
        turn_id: turn.turn_id,
        response_id: turn.turn_id.into(),
        state: turn.state,
        position: turn.position,
    };
    let location = [(header::LOCATION, format!("/turns/{}", turn.turn_id))];
    Ok((StatusCode::ACCEPTED, location, Json(accepted)).into_response())
}

/// What a body asks for.
fn asked(body: SubmitBody) -> ParsedSubmit {
    ParsedSubmit {
        message: body.message,
        locale: body.locale,
        location: body.location,
        metadata: body.metadata,
        on_disconnect: body.on_disconnect.unwrap_or(OnDisconnect::Continue),
        disconnect_grace_ms: body.disconnect_grace_ms,
        on_busy: body.on_busy,
        disconnect_scope: DisconnectScope::Session,
        origin: body.origin.unwrap_or_default(),
        dm_type: body.dm_type,
    }
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    params: QueryParams,
) -> Result<Json<TurnList>, RequestFault> {
    let pages = &config.session;
    let (limit, before) = params.page(pages.list_page, pages.list_page_max)?;
    let (turns, next) = reader.turns(&owner, id, before, limit).await?;
    Ok(Json(TurnList {
        turns: turns.into_iter().map(Into::into).collect(),
        next,
    }))
}

async fn read(
    State(reader): State<SessionReader>,
    Identity(owner): Identity,
    TurnPath(id): TurnPath,
    params: QueryParams,
) -> Result<Json<TurnInfo>, RequestFault> {
    params.done()?;
    let turn = reader.turn(&owner, id).await?;
    Ok(Json(turn.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::submit::invalid;
    use serde_json::{Value, json};
    use turnwire_event::ContentBlock;
    use turnwire_session::SubmitRequest;
    use turnwire_wire::pc3::WireVersion;
    use turnwire_wire::problem::Code;

    fn check(body: Value) -> Result<SubmitRequest, RequestFault> {
        let body = serde_json::from_value(body).expect("a body");
        let headers = HeaderMap::new();
        submit::checked(asked(body), &headers, None, WireVersion::V05)
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
                invalid("locale", "must be a language tag of at most 35 characters"),
            ),
            (
                json!({"message": "a", "locale": long}),
                invalid("locale", "must be a language tag of at most 35 characters"),
            ),
            (
                json!({"message": "a", "disconnect_grace_ms": 30_001}),
                invalid(
                    "disconnect_grace_ms",
                    "must be a whole number from 0 to 30000",
                ),
            ),
        ] {
            assert_eq!(check(body).err(), Some(fault));
        }
    }
}
