//! The REST endpoints, one file a topic. Handlers read a request, ask the sessions, and write a
//! body of `wire::rest`; what is decided is decided elsewhere.

mod sessions;
mod turns;
mod approvals;
mod messages;
mod events;
mod tool_calls;
mod llm_calls;
mod usage;
mod feedback;
mod health;
mod problems;
mod stream;
mod chat;
mod cancel;
mod status_events;

use axum::Router;

use crate::state::AppState;
use crate::{openapi, page};

/// All routes, streams and the live page; the composition root puts the shell around them.
pub fn router(state: AppState) -> Router {
    Router::new()
        .merge(sessions::router())
        .merge(turns::router())
        .merge(approvals::router())
        .merge(messages::router())
        .merge(events::router())
        .merge(tool_calls::router())
        .merge(llm_calls::router())
        .merge(usage::router())
        .merge(feedback::router())
        .merge(health::router())
        .merge(problems::router())
        .merge(openapi::router(&state.config))
        .merge(stream::router())
        .merge(chat::router())
        .merge(cancel::router())
        .merge(status_events::router())
        .merge(page::router())
        .with_state(state)
}
