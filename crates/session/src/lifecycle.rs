//! The [`session_core`] that all handles share, and the functions that [`create`] and [`delete`] sessions,
//! those included that a crash left without a name ([`unnamed_workers`]).

pub(crate) mod deletion_queue;
pub(crate) mod session_core;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod unnamed_workers;
