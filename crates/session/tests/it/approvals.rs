//! Approvals: decided, and expired before a decision.

mod decisions;
mod expired;
