//! Submitting a turn: the request a caller makes, and the locks that let only one submit at a
//! time use an idempotency key.

pub(crate) mod request;
pub(crate) mod idempotency;
