//! Inbound HTTP: what comes in is guarded, read and answered here; nothing else of the house
//! knows about requests.
//!
//! ```text
//! listen ─▶ shell (trace, guard, problems, headers) ─▶ routes ─▶ session
//! ```

pub mod config;
pub mod error;
pub mod metrics;
pub mod host;
pub mod listen;
pub mod transport;
pub mod state;
pub mod request;
pub mod access;
pub mod page;
pub mod openapi;
pub mod routes;
pub mod shell;
pub mod app;
