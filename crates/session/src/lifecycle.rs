//! Creating and deleting sessions.

pub mod core;
mod create;
mod delete;
