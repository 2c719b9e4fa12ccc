//! Calls of a model: one call and its stream, retries, and fallbacks to other models.

pub(crate) mod retry_delay;
pub(crate) mod message_builder;
pub(crate) mod call;
pub(crate) mod fallback;
