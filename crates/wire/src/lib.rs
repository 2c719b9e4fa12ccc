//! Wires: how events and rows look to clients, as pure functions.
//!
//! Values of `event` come in, bytes and bodies go out. Nothing here does I/O, reads a clock or
//! remembers anything, so live and replayed frames are the same bytes by construction, and the
//! server and the client share one definition of every body.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod problem;
pub mod rest;
pub mod session;
pub mod pc3;
pub mod openapi;
