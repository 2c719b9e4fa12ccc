//! All sessions of the server: those in memory, recovery after a crash, and periodic upkeep.

pub mod open_sessions;
pub mod recovery;
pub mod upkeep;
