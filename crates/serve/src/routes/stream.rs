//! `/sessions/{id}/stream`: the session wire.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::get;
use turnwire_wire::problem::Code;

use crate::error::RequestFault;
use crate::request::path::SessionPath;
use crate::state::AppState;
use crate::transport::Streams;
use crate::transport::session::{self, UpgradeError};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/sessions/{id}/stream", get(stream))
}

async fn stream(
    State(streams): State<Arc<Streams>>,
    SessionPath(id): SessionPath,
    request: Request,
) -> Result<Response, RequestFault> {
    if request.method() != Method::GET {
        return Err(RequestFault::method_not_allowed());
    }
    let token = request.uri().query().and_then(|query| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix("attach="))
    });
    let token = token.unwrap_or_default().to_owned();
    session::open(streams, id, &token, request.headers())
        .await
        .map_err(|error| match error {
            UpgradeError::NotAnUpgrade => RequestFault::new(
                Code::InvalidRequest,
                "This path speaks WebSocket (RFC 6455, version 13).",
            ),
            UpgradeError::Session(error) => error.into(),
        })
}
