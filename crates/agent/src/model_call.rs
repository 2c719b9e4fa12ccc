//! Calls of a model: one call with its stream, retries of a call, and fallbacks to other models.

pub(crate) mod retry_delay;
pub(crate) mod message_builder;
pub(crate) mod call_usage;
pub(crate) mod single_call;
pub(crate) mod fallback;
