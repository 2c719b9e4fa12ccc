//! The turns of one session in order: accepting a turn, and starting the next queued one.

pub(crate) mod accept;
pub(crate) mod start_next;
