//! Inbound HTTP: what comes in is guarded, read and answered here; nothing else of the house
//! knows about requests.
//!
//! ```text
//! listen ─▶ shell (trace, guard, problems, headers) ─▶ routes ─▶ session
//! ```

pub mod config;
mod header;
pub mod trace;
pub mod error;
pub mod cors;
pub mod guard;
pub mod identity;
mod locale;
pub mod path;
pub mod query;
pub mod metrics;
pub mod demo;
pub mod host;
pub mod listen;
pub mod transport;
pub mod state;
pub mod body;
mod submit;
pub mod page;
pub mod openapi;
pub mod routes;
pub mod shell;
mod folders;
pub mod app;
