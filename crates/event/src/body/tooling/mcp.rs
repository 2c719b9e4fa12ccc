//! `mcp.*`: a tool server connects and lists its tools. Live only, and on its way out (S1-029).

use serde::{Deserialize, Serialize};

/// Which server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Server {
    /// Its name in the pack.
    pub server: String,
}

/// A server has listed its tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listed {
    /// Its name in the pack.
    pub server: String,
    /// How many tools it has.
    pub tool_count: u32,
}

/// A server is at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progressed {
    /// Its name in the pack.
    pub server: String,
    /// How far, as the server counts.
    pub progress: f64,
    /// Of how much, if it says.
    pub total: Option<f64>,
}
