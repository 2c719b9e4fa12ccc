//! The parts of a running turn: its binding to a producer, its progress, its emitter and its one
//! ending.

pub(crate) mod bind;
pub(crate) mod progress;
pub mod ending;
pub mod emitter;
