//! The REST endpoints, one file per topic. Handlers parse a request, call the sessions, and write a
//! body of `wire::rest`; they decide nothing.

mod quota_headers;
mod sessions;
mod turns;
mod approvals;
mod records;
mod events;
mod feedback;
mod health;
mod problems;
mod stream;
mod turn_stream;
mod chat;
mod cancel;
mod status_events;
mod admin;

use axum::Router;

use crate::state::AppState;
use crate::{openapi, page};

/// All routes, streams and the live page; [`App::router`](crate::app::App::router) wraps them.
pub fn router(state: AppState) -> Router {
    Router::new()
        .merge(sessions::router())
        .merge(turns::router(&state))
        .merge(approvals::router())
        .merge(records::router())
        .merge(events::router(&state))
        .merge(feedback::router())
        .merge(health::router())
        .merge(problems::router())
        .merge(openapi::router(&state.config))
        .merge(stream::router())
        .merge(chat::router(&state))
        .merge(cancel::router())
        .merge(status_events::router())
        .merge(admin::router())
        .merge(page::router())
        .with_state(state)
}
