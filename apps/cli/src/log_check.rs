//! The checker behind `turnwire verify`. It reads a log's bytes and shares no code with the server
//! but the types.

pub(crate) mod turn_rules;
pub(crate) mod session_log;
