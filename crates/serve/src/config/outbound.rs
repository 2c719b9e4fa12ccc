//! Settings of what the server calls: hosts on private networks, and agents that run elsewhere.

pub mod dial;
pub mod relay;
