//! All sessions of the server: the [`open_sessions`] in memory, the
//! [`recovery`] of turns that a crash left open, [`resume_queues`] for turns queued before a restart,
//! [`retention`] and the removal of deleted sessions, and periodic [`upkeep`].

pub(crate) mod open_sessions;
pub(crate) mod recovery;
pub(crate) mod resume_queues;
pub(crate) mod retention;
pub(crate) mod upkeep;
