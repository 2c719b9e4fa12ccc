//! Tools: what a model can have done.
//!
//! A `Tool` takes an input that the model wrote, which may be anything, and gives a result or a
//! failure in words that the model may read. A `Toolbox` is the set an agent works with. A tool
//! knows no session and no wire; one that has more to tell than its result emits events through
//! its `Call`. What comes from a data service comes through the `Connector`, and what a person
//! is shown of it through a render tool.

pub mod deliver;
pub mod shelf;
pub mod scene;
pub mod tool;
pub mod input;
mod checked;
pub mod fit;
pub mod live;
mod percent;
mod secrets;
pub mod guard;
pub mod workshop;
mod process;
pub mod connector;
mod ccs;
mod http;
pub mod mcp;
pub mod render;
pub mod platform;
mod delegate;
pub mod trial;
pub mod toolbox;
#[cfg(test)]
mod stage;

pub use connector::{BadConnector, Connector, NoVerify, Verify};
pub use deliver::deliver;
pub use fit::fits;
pub use live::Live;
pub use mcp::{McpServerError, McpServers, McpToolset};
pub use scene::Scene;
pub use shelf::Shelf;
pub use tool::{Call, Fault, Tool, ToolFailure};
pub use toolbox::{BadTool, Kit, NameTaken, Toolbox, toolbox};
pub use workshop::Workshop;
