//! The [`session_core`] that all handles share, and the functions that [`create`] and [`delete`] sessions.

pub(crate) mod deletion_queue;
pub(crate) mod session_core;
pub(crate) mod create;
pub(crate) mod delete;
