//! Payloads about sessions and turns: their beginning and end, approvals, feedback, and subscribers.

pub mod session;
pub mod approval;
pub mod turn;
pub mod feedback;
pub mod bus;
