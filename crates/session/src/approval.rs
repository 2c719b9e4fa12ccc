//! Approvals: a turn that pauses because a tool needs a person's approval, and the decisions.

pub(crate) mod paused_turn;
