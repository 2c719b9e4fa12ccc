//! `/sessions/{id}/stream`: the session wire.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::get;

use crate::access::callers::PresentedToken;
use crate::access::guard::CallingSite;
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
    let presented = request.extensions().get::<PresentedToken>();
    let token = presented.map_or_else(Arc::default, |presented| presented.token.clone());
    let site = request.extensions().get::<CallingSite>();
    let site = site.and_then(|site| site.0.as_ref());
    session::open(streams, (id, &token, site), request.headers()).await
}
