//! Approvals: decided, and gone before they are decided.

mod decisions;
mod gone;
