//! `mcp.*`: an MCP server connects and lists its tools. Transient, and deprecated (S1-029).

use serde::{Deserialize, Serialize};

/// The MCP server that an event is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerRef {
    /// The server's name in the pack.
    pub server: String,
}

/// An MCP server listed its tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpToolsListed {
    /// The server's name in the pack.
    pub server: String,
    /// The number of tools.
    pub tool_count: u32,
}

/// An MCP server reported progress of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpCallProgressed {
    /// The server's name in the pack.
    pub server: String,
    /// The progress, in the server's own unit.
    pub progress: f64,
    /// The expected final progress, if the server reports it.
    pub total: Option<f64>,
}
