//! Settings of where the server listens, how it is reached from outside, who may call it, and how much
//! they may use.

pub mod listen;
pub mod auth;
pub mod server;
pub mod quota;
