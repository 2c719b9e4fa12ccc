//! Tools of tool servers (MCP): programs on standard streams, and services over HTTP.
//!
//! ```text
//! Servers ──▶ Server ──▶ Connection ──▶ Link ──▶ pipes │ HTTP
//!    │           ╰ kept, and had back when it goes
//!    ╰─▶ Listed ──▶ Mcp (a tool) ──▶ call ──▶ answer
//!                    Enrich (a data service) ─╯
//! ```
//! Servers are started and asked for their tools when a pack is loaded; in a turn they are only
//! called (S2-001). What a server says is for the model, what is wrong with one for the person who
//! runs it; neither is on a wire.

mod meter;
mod reader;
mod writer;
mod link;
mod quiet;
mod open;
mod backoff;
mod streams;
mod http;
mod error;
mod connection;
mod program;
mod list;
mod asked;
mod pulse;
mod server;
mod call;
mod answer;
mod pace;
mod tool;
mod enrich;
mod servers;

pub use error::BadServer;
pub use servers::{Listed, Servers};

#[cfg(test)]
mod tests;
