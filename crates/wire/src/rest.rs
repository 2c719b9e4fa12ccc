//! Bodies of the REST endpoints, one file a topic, shared by the server and the client.
//!
//! Requests refuse fields they do not know; answers may grow. Lists are
//! `{"<plural>": […], "next": cursor | null}`.

mod whole;
pub mod content;
pub mod turn;
pub mod session;
pub mod approval;
pub mod chat;
pub mod message;
pub mod event;
pub mod tool_call;
pub mod llm_call;
pub mod usage;
pub mod feedback;
pub mod status_event;
pub mod health;

#[cfg(test)]
mod tests;
