//! The REST endpoints, one file a topic. Handlers read a request, ask the sessions, and write a
//! body of `wire::rest`; what is decided is decided elsewhere.

mod sessions;
mod turns;
mod messages;
mod events;
mod tool_calls;
mod feedback;
mod health;
mod problems;

use axum::Router;

use crate::state::AppState;
use crate::{openapi, page};

/// All REST routes, what describes them, and the live page; the stream and the shell are put around them by the
/// composition root.
pub fn router(state: AppState) -> Router {
    Router::new()
        .merge(sessions::router())
        .merge(turns::router())
        .merge(messages::router())
        .merge(events::router())
        .merge(tool_calls::router())
        .merge(feedback::router())
        .merge(health::router())
        .merge(problems::router())
        .merge(openapi::router(&state.config))
        .merge(page::router())
        .with_state(state)
}
