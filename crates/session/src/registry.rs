//! All sessions of the server: those [`open_sessions`] has in memory, the [`recovery`] of turns that
//! a crash left open, [`resume_queues`] for turns queued before the restart, and periodic [`upkeep`].

pub(crate) mod open_sessions;
pub(crate) mod recovery;
pub(crate) mod resume_queues;
pub(crate) mod upkeep;
