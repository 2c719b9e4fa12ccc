//! The tools that a message calls: executed side by side, declined, or put to a person for approval.

pub(crate) mod summary;
pub(crate) mod worker_quota;
pub(crate) mod tool_result;
pub(crate) mod tool_request;
pub(crate) mod execute;
pub(crate) mod approval;
pub(crate) mod resumed_turn;
