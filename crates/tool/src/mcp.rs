//! Tools of MCP servers: programs that speak on their standard streams, and services over HTTP.
//!
//! ```text
//! McpServers ──▶ ToolServer ──▶ Connection ──▶ FilteredTransport ──▶ pipes │ HTTP
//!    │              ╰ its supervisor reconnects by the RestartPolicy
//!    ╰─▶ McpToolset ──▶ McpTool ─────────────▶ call ──▶ CallOutput
//!                       enrich_transport ───────╯
//! ```
//! Servers are started and their tools listed when a pack is loaded; a turn only calls them
//! (S2-001). A call has one [`deadline::Deadline`]. Texts of a server are for the model, faults of
//! a server for its operator; neither is sent to clients.

mod deadline;
mod restart;
mod error;
mod json_text;
mod connection;
mod program;
mod list;
mod server;
mod progress;
mod output;
mod call;
mod tool;
mod enrich;
mod servers;

#[cfg(feature = "fuzzing")]
pub(crate) use connection::{ResultSender, ResultSlot, reduce_answer};
pub use error::McpServerError;
#[cfg(feature = "fuzzing")]
pub(crate) use list::usable_tools;
#[cfg(feature = "fuzzing")]
pub(crate) use output::{CallOutput, CallResult};
pub use servers::{McpServers, McpToolset};

#[cfg(test)]
mod tests;
