//! Payloads about model calls: which model was chosen, its calls, and the message as it streams.

pub mod llm;
pub mod stream;
pub mod route;
pub mod routing;
