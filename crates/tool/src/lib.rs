//! Tools that a model can call.
//!
//! A [`Tool`] gets an input that the model wrote, which may be anything, and returns a result or a
//! [`ToolFailure`] with a message for the model. A [`Toolbox`] is the set of tools of an agent. A
//! tool knows no session and no wire; it emits events through its [`ToolInvocation`]. Data of a
//! service comes through the [`Connector`], and is shown to a person by a render tool.

mod tool;
mod input;
mod percent;
mod secrets;
mod pack_tool;
pub mod program;
pub mod data_service;
mod http;
mod mcp;
mod builtin;
pub mod toolbox;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(test)]
mod tests;

pub use data_service::{
    Connector, ConnectorError, EnvelopeVerifier, NoVerifier, ServiceCredentials,
};
pub use input::check_input;
pub use mcp::{McpServerError, McpServers, McpToolset};
pub use program::runner::ProgramRunner;
pub use program::{OrphanReaper, find_program, guard, runner};
pub use secrets::{SecretCollector, Secrets};
pub use tool::{
    ItemStore, LiveTask, ServiceFault, Tool, ToolContext, ToolFailure, ToolInvocation, deliver,
};
pub use toolbox::{DuplicateToolName, ToolBuildError, ToolDependencies, Toolbox, build_toolbox};
