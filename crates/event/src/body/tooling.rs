//! Payloads about tools: their calls, and the statuses, data and components that they show.

pub mod tool;
pub mod mcp;
pub mod status;
pub mod data;
pub mod component;
