//! The checker behind `turnwire verify`. It reads a log's bytes and shares no code with the server
//! but the types.

pub(crate) mod turn_verifier;
pub(crate) mod stored_contents;
pub(crate) mod stored_rows;
pub(crate) mod session_log;
