//! The messages of earlier turns, as the agents of a new turn read them.

pub mod cache;
pub mod view;
