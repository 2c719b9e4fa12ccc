//! The turns of one session in order: [`accept`] starts a submitted turn or queues it,
//! [`start_next`] starts the queued ones.

pub(crate) mod accept;
pub(crate) mod start_next;
