//! Inbound HTTP: requests are guarded, parsed and answered here; no other crate knows about them.
//!
//! ```text
//! listen ─▶ middleware (trace, guard, problems, headers) ─▶ routes ─▶ session
//! ```

pub mod config;
pub mod error;
pub mod metrics;
pub mod host;
pub mod listen;
pub mod access;
pub mod transport;
pub mod state;
pub mod request;
pub mod page;
pub mod openapi;
pub mod routes;
pub mod middleware;
pub mod app;
