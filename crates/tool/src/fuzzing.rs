//! What services and MCP servers send, read without a connection: entry points of the fuzz targets.

pub use crate::data_service::fuzzing::read_envelope;
pub use crate::mcp::fuzzing::{AnswerReading, read_answer};
