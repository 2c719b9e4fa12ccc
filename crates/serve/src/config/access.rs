//! Settings of where the server listens, how it is reached from outside, and who may call it.

pub mod listen;
pub mod auth;
pub mod server;
