//! Approvals of tool calls: the state of a [`paused_turn`], the approvals that [`expire`] when the
//! conversation goes on without a decision, and the [`turn_chain`] that a decision resumes.

pub(crate) mod paused_turn;
pub(crate) mod expire;
pub(crate) mod turn_chain;
