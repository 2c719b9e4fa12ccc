//! The wires: how events and records look to clients, as pure functions.
//!
//! In: values of the crate `event`. Out: frames as bytes, and bodies of requests and responses. No
//! function here does I/O, reads a clock or keeps state between calls, so live and replayed frames
//! are the same bytes, and server and client share one definition of every body.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod budget;
pub mod problem;
pub mod rest;
#[cfg(feature = "schema")]
mod frame_schema;
pub mod session;
pub mod pc3;
pub mod openapi;
pub mod asyncapi;
