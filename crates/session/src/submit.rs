//! Submitting a turn: the request a caller makes, the locks that let only one submit at a time use
//! an idempotency key, and the bounds that owners share, also of other writes.

pub(crate) mod owner_limit;
pub(crate) mod input_bytes;
pub(crate) mod write_slots;
pub(crate) mod request;
pub(crate) mod job_state;
pub(crate) mod idempotency;
