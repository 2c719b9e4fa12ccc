//! MCP servers.

mod reference;
mod servers;
