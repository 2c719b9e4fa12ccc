//! A session in memory, and the parts it is made of: the folded transcript, the bus notices, the
//! child tasks of its turn, the slot that runs one turn at a time.

pub mod transcript;
pub mod bus;
pub(crate) mod child_tasks;
pub(crate) mod turn_slot;
pub mod routing_policy;
pub mod session;
