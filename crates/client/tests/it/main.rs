//! Tests of the Rust client, in one binary.

mod registry;
mod submit;
mod watch;
