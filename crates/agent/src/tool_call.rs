//! The tools that a message calls: run side by side, declined, or put to a person for approval.

pub(crate) mod summary;
pub(crate) mod turn_workers;
pub(crate) mod execute;
pub(crate) mod approval;
pub(crate) mod resumed_turn;
