//! Bodies of the REST endpoints, one file per topic, shared by server and client.
//!
//! Requests reject unknown fields; responses may gain fields. Lists are
//! `{"<plural>": […], "next": cursor | null}`.

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
pub mod audit;
pub mod feedback;
pub mod status_event;
pub mod health;

#[cfg(test)]
mod tests;
