//! `/sessions/{id}/stream`: the session wire.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::get;

use crate::error::RequestFault;
use crate::request::SessionPath;
use crate::state::AppState;
use crate::transport::{Streams, session};

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
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    let token = pairs.find_map(|pair| pair.strip_prefix("attach="));
    let token = token.unwrap_or_default().to_owned();
    session::open(streams, id, &token, request.headers()).await
}
